"""A user's own test of what is interesting: a program that is given each candidate and leaves with 0, or does not.

As the reducers of C programs and of bytes do it. The script runs in a new empty folder, which holds the candidate
(``repro.py``, or ``module.mlir`` at the StableHLO tier) and is removed afterwards; the file's name is its only
argument. No shell is involved. It may run several times at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import IO, Final

from reducer.errors import InputError
from reducer.oracle.outcome import Result
from reducer.reduction.wanted import INTERESTING, uninteresting

#: Exit codes that say that the script itself could not be run, as shells and `env` give them.
_BROKEN: Final = {126: "it cannot be executed", 127: "a command in it was not found"}
#: Bytes of its standard error that are looked at.
_WORDS: Final = 2048


class Script:
    """An interestingness script with a thread for each candidate that it is given at once.

    Raises:
        InputError: it is missing, or can be executed neither by itself nor (``.py``) by Python.
    """

    def __init__(self, path: Path, workers: int = 1) -> None:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"--interesting {path}: cannot be read: {error.strerror or error}") from None
        where = str(path.absolute())
        if os.access(path, os.X_OK):
            self._command = [where]
        elif path.suffix == ".py":
            self._command = [sys.executable, where]
        else:
            raise InputError(f"--interesting {path}: is not executable", hint=f"chmod +x {path}")
        self.path = path
        self.sha256 = hashlib.sha256(content).hexdigest()
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="interesting")
        self._running: set[subprocess.Popen[bytes]] = set()
        #: The last line that the latest run that ended wrote to its standard error: why a start is refused, perhaps.
        self.last_words = ""

    def submit(self, name: str, text: str, timeout: float) -> Future[Result]:
        """Queue a candidate; the future raises `InputError` if the script cannot be run."""
        return self._threads.submit(self.run, name, text, timeout)

    def run(self, name: str, text: str, timeout: float) -> Result:
        """Run the script on one candidate, for at most `timeout` seconds.

        Raises:
            InputError: it cannot be run.
        """
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="scanshrink-") as folder:
            Path(folder, name).write_text(text, encoding="utf-8")
            code = self._leave(folder, name, timeout)
        took = time.perf_counter() - began
        if code == 0:
            return Result(INTERESTING, seconds_compile=took)
        if code is None:
            return Result(uninteresting(f"no end within {timeout:g} s"), seconds_compile=took)
        if code in _BROKEN:
            raise InputError(f"--interesting {self.path}: {_BROKEN[code]} (exit code {code})")
        return Result(uninteresting(f"exit code {code}"), seconds_compile=took)

    def _leave(self, folder: str, name: str, timeout: float) -> int | None:
        """Run it in `folder`; its exit code, or None if it had to be ended."""
        with tempfile.TemporaryFile() as words:
            try:
                process = subprocess.Popen(
                    [*self._command, name],
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=words,
                    start_new_session=True,  # so that what it started goes with it
                )
            except OSError as error:
                raise InputError(
                    f"--interesting {self.path}: cannot be run: {error.strerror or error}",
                    hint="its first line must name an interpreter that exists",
                ) from None
            self._running.add(process)
            try:
                return process.wait(timeout)
            except subprocess.TimeoutExpired:
                return None
            finally:
                self._running.discard(process)
                _end(process)
                self.last_words = _last_line(words)

    def close(self) -> None:
        """End what is running."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in list(self._running):
            _end(process)
        self._threads.shutdown()

    def __enter__(self) -> Script:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _last_line(file: IO[bytes]) -> str:
    file.seek(max(file.seek(0, os.SEEK_END) - _WORDS, 0))
    lines = file.read().decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
