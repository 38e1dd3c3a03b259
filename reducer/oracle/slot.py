"""One place for a worker in a pool: keeps a worker there, asks it, and turns its deaths into answers.

Used by one thread, but for `stop`. The retries are here: see the promises in `reducer.oracle.pool`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from reducer.errors import ScanshrinkError, WorkerError
from reducer.oracle.cache import CacheView
from reducer.oracle.conversation import Conversation, Died, Want
from reducer.oracle.jobs import Job, ScriptJob, compiled_as
from reducer.oracle.outcome import (
    Crashed,
    Incompatible,
    Invalid,
    Phase,
    Result,
    TimedOut,
)
from reducer.oracle.process import Gone, WorkerProcess
from reducer.oracle.startup import ATTEMPTS, Unfit, start_worker
from reducer.oracle.target import Target

_FROM_OUTSIDE = frozenset({"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"})
_UNBLAMED_DEATHS = 5


class Limits(msgspec.Struct, frozen=True):
    """When a worker is killed or replaced: resident bytes, jobs served, resident bytes after a job, seconds."""

    memory: int
    recycle_jobs: int
    recycle_memory: int
    start_seconds: float


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
                self._next_id += 1
                result = Conversation(process, self._cache, job, timeout, fresh=fresh, want=want).run(self._next_id)
            except Died as died:
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

    def _blame(self, job: Job, died: Died, timeout: float, seconds: float, *, fresh: bool) -> Result:
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
            module=died.module,
        )


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
