"""The state of a run on disk: what it was asked, and every answer it got, one JSON line each.

The driver is deterministic, so a run that was ended at any moment goes on by being done again: what stands in the
journal is answered from there, and nothing is compiled twice. That also holds for what the outcome cache does not
believe (crashes and time-outs that were not repeated alone, votes on a flaky failure, words of a script).

A journal belongs to one `Header`. Another libtpu, topology, option, limit or version is another journal: answers of
two compilers are never mixed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

import msgspec
from filelock import FileLock, Timeout

from reducer.errors import StorageError
from reducer.oracle.cachedir import cache_root
from reducer.oracle.outcome import Result

FOLDER: Final = "runs"
#: Journals of runs that ended are kept up to this many bytes, the newest first.
QUOTA: Final = 256 << 20
_DIGITS: Final = 16


class Header(msgspec.Struct, frozen=True):
    """What makes two runs the same: `start` is the identity of what is reduced, `wanted` what must stay.

    `target` is libtpu release, sha256 of its file, topology and options, `versions` those of JAX, jaxlib and the code
    that writes programs down, and the variables that change what a compiler does. `wish` is what else changes answers.
    """

    start: str
    wanted: tuple[str, str]
    target: dict[str, Any]
    versions: dict[str, str]
    wish: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """Its file: the start, and everything."""
        return f"{self.start[:_DIGITS]}-{_digest(self)}.jsonl"


class Best(msgspec.Struct, frozen=True):
    """The smallest candidate so far: its tier, identity, size and the unique compiles it took."""

    tier: str
    key: str
    size: int
    compiles: int


class _Line(msgspec.Struct, omit_defaults=True):
    """One line: exactly one of these."""

    header: Header | None = None
    key: str = ""
    result: Result | None = None
    best: Best | None = None
    done: bool = False


_decoder = msgspec.json.Decoder(_Line)


class Journal:
    """The journal of one run; use as a context manager. May be used from several threads.

    `known` counts the answers that were there already, `best` is the last one noted, `done` whether the run ended.
    """

    def __init__(self, header: Header, *, folder: Path | None = None, warn: Callable[[str], None]) -> None:
        self.header = header
        self.path = (folder or cache_root() / FOLDER) / header.name
        self.best: Best | None = None
        self.done = False
        self.known = 0
        self._answers: dict[str, Result] = {}
        self._bests: set[Best] = set()
        self._warn = warn
        self._file: BinaryIO | None = None
        self._mutex = threading.Lock()
        self._lock = FileLock(self.path.with_suffix(".lock"))

    def __enter__(self) -> Self:
        """Read what is there and go on behind it.

        Raises:
            StorageError: another process has the run under way.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise StorageError(
                "the same reduction is under way in another process", hint="wait for it, or end it"
            ) from None
        except OSError as error:
            self._off(error)
            return self
        try:
            self._begin()
            _keep_quota(self.path)
        except OSError as error:
            self._off(error)
        return self

    def __exit__(self, *_: object) -> None:
        with self._mutex:
            if self._file is not None:
                self._file.close()
                self._file = None
        self._lock.release()

    def get(self, key: str) -> Result | None:
        """What is known under `key`."""
        with self._mutex:
            return self._answers.get(key)

    def put(self, key: str, result: Result, *, module: bool = False) -> None:
        """Keep an answer; `module`: with the module's text."""
        result = msgspec.structs.replace(result, module=result.module if module else "", worker_pid=0)
        with self._mutex:
            if key not in self._answers:
                self._answers[key] = result
                self._write(_Line(key=key, result=result))

    def note_best(self, best: Best) -> None:
        """Say what is the best so far; a run that is gone through again comes by those of before."""
        with self._mutex:
            if best not in self._bests:
                self._bests.add(best)
                self.best = best
                self._write(_Line(best=best))

    def end(self) -> None:
        """Say that the run came to its end."""
        with self._mutex:
            if not self.done:
                self.done = True
                self._write(_Line(done=True))

    def discard(self) -> None:
        """Forget the run: it came to nothing, and is to be asked anew another time."""
        with self._mutex:
            self._answers.clear()
            if self._file is not None:
                with contextlib.suppress(OSError):
                    os.unlink(self.path)

    def _begin(self) -> None:
        good = self._read()
        self._file = self.path.open("ab")
        self._file.truncate(good)  # the end of a line that a dying process did not finish
        if not good:
            self._write(_Line(header=self.header))

    def _read(self) -> int:
        """Take in what stands in the file; returns how many bytes of it are good."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return 0
        good = 0
        for raw in data.splitlines(keepends=True):
            try:
                line = _decoder.decode(raw)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                break
            if not raw.endswith(b"\n") or (good == 0 and line.header != self.header):
                break
            good += len(raw)
            if line.result is not None:
                self._answers[line.key] = line.result
            if line.best is not None:
                self.best = line.best
                self._bests.add(line.best)
            self.done = self.done or line.done
        self.known = len(self._answers)
        return good

    def _write(self, line: _Line) -> None:
        if self._file is None:
            return
        try:
            self._file.write(msgspec.json.encode(line) + b"\n")
            self._file.flush()
        except OSError as error:
            self._file = None
            self._off(error)

    def _off(self, error: OSError) -> None:
        self._warn(f"this run cannot be continued later: {self.path} cannot be written: {error.strerror or error}")


def others(header: Header, *, folder: Path | None = None) -> list[Header]:
    """Headers of runs of the same start that have answers and did not end, and that are not this run."""
    found = []
    for path in sorted((folder or cache_root() / FOLDER).glob(f"{header.start[:_DIGITS]}-*.jsonl")):
        if path.name == header.name:
            continue
        with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            lines = path.read_bytes().splitlines()
            first = _decoder.decode(lines[0]).header if len(lines) > 1 else None  # one alone: nothing was asked
            if first is not None and b'{"done":true}' not in lines:
                found.append(first)
    return found


def difference(a: Header, b: Header) -> str:
    """What of two runs of one start differs, in words; empty if nothing that matters for answers does."""
    parts = [
        f"{name} {_shown(b.target.get(name))}"
        for name in ("libtpu", "topology", "options")
        if a.target.get(name) != b.target.get(name)
    ]
    if not parts and a.target.get("sha256") != b.target.get("sha256"):
        parts.append(f"a libtpu file with sha256 {str(b.target.get('sha256'))[:12]}")
    names = sorted({*a.versions, *b.versions})
    differing = [name for name in names if a.versions.get(name) != b.versions.get(name)]
    parts += ["another scanshrink" if name == "scanshrink" else f"{name} {b.versions.get(name)}" for name in differing]
    return ", ".join(parts)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={one}" for name, one in value.items()) or "none"
    return str(value)


def _digest(header: Header) -> str:
    return hashlib.sha256(msgspec.json.encode(header, order="sorted")).hexdigest()[:_DIGITS]


def _keep_quota(own: Path) -> None:
    files = sorted(own.parent.glob("*.jsonl"), key=lambda path: path.stat().st_mtime, reverse=True)
    total = 0
    for path in files:
        total += path.stat().st_size
        if total > QUOTA and path != own:
            for gone in (path, path.with_suffix(".lock")):
                with contextlib.suppress(OSError):
                    os.unlink(gone)
