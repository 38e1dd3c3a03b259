"""The persistent outcome cache: program -> module -> outcome, in one sqlite3 file shared by all runs.

Two steps, because lowering is cheap and compiling is not, and because different programs become one module:

* ``programs``: (job key, JAX, topology, environment) -> the module's sha256, or why the program is invalid;
* ``answers``: (module, options, topology, libtpu's sha256, jaxlib, environment) -> outcomes with their counts.

What may be believed: one that compiled or was rejected, at once; a crash or a time-out only after a repeat alone in
a new worker; nothing that came out in two ways (a flaky row is asked again each time, and keeps its counts).
A time-out answers only for limits up to its own.

The cache is never the reason that a run fails: see `reducer.oracle.cachefile`.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import time
import zlib
from typing import Any

import msgspec

from reducer.ledger.owed import Owed
from reducer.oracle.cachefile import CacheFile
from reducer.oracle.environment import relevant_environment
from reducer.oracle.outcome import Compiled, Crashed, Outcome, Rejected, TimedOut, word
from reducer.oracle.signature import signature
from reducer.oracle.target import Target

_DAY = 86400.0
_decoder: msgspec.json.Decoder[Outcome] = msgspec.json.Decoder(Outcome)


class KnownProgram(msgspec.Struct, frozen=True):
    """What is known of a job before lowering it: its module, or why it has none; what it owes, if that was read."""

    module_key: str
    host_placement: bool
    invalid: str | None
    owed: Owed | None = None


class Seen(msgspec.Struct, frozen=True):
    """One way a module came out: how often, and how often alone in a new worker."""

    outcome: Outcome
    count: int
    fresh: int


class OutcomeCache(CacheFile):
    """The cache of all targets; see `view` for use."""

    def view(self, target: Target, *, jax: str | None = None, jaxlib: str | None = None) -> CacheView:
        """Return the cache as seen by jobs for `target` under this environment and these versions."""
        return CacheView(
            self,
            target,
            jax=jax or importlib.metadata.version("jax"),
            jaxlib=jaxlib or importlib.metadata.version("jaxlib"),
            environment=relevant_environment(),
        )


class CacheView:
    """The cache for one target, JAX and environment."""

    def __init__(
        self, cache: OutcomeCache, target: Target, *, jax: str, jaxlib: str, environment: dict[str, str]
    ) -> None:
        self._cache = cache
        self._lowering = _digest("lowering", jax, jaxlib, target.topology, environment)
        self._compiling = _digest("compiling", target.sha256, target.topology, target.options, jaxlib, environment)

    def program(self, job_key: str) -> KnownProgram | None:
        """Return what is known of a job by its key ("" is no key)."""
        if not job_key:
            return None
        rows = self._cache.read(
            "SELECT module, host, invalid, owed FROM programs WHERE key=?", (self._program_key(job_key),)
        )
        if not rows:
            return None
        module, host, invalid, owed = rows[0]
        return KnownProgram(module, bool(host), invalid, _read_owed(owed) if owed else None)

    def remember(self, job_key: str, module_key: str, *, host_placement: bool, owed: Owed | None = None) -> None:
        """Remember the module that a job lowers to; without `owed`, what is known of that stays."""
        if job_key:
            self._cache.write(
                "INSERT INTO programs VALUES(?,?,?,NULL,?,?) ON CONFLICT(key) DO UPDATE SET module=excluded.module, "
                "host=excluded.host, invalid=NULL, used=excluded.used, owed=coalesce(excluded.owed, owed)",
                (
                    self._program_key(job_key),
                    module_key,
                    int(host_placement),
                    time.time(),
                    None if owed is None else _write_owed(owed),
                ),
            )

    def remember_invalid(self, job_key: str, message: str) -> None:
        """Remember that a job does not lower."""
        if job_key:
            self._cache.write(
                "INSERT OR REPLACE INTO programs VALUES(?,'',0,?,?,NULL)",
                (self._program_key(job_key), message, time.time()),
            )

    def outcome(self, module_key: str, limit: float, *, want_buffers: bool = False) -> Outcome | None:
        """Return the outcome of a module if it may be believed for a time-out of `limit` seconds.

        `want_buffers`: a compiled one only if it was asked then where its buffers lie.
        """
        key = self._module_key(module_key)
        rows = self._cache.read("SELECT outcome, seconds, fresh, used, identity FROM answers WHERE key=?", (key,))
        # A time-out does not contradict another outcome: that one took longer than the limit of then.
        decisive = [row for row in rows if row[4] != _TIMED_OUT]
        chosen = decisive or [row for row in rows if row[1] >= limit]
        if len(chosen) != 1:
            return None
        blob, _, fresh, used, identity = chosen[0]
        outcome = _unpack(blob)
        if outcome is None or (isinstance(outcome, Crashed | TimedOut) and not fresh):
            return None
        if want_buffers and isinstance(outcome, Compiled) and not outcome.looked_at:
            return None
        now = time.time()
        if now - used > _DAY:
            self._cache.write("UPDATE answers SET used=? WHERE key=? AND identity=?", (now, key, identity))
        return outcome

    def store(self, module_key: str, outcome: Outcome, *, fresh: bool) -> None:
        """Count `outcome` for a module; only what the compiler did is kept."""
        if not isinstance(outcome, Compiled | Rejected | Crashed | TimedOut):
            return
        limit = outcome.limit if isinstance(outcome, TimedOut) and fresh else 0.0
        # One that was not asked where its buffers lie must not replace one that was.
        keep = isinstance(outcome, Compiled) and not outcome.looked_at
        self._cache.write(
            "INSERT INTO answers VALUES(?,?,?,?,1,?,?) ON CONFLICT(key, identity) DO UPDATE SET "
            "count=count+1, fresh=fresh+excluded.fresh, used=excluded.used, "
            "outcome=CASE WHEN ? THEN outcome WHEN excluded.seconds >= seconds THEN excluded.outcome ELSE outcome END, "
            "seconds=max(seconds, excluded.seconds)",
            (self._module_key(module_key), _identity(outcome), _pack(outcome), limit, int(fresh), time.time(), keep),
        )

    def seen(self, module_key: str) -> list[Seen]:
        """Return every way a module came out, most frequent first: more than one means flaky."""
        rows = self._cache.read(
            "SELECT outcome, count, fresh FROM answers WHERE key=? ORDER BY count DESC, identity",
            (self._module_key(module_key),),
        )
        return [Seen(outcome, row[1], row[2]) for row in rows if (outcome := _unpack(row[0])) is not None]

    def _program_key(self, job_key: str) -> str:
        return _digest(self._lowering, job_key)

    def _module_key(self, module_key: str) -> str:
        return _digest(self._compiling, module_key)


_TIMED_OUT = "timed-out"


def _identity(outcome: Outcome) -> str:
    if isinstance(outcome, TimedOut):
        return _TIMED_OUT
    found = signature(outcome)
    return f"{word(outcome)} {found.text}" if found is not None else word(outcome)


def _digest(*parts: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def _read_owed(data: bytes) -> Owed | None:
    try:
        return msgspec.json.decode(data, type=Owed)
    except msgspec.MsgspecError:
        return None  # written by another version


def _write_owed(owed: Owed) -> bytes:
    return msgspec.json.encode(owed)


def _pack(outcome: Outcome) -> bytes:
    return zlib.compress(msgspec.json.encode(outcome), 1)


def _unpack(blob: bytes) -> Outcome | None:
    try:
        return _decoder.decode(zlib.decompress(blob))
    except (zlib.error, msgspec.MsgspecError):
        return None  # written by another version, or damaged: as good as absent
