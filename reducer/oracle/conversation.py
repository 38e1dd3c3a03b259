"""One job and one worker: what they say to each other, and what the outcome cache answers in between."""

from __future__ import annotations

import time
from typing import TypeVar

import msgspec

from reducer.ledger.judge import Ledger, ledger_of
from reducer.ledger.owed import Owed
from reducer.oracle import protocol
from reducer.oracle.cache import CacheView
from reducer.oracle.jobs import Job, compiled_as, job_key
from reducer.oracle.outcome import NO_HOST_PLACEMENT, Answer, Compiled, Invalid, Phase, Result, Skipped
from reducer.oracle.process import Gone, WorkerProcess

READ_SECONDS = 60.0
"""Longest a healthy worker takes to say that it read a job, on a busy machine."""


class Want(msgspec.Struct, frozen=True):
    """What is wanted beside the outcome: the module's text, the memory ledger, how long it takes."""

    module: bool = False
    ledger: bool = False
    time: bool = False


class Died(Exception):
    """The worker's end during a job, with how far the job had come."""

    def __init__(
        self, gone: Gone, phase: Phase | None, seconds_lower: float = 0.0, module_key: str = "", module: str = ""
    ) -> None:
        super().__init__(str(gone))
        self.gone = gone
        self.phase = phase
        self.seconds_lower = seconds_lower
        self.module_key = module_key
        self.module = module


def known_answer(cache: CacheView, job: Job, timeout: float, *, want_ledger: bool = False) -> Result | None:
    """Return what the cache says of `job` before anything is lowered, or None if that is not all that is wanted."""
    program = cache.program(job_key(job))
    if program is None:
        return None
    if program.invalid is not None:
        return Result(Invalid(program.invalid), cached=True)
    if job.require_host_placement and not program.host_placement:
        return Result(Skipped(NO_HOST_PLACEMENT), module_key=program.module_key, cached=True)
    if want_ledger and program.owed is None:
        return None
    wanted = want_ledger and program.owed is not None and program.owed.anything
    outcome = cache.outcome(compiled_as(job, program.module_key), timeout, want_buffers=wanted)
    if outcome is None:
        return None
    owed = program.owed if want_ledger else None
    return Result(
        outcome,
        module_key=program.module_key,
        cached=True,
        ledger=_ledger(outcome, owed),
        returns_host=owed is None or owed.returns_host,
    )


def _ledger(answer: Answer, owed: Owed | None) -> Ledger | None:
    if not isinstance(answer, Compiled) or owed is None:
        return None
    return ledger_of(owed, answer.buffers, answer.unread, carried=answer.carried)


class Conversation:
    """A job put to a worker: alone in a new one if `fresh`, which makes the cache be told and not asked."""

    def __init__(
        self, process: WorkerProcess, cache: CacheView | None, job: Job, timeout: float, *, fresh: bool, want: Want
    ) -> None:
        self._process = process
        self._cache = cache
        self._job = job
        self._timeout = timeout
        self._fresh = fresh
        self._want = want

    def run(self, number: int) -> Result:
        """Have the job lowered and compiled; `number` tells it from the worker's other jobs. Raises `Died`."""
        process, job, want = self._process, self._job, self._want
        phase: Phase | None = None
        lowered: protocol.Lowered | None = None
        try:
            process.forget_log()
            process.send(protocol.Lower(number, job, want.module, want.ledger), time.monotonic() + READ_SECONDS)
            _expect(process, process.receive(time.monotonic() + READ_SECONDS), number, protocol.Started)
            process.served += 1
            phase = "lower"
            message = process.receive(time.monotonic() + self._timeout)
            if isinstance(message, protocol.Answered):
                return self._invalid(_expect(process, message, number, protocol.Answered))
            lowered = _expect(process, message, number, protocol.Lowered)
            early = self._decided(lowered)
            if early is not None:
                process.send(protocol.Drop(number), time.monotonic() + READ_SECONDS)
                return self._result(early, lowered, 0.0, cached=not isinstance(early, Skipped))
            process.send(protocol.Compile(number), time.monotonic() + READ_SECONDS)
            phase = "compile"
            answer = _expect(process, process.receive(time.monotonic() + self._timeout), number, protocol.Answered)
        except Gone as gone:
            if lowered is None:
                raise Died(gone, phase) from None
            raise Died(gone, phase, lowered.seconds, lowered.module_key, lowered.module) from None
        if self._cache is not None:
            self._cache.store(compiled_as(job, lowered.module_key), answer.outcome, fresh=self._fresh)
        return self._result(answer.outcome, lowered, answer.seconds, cpu=answer.cpu)

    def _decided(self, lowered: protocol.Lowered) -> Answer | None:
        """Return the answer that makes compiling needless, if there is one; remember the module's key."""
        job = self._job
        if self._cache is not None:
            self._cache.remember(
                job_key(job), lowered.module_key, host_placement=lowered.host_placement, owed=lowered.owed
            )
        if job.require_host_placement and not lowered.host_placement:
            return Skipped(NO_HOST_PLACEMENT)
        if self._cache is None or self._fresh or self._want.time:
            return None
        wanted = lowered.owed is not None and lowered.owed.anything
        return self._cache.outcome(compiled_as(job, lowered.module_key), self._timeout, want_buffers=wanted)

    def _result(
        self, answer: Answer, lowered: protocol.Lowered, seconds: float, *, cached: bool = False, cpu: float = 0.0
    ) -> Result:
        return Result(
            answer,
            seconds_lower=lowered.seconds,
            seconds_compile=seconds,
            module_key=lowered.module_key,
            cached=cached,
            worker_pid=self._process.pid,
            module=lowered.module,
            ledger=_ledger(answer, lowered.owed),
            returns_host=lowered.owed is None or lowered.owed.returns_host,
            cpu_compile=cpu,
            lines=lowered.lines,
        )

    def _invalid(self, message: protocol.Answered) -> Result:
        if self._cache is not None and isinstance(message.outcome, Invalid):
            self._cache.remember_invalid(job_key(self._job), message.outcome.message)
        return Result(message.outcome, seconds_lower=message.seconds, worker_pid=self._process.pid)


_M = TypeVar("_M", protocol.Started, protocol.Lowered, protocol.Answered)


def _expect(process: WorkerProcess, message: protocol.FromWorker, number: int, kind: type[_M]) -> _M:
    """Return `message` if it is of `kind` and about this job; anything else was written by the program."""
    if isinstance(message, kind) and message.id == number:
        return message
    raise process.garbled()
