"""One place for a worker in a pool: keeps a worker there, asks it, and turns its deaths into answers.

Used by one thread, but for `stop`. The retries are here: see the promises in `reducer.oracle.pool`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from reducer.errors import ScanshrinkError, WorkerError
from reducer.ledger.judge import Ledger, ledger_of
from reducer.ledger.owed import Owed
from reducer.oracle import protocol
from reducer.oracle.cache import CacheView
from reducer.oracle.jobs import Job, ScriptJob, compiled_as, job_key
from reducer.oracle.outcome import (
    NO_HOST_PLACEMENT,
    Answer,
    Compiled,
    Crashed,
    Incompatible,
    Invalid,
    Phase,
    Result,
    Skipped,
    TimedOut,
)
from reducer.oracle.process import Gone, WorkerProcess
from reducer.oracle.startup import ATTEMPTS, Unfit, start_worker
from reducer.oracle.target import Target

_READ_SECONDS = 60.0
"""Longest a healthy worker takes to say that it read a job, on a busy machine."""
_FROM_OUTSIDE = frozenset({"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"})
_UNBLAMED_DEATHS = 5


class Limits(msgspec.Struct, frozen=True):
    """When a worker is killed or replaced: resident bytes, jobs served, resident bytes after a job, seconds."""

    memory: int
    recycle_jobs: int
    recycle_memory: int
    start_seconds: float


class Want(msgspec.Struct, frozen=True):
    """What is wanted beside the outcome: the module's text, the memory ledger."""

    module: bool = False
    ledger: bool = False


class _Died(Exception):
    """The worker's end during a job, with how far the job had come."""

    def __init__(self, gone: Gone, phase: Phase | None, seconds_lower: float = 0.0, module_key: str = "") -> None:
        super().__init__(str(gone))
        self.gone = gone
        self.phase = phase
        self.seconds_lower = seconds_lower
        self.module_key = module_key


def known_answer(cache: CacheView, job: Job, timeout: float, *, want_ledger: bool = False) -> Result | None:
    """Return what the cache says of `job` before anything is lowered, or None if that is not all that is wanted."""
    program = cache.program(job_key(job))
    if program is None:
        return None
    if program.invalid is not None:
        return Result(Invalid(program.invalid), cached=True)
    if job.require_host_placement and not program.host_placement:
        return Result(Skipped(NO_HOST_PLACEMENT), module_key=program.module_key, cached=True)
    outcome = cache.outcome(compiled_as(job, program.module_key), timeout, want_buffers=want_ledger)
    if outcome is None or (want_ledger and program.owed is None):
        return None
    ledger = _ledger(outcome, program.owed) if want_ledger else None
    return Result(outcome, module_key=program.module_key, cached=True, ledger=ledger)


def _ledger(answer: Answer, owed: Owed | None) -> Ledger | None:
    if not isinstance(answer, Compiled) or owed is None:
        return None
    return ledger_of(owed, answer.buffers, answer.unread)


