"""The persistent outcome cache: program -> module -> outcome, in one sqlite3 file shared by all runs.

Two steps, because lowering is cheap and compiling is not, and because different programs become one module:

* ``programs``: (job key, JAX, topology, environment) -> the module's sha256, or why the program is invalid;
* ``answers``: (module, options, topology, libtpu's sha256, jaxlib, environment) -> outcomes with their counts.

What may be believed: one that compiled or was rejected, at once; a crash or a time-out only after a repeat alone in
a new worker; nothing that came out in two ways (a flaky row is asked again each time, and keeps its counts).
A time-out answers only for limits up to its own.

The cache is never the reason that a run fails: a damaged file is moved aside, a full disk turns the cache off, each
with one warning. Its file stays within `QUOTA` bytes, the least recently used rows going first.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import sqlite3
import threading
import time
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from reducer.ledger.owed import Owed
from reducer.oracle.cachedir import cache_root
from reducer.oracle.environment import relevant_environment
from reducer.oracle.outcome import Compiled, Crashed, Outcome, Rejected, TimedOut, word
from reducer.oracle.signature import signature
from reducer.oracle.target import Target

QUOTA = 2 << 30
"""Largest size of the cache's file, in bytes."""
_SCHEMA = 2
_CHECK_EVERY = 2000
_DAY = 86400.0
_TABLES = """
CREATE TABLE programs(
    key TEXT PRIMARY KEY, module TEXT NOT NULL, host INTEGER NOT NULL, invalid TEXT, used REAL NOT NULL, owed BLOB
) WITHOUT ROWID;
CREATE TABLE answers(
    key TEXT NOT NULL, identity TEXT NOT NULL, outcome BLOB NOT NULL, seconds REAL NOT NULL,
    count INTEGER NOT NULL, fresh INTEGER NOT NULL, used REAL NOT NULL, PRIMARY KEY(key, identity)
);
CREATE INDEX answers_used ON answers(used);
CREATE INDEX programs_used ON programs(used);
"""

_R = TypeVar("_R")
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


class OutcomeCache:
    """The file. May be used from several threads and by several processes at once; see `view` for use."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        quota: int = QUOTA,
        warn: Callable[[str], None] = lambda text: warnings.warn(text, RuntimeWarning, stacklevel=3),
    ) -> None:
        """`path` defaults to ``outcomes.sqlite3`` in the cache root. `warn` is called at most once or twice."""
        self.path = path or cache_root() / "outcomes.sqlite3"
        self._quota = quota
        self._warn = warn
        self._lock = threading.Lock()
        self._writes = 0
        self._connection: sqlite3.Connection | None = None
        try:
            self._connection = self._open()
        except (sqlite3.Error, OSError) as error:
            self._turn_off(error)

    @property
    def enabled(self) -> bool:
        """Whether anything is remembered; False after a full disk or the like."""
        return self._connection is not None

    def view(self, target: Target, *, jax: str | None = None, jaxlib: str | None = None) -> CacheView:
        """Return the cache as seen by jobs for `target` under this environment and these versions."""
        return CacheView(
            self,
            target,
            jax=jax or importlib.metadata.version("jax"),
            jaxlib=jaxlib or importlib.metadata.version("jaxlib"),
            environment=relevant_environment(),
        )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()

    def __enter__(self) -> OutcomeCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, query: str, arguments: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Return the rows of `query`; none when the cache is off."""
        return self._do(lambda connection: connection.execute(query, arguments).fetchall()) or []

    def write(self, query: str, arguments: tuple[Any, ...]) -> None:
        """Run one statement in its own transaction."""

        def run(connection: sqlite3.Connection) -> None:
            connection.execute(query, arguments)
            self._writes += 1
            if self._writes % _CHECK_EVERY == 0:
                self._keep_quota(connection)

        self._do(run)

    def _do(self, action: Callable[[sqlite3.Connection], _R]) -> _R | None:
        with self._lock:
            if self._connection is None:
                return None
            try:
                return action(self._connection)
            except sqlite3.OperationalError as error:
                if "locked" in str(error) or "busy" in str(error):
                    return None  # another process writes; one answer fewer is remembered
                self._turn_off(error)
            except (sqlite3.Error, OSError) as error:
                self._turn_off(error)
            return None

    def _turn_off(self, error: Exception) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()
        self._warn(f"the outcome cache {self.path} is off for this run: {error}")

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return self._connect()
        except sqlite3.OperationalError:
            raise  # cannot open, read-only, full, locked: the file is not at fault
        except sqlite3.DatabaseError as error:
            for earlier in self.path.parent.glob(f"{self.path.name}.damaged-*"):
                earlier.unlink(missing_ok=True)  # one is kept to look at; more would be beyond the quota
            aside = self.path.with_name(f"{self.path.name}.damaged-{int(time.time())}-{os.getpid()}")
            os.replace(self.path, aside)
            for suffix in ("-wal", "-shm"):
                with contextlib.suppress(OSError):
                    os.unlink(f"{self.path}{suffix}")
            self._warn(f"the outcome cache {self.path} is damaged ({error}); moved aside to {aside.name}")
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=5.0, isolation_level=None, check_same_thread=False)
        try:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version > _SCHEMA:
                raise sqlite3.OperationalError(f"it is of format {version}, this program knows {_SCHEMA}")
            if version == 0:
                connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # only an empty file can be given it
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            if version < _SCHEMA:
                self._create(connection)
            self._keep_quota(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @staticmethod
    def _create(connection: sqlite3.Connection) -> None:
        """Create the tables, or bring those of an older format to this one."""
        connection.execute("BEGIN IMMEDIATE")  # another process may be creating them: ask again inside
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            for statement in _TABLES.split(";"):
                connection.execute(statement)
        elif version == 1:
            connection.execute("ALTER TABLE programs ADD COLUMN owed BLOB")
        if version < _SCHEMA:
            connection.execute(f"PRAGMA user_version={_SCHEMA}")
        connection.execute("COMMIT")

    def _keep_quota(self, connection: sqlite3.Connection) -> None:
        def size() -> int:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            free = connection.execute("PRAGMA freelist_count").fetchone()[0]
            return int(pages - free) * int(connection.execute("PRAGMA page_size").fetchone()[0])

        if size() <= self._quota:
            return
        while size() > self._quota * 3 // 4:
            gone = 0
            for table in ("answers", "programs"):
                gone += connection.execute(
                    f"DELETE FROM {table} WHERE used <= (SELECT used FROM {table} ORDER BY used "
                    f"LIMIT 1 OFFSET (SELECT count(*) / 4 FROM {table}))"
                ).rowcount
            if not gone:
                break
        connection.executescript("PRAGMA incremental_vacuum")  # `execute` would step once: one page
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


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
