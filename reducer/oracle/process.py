"""One worker process as its parent sees it: started, spoken to with deadlines, watched, and ended for certain.

Not thread-safe, but for `kill`. Whatever ends the conversation is a `Gone`, which says why, and what the process wrote
last.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from reducer.oracle import protocol
from reducer.oracle.crashlog import Capture, fatal_message
from reducer.oracle.environment import worker_environment
from reducer.oracle.target import Target

_TICK = 0.1
"""Seconds between two looks at a working process's memory."""
_READ = 1 << 18
_LINE_LIMIT = 1 << 30
_GRACE = 5.0
_PAGE = os.sysconf("SC_PAGE_SIZE")
# The package's folder goes last, so that it hides nothing of the interpreter's; -P keeps the working folder out.
_BOOTSTRAP = "import sys; sys.path.append({root!r}); from reducer.oracle.worker import main; main()"

Cause: TypeAlias = Literal["died", "deadline", "memory", "garbled", "closed"]


class Gone(Exception):
    """The worker is no more. `signal` is "SIGABRT", "exit 1", ...; `message` its last fatal words."""

    def __init__(self, cause: Cause, signal_name: str, message: str) -> None:
        super().__init__(f"{cause} ({signal_name})")
        self.cause = cause
        self.signal = signal_name
        self.message = message


class WorkerProcess:
    """A child that runs `reducer.oracle.worker` for `target`. Call `start` before anything else."""

    def __init__(self, target: Target, *, memory_limit: int, command: list[str] | None = None) -> None:
        """`memory_limit` is resident bytes; `command` (for tests) replaces the interpreter and its program."""
        self.served = 0
        """Jobs that this process has read."""
        self.mapped = (0, 0)
        """Where libtpu lies in its memory, once it has said so."""
        self._memory_limit = memory_limit
        self._capture = Capture()
        self._buffer = bytearray()
        self._scanned = 0
        self._closed = False
        self._looked = 0.0
        child_reads, self._out = os.pipe()
        self._in, child_writes = os.pipe()
        log_read, log_write = os.pipe()
        self._log = log_read
        set_up = protocol.SetUp(
            parent=os.getpid(),
            library=target.path,
            topology=target.topology,
            options=target.options,
            read_fd=child_reads,
            write_fd=child_writes,
        )
        try:
            self._process = subprocess.Popen(
                [*(command or _command()), msgspec.json.encode(set_up).decode()],
                stdin=subprocess.DEVNULL,
                stdout=log_write,
                stderr=log_write,
                pass_fds=(child_reads, child_writes),
                env=worker_environment(target.path),
                start_new_session=True,  # Ctrl-C in a terminal is for the parent alone
            )
        except BaseException:
            for end in (self._out, self._in, self._log):
                os.close(end)
            raise
        finally:
            for end in (child_reads, child_writes, log_write):
                os.close(end)
        for end in (self._out, self._in, self._log):
            os.set_blocking(end, False)
        self._poll = select.poll()
        self._poll.register(self._in, select.POLLIN)
        self._poll.register(self._log, select.POLLIN)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def resident(self) -> int:
        """Return the resident memory in bytes, 0 when the process is gone."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_bytes().split()[1]) * _PAGE
        except (OSError, IndexError):
            return 0

    def forget_log(self) -> None:
        """Begin a new capture."""
        self._drain_log()
        self._capture.clear()

    def send(self, message: protocol.ToWorker, deadline: float) -> None:
        """Write one message before `deadline` (of `time.monotonic`). Raises `Gone`."""
        view = memoryview(protocol.encode(message))
        while view:
            try:
                view = view[os.write(self._out, view) :]
            except BlockingIOError:
                self._wait(deadline, writing=True)
            except OSError as error:  # EPIPE: it died; or closed by `kill` from another thread
                raise self._death() from error

    def receive(self, deadline: float) -> protocol.FromWorker:
        """Return the next message. Raises `Gone` when there is none before `deadline`, or the process ends."""
        while True:
            line = self._next_line()
            if line is not None:
                try:
                    return protocol.decode_from_worker(line)
                except msgspec.MsgspecError as error:
                    raise self._ended("garbled") from error
            self._wait(deadline)

    def garbled(self) -> Gone:
        """End the process for a message out of turn, and return the report to raise."""
        return self._ended("garbled")

    def kill(self) -> None:
        """End the process and its children at once. Safe to call twice and from another thread."""
        self._closed = True
        # The leader is not yet reaped, or was: its group may still hold children of the program's.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def dispose(self) -> None:
        """Kill the process if need be, reap it and close the pipes. Only by the thread that speaks to it."""
        self.kill()
        self._process.wait()
        for end in (self._out, self._in, self._log):
            with contextlib.suppress(OSError):
                os.close(end)
        self._out = self._in = self._log = -1

    def _next_line(self) -> bytes | None:
        end = self._buffer.find(b"\n", self._scanned)
        if end < 0:
            self._scanned = len(self._buffer)
            if self._scanned > _LINE_LIMIT:
                raise self._ended("garbled")
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._scanned = 0
        return line

    def _wait(self, deadline: float, *, writing: bool = False) -> None:
        """Wait a tick for something to read (or room to write), and look after the process meanwhile."""
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise self._ended("deadline")
        if writing:
            self._poll.register(self._out, select.POLLOUT)
        try:
            ready = self._poll.poll(min(remaining, _TICK) * 1000)
        finally:
            if writing:
                self._poll.unregister(self._out)
        ended = False
        for end, _ in ready:
            if end == self._log:
                self._drain_log(once=True)
            elif end == self._in:
                ended = not self._read_messages()
        if ended or (not ready and not self.alive):
            raise self._death()
        now = time.monotonic()
        if now - self._looked >= _TICK:
            self._looked = now
            if self.resident() > self._memory_limit:
                raise self._ended("memory")

    def _read_messages(self) -> bool:
        try:
            data = os.read(self._in, _READ)
        except BlockingIOError:
            return True
        self._buffer += data
        return bool(data)

    def _drain_log(self, *, once: bool = False) -> None:
        # Bounded even when not `once`: a flood is written as fast as it is read.
        for _ in range(1 if once else 64):
            try:
                data = os.read(self._log, _READ)
            except BlockingIOError:
                return
            if not data:
                with contextlib.suppress(KeyError):
                    self._poll.unregister(self._log)
                return
            self._capture.add(data)

    def _death(self) -> Gone:
        """Return the report of a process that closed its pipe: wait for its end, or bring it about."""
        try:
            code = self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            return self._ended("garbled")  # it closed the protocol's pipe and lives on
        self._drain_log()
        cause: Cause = "closed" if self._closed else "died"
        report = Gone(cause, _signal_name(code), self._last_words())
        self.kill()
        return report

    def _ended(self, cause: Cause) -> Gone:
        """Kill the process for `cause`, and report it."""
        closed = self._closed
        self.kill()
        self._process.wait()
        self._drain_log()
        return Gone("closed" if closed else cause, "SIGKILL", self._last_words())

    def _last_words(self) -> str:
        return fatal_message(self._capture.text(), self.mapped)


def _command() -> list[str]:
    root = str(Path(__file__).resolve().parents[2])
    return [sys.executable, "-P", "-c", _BOOTSTRAP.format(root=root)]


def _signal_name(code: int) -> str:
    if code >= 0:
        return f"exit {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