class Slot:
    """A worker's place. `note(what, seconds)` is told of "start", "busy" and "death"."""

    def __init__(
        self,
        target: Target,
        limits: Limits,
        cache: CacheView | None,
        note: Callable[[str, float], None],
        command: list[str] | None = None,
    ) -> None:
        self._target = target
        self._limits = limits
        self._cache = cache
        self._note = note
        self._command = command
        self._process: WorkerProcess | None = None
        self._unfit: ScanshrinkError | Incompatible | None = None
        self._was_ready = False
        self._stopped = False
        self._lock = threading.Lock()
        self._next_id = 0

    def prepare(self) -> ScanshrinkError | Incompatible | None:
        """Have a worker ready. Returns why there cannot be one."""
        if self._unfit is not None or self._process is not None:
            return self._unfit
        reason: ScanshrinkError | Incompatible
        try:
            self._start()
            self._was_ready = True
            return None
        except Unfit as unfit:
            reason = unfit.reason
        except ScanshrinkError as error:
            reason = error
        if not self._was_ready:
            self._unfit = reason  # for good; a place that has worked before is given another chance each time
        return reason

    def stop(self) -> None:
        """End the worker from another thread: whatever is asked of this slot then fails."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """End the worker and release its pipes."""
        self._retire()

    def ask(self, job: Job, timeout: float, *, fresh: bool, first: bool, want: Want) -> Result:
        """Return the job's result, in a new worker if `fresh` (a repeat, not `first`, keeps the one it has).

        Raises `WorkerError` or `TargetError` when no worker can be had, or the slot was stopped.
        """
        unblamed = repeats = 0
        while True:
            process = self._worker(fresh=fresh and first and unblamed + repeats == 0)
            if isinstance(process, Incompatible):
                return Result(process)
            started = time.perf_counter()
            try:
                result = self._converse(process, job, timeout, fresh=fresh, want=want)
            except _Died as died:
                self._note("death", 0.0)
                self._retire()
                if died.gone.cause == "closed":
                    raise WorkerError("the pool was closed") from None
                if died.phase is None:
                    unblamed += 1
                    if unblamed > _UNBLAMED_DEATHS:
                        raise WorkerError(
                            f"workers keep dying before they take a job: {died.gone.signal}",
                            hint="is the machine out of memory? try fewer --jobs",
                        ) from None
                    continue
                if repeats == 0 and _worth_repeating(died.gone):
                    repeats += 1
                    continue
                return self._blame(job, died, timeout, time.perf_counter() - started, fresh=fresh)
            self._note("busy", result.seconds_lower + result.seconds_compile)
            self._recycle(process, job)
            return result

    def _worker(self, *, fresh: bool) -> WorkerProcess | Incompatible:
        if fresh and self._process is not None and self._process.served:
            self._retire()
        if self._process is not None and not self._process.alive:
            self._note("death", 0.0)
            self._retire()
        unfit = self.prepare()
        if isinstance(unfit, ScanshrinkError):
            raise unfit
        if unfit is not None:
            return unfit
        assert self._process is not None
        return self._process

    def _start(self) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            began = time.perf_counter()
            try:
                ready = start_worker(self._spawn(), self._target, attempt=attempt, seconds=self._limits.start_seconds)
            except Gone:
                self._retire()
                raise WorkerError("the pool was closed") from None
            except BaseException:
                self._retire()
                raise
            self._note("start", time.perf_counter() - began)
            if ready is not None:
                return
            self._retire()
        raise AssertionError("the last attempt either succeeds or raises")

    def _spawn(self) -> WorkerProcess:
        try:
            process = WorkerProcess(self._target, memory_limit=self._limits.memory, command=self._command)
        except OSError as error:
            raise WorkerError(f"cannot start a worker process: {error}") from error
        with self._lock:
            self._process = process
            if self._stopped:
                process.kill()
        return process

    def _retire(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.dispose()

    def _recycle(self, process: WorkerProcess, job: Job) -> None:
        limits = self._limits
        if (
            isinstance(job, ScriptJob)  # it may have changed JAX's configuration, or left threads behind
            or process.served >= limits.recycle_jobs
            or process.resident() > limits.recycle_memory
        ):
            self._retire()

    def _converse(self, process: WorkerProcess, job: Job, timeout: float, *, fresh: bool, want: Want) -> Result:
        """Have one job lowered and compiled. Raises `_Died`."""
        self._next_id += 1
        number = self._next_id
        phase: Phase | None = None
        lowered: protocol.Lowered | None = None
        try:
            process.forget_log()
            process.send(protocol.Lower(number, job, want.module, want.ledger), time.monotonic() + _READ_SECONDS)
            _expect(process, process.receive(time.monotonic() + _READ_SECONDS), number, protocol.Started)
            process.served += 1
            phase = "lower"
            message = process.receive(time.monotonic() + timeout)
            if isinstance(message, protocol.Answered):
                return self._invalid(_expect(process, message, number, protocol.Answered), job, process.pid)
            lowered = _expect(process, message, number, protocol.Lowered)
            early = self._decided(lowered, job, timeout, fresh=fresh, want_ledger=want.ledger)
            if early is not None:
                process.send(protocol.Drop(number), time.monotonic() + _READ_SECONDS)
                return self._result(early, lowered, 0.0, process.pid, cached=not isinstance(early, Skipped))
            process.send(protocol.Compile(number), time.monotonic() + _READ_SECONDS)
            phase = "compile"
            answer = _expect(process, process.receive(time.monotonic() + timeout), number, protocol.Answered)
        except Gone as gone:
            seconds, key = (lowered.seconds, lowered.module_key) if lowered is not None else (0.0, "")
            raise _Died(gone, phase, seconds, key) from None
        if self._cache is not None:
            self._cache.store(compiled_as(job, lowered.module_key), answer.outcome, fresh=fresh)
        return self._result(answer.outcome, lowered, answer.seconds, process.pid)

    def _decided(
        self, lowered: protocol.Lowered, job: Job, timeout: float, *, fresh: bool, want_ledger: bool
    ) -> Answer | None:
        """Return the answer that makes compiling needless, if there is one; remember the module's key."""
        if self._cache is not None:
            self._cache.remember(
                job_key(job), lowered.module_key, host_placement=lowered.host_placement, owed=lowered.owed
            )
        if job.require_host_placement and not lowered.host_placement:
            return Skipped(NO_HOST_PLACEMENT)
        if self._cache is None or fresh:
            return None
        return self._cache.outcome(compiled_as(job, lowered.module_key), timeout, want_buffers=want_ledger)

    @staticmethod
    def _result(answer: Answer, lowered: protocol.Lowered, seconds: float, pid: int, *, cached: bool = False) -> Result:
        return Result(
            answer,
            seconds_lower=lowered.seconds,
            seconds_compile=seconds,
            module_key=lowered.module_key,
            cached=cached,
            worker_pid=pid,
            module=lowered.module,
            ledger=_ledger(answer, lowered.owed),
        )

    def _invalid(self, message: protocol.Answered, job: Job, pid: int) -> Result:
        if self._cache is not None and isinstance(message.outcome, Invalid):
            self._cache.remember_invalid(job_key(job), message.outcome.message)
        return Result(message.outcome, seconds_lower=message.seconds, worker_pid=pid)

    def _blame(self, job: Job, died: _Died, timeout: float, seconds: float, *, fresh: bool) -> Result:
        """Return the result of a job that took its worker down."""
        assert died.phase is not None
        outcome = _outcome_of(died.gone, died.phase, timeout, self._limits.memory)
        self._note("busy", seconds)
        if self._cache is not None and died.phase == "compile" and not isinstance(outcome, Invalid):
            self._cache.store(compiled_as(job, died.module_key), outcome, fresh=fresh)
        lowering = died.seconds_lower if died.phase == "compile" else seconds
        return Result(
            outcome,
            seconds_lower=lowering,
            seconds_compile=max(seconds - lowering, 0.0) if died.phase == "compile" else 0.0,
            module_key=died.module_key,
        )


_M = TypeVar("_M", protocol.Started, protocol.Lowered, protocol.Answered)


def _expect(process: WorkerProcess, message: protocol.FromWorker, number: int, kind: type[_M]) -> _M:
    """Return `message` if it is of `kind` and about this job; anything else was written by the program."""
    if isinstance(message, kind) and message.id == number:
        return message
    raise process.garbled()


def _worth_repeating(gone: Gone) -> bool:
    """Whether a death says more about the machine, or about stray writes, than about the job."""
    return gone.cause == "garbled" or (gone.cause == "died" and gone.signal in _FROM_OUTSIDE)


def _outcome_of(gone: Gone, phase: Phase, timeout: float, memory: int) -> Crashed | TimedOut | Invalid:
    if gone.cause == "deadline":
        return TimedOut(timeout, phase)
    if gone.cause == "memory":
        return Crashed("memory-cap", f"used more than {memory >> 20} MiB of memory", phase)
    if gone.cause == "garbled":
        return Invalid("the program wrote to the pipe its worker speaks through, or closed it")
    return Crashed(gone.signal, gone.message, phase)
