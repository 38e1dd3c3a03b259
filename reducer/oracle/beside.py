"""A program beside others that mean the same: the oracle that compiles all of them and compares.

What is compiled beside a program is derived from it each time it is asked about, also while it shrinks; it is never
stored, and none of its compiles is the program's own.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from reducer.errors import ProgramError
from reducer.ir.equations import Program
from reducer.oracle.outcome import Beside, Compiled, Result, Skipped, word
from reducer.oracle.pool import Pool
from reducer.oracle.programs import program_job
from reducer.oracle.signature import OFFLOAD_COSTS, PAIR_DIFFERS
from reducer.oracle.verdict import said_of, verdict
from reducer.twins import saved_on_device, scaled_up, twins

NO_TWIN = "no such twin"


class Comparison(Protocol):
    """What is compiled beside a program, and what comes of comparing."""

    def others(self, program: Program) -> tuple[Program, ...]:
        """The programs to compile beside it. Raises `ProgramError` if there are none."""
        ...

    def compared(self, others: Sequence[Result]) -> Beside:
        """Of a program that is fine itself: how it compares."""
        ...


@dataclass(frozen=True)
class Twinned:
    """A program that is fine, and its twin of that name, which should be."""

    name: str

    def others(self, program: Program) -> tuple[Program, ...]:
        """The twin."""
        for twin in twins(program):
            if twin.name == self.name:
                return (twin.program,)
        raise ProgramError(f"the program has no twin {self.name!r}")

    def compared(self, others: Sequence[Result]) -> Beside:
        """They differ if the twin fails, or loses its offload."""
        (twin,) = others
        judged = verdict(twin)
        if judged.failure is None or judged.word not in ("failed", "lost-offload"):
            return Beside("pair-differs")
        said = said_of(twin).partition("\n")[0]
        return Beside(
            "pair-differs",
            differs=f"{self.name}: {judged.failure.family}",
            text=f"it is fine, and {self.name}, which means the same, it is not: {word(twin.answer)}: {said}",
            results=(twin,),
        )


@dataclass(frozen=True)
class Costs:
    """A program scaled up until its offloaded values cost HBM, and the same with these values saved on the device."""

    def others(self, program: Program) -> tuple[Program, ...]:
        """With the offload, and without."""
        large = scaled_up(program)
        return large, saved_on_device(large)

    def compared(self, others: Sequence[Result]) -> Beside:
        """It costs if it needs more temporary device memory than no offload."""
        offloaded, saved = (r.answer.memory.temp if isinstance(r.answer, Compiled) else None for r in others)
        if offloaded is None or saved is None or offloaded <= saved:
            return Beside("offload-costs")
        return Beside(
            "offload-costs",
            differs=OFFLOAD_COSTS,
            text=f"scaled up it needs {offloaded} B of temporary device memory, and {saved} B if what it offloads is "
            "saved on the device",
            results=tuple(others),
        )


def comparison_of(kind: str, signature: str) -> Comparison | None:
    """What finds of a kind and signature are compared with; None of other kinds."""
    if kind == PAIR_DIFFERS:
        return Twinned(signature.removeprefix(f"{PAIR_DIFFERS} ").rpartition(": ")[0])
    return Costs() if kind == OFFLOAD_COSTS else None


class BesideOracle:
    """`Oracle[Program]`: asks about a program and, if it is fine, about what it is compared with."""

    def __init__(self, pool: Pool, comparison: Comparison, *, priority: int = 0, timeout: float | None = None) -> None:
        self._pool = pool
        self._comparison = comparison
        self._options: dict[str, Any] = {"priority": priority, "timeout": timeout, "want_ledger": True}

    @property
    def workers(self) -> int:
        """How many candidates are answered at once."""
        return self._pool.workers

    def submit(self, candidate: Program, *, fresh: bool = False) -> Future[Result]:
        """Queue a program; see `Oracle.submit`. The result is its own, with `beside` if it is fine."""
        return _chained(self._steps(candidate, fresh=fresh))

    def _steps(self, candidate: Program, *, fresh: bool) -> Generator[Future[Result], Result, Result]:
        try:
            jobs = [program_job(other) for other in self._comparison.others(candidate)]
            job = program_job(candidate, require_host_placement=True)
        except ProgramError:
            return Result(Skipped(NO_TWIN))
        own = yield self._pool.submit(job, fresh=fresh, **self._options)
        if verdict(own).word != "ok":
            return own
        results: list[Result] = []
        for other in jobs:
            answer = yield self._pool.submit(other, fresh=fresh, **self._options)
            results.append(answer)
        return msgspec.structs.replace(own, beside=self._comparison.compared(results))

    def repeated(self, candidate: Program, times: int, *, priority: int = 0) -> list[Result]:
        """The answers of `times` repeats, each program alone in a new worker.

        Raises:
            WorkerError, TargetError: no worker can be had.
        """
        try:
            programs = (candidate, *self._comparison.others(candidate))
            jobs = [program_job(program) for program in programs]
        except ProgramError:
            return [Result(Skipped(NO_TWIN))] * times
        futures = [self._pool.confirm(job, times, priority=priority, want_ledger=True) for job in jobs]
        found = [future.result().results for future in futures]
        return [
            own if verdict(own).word != "ok" else msgspec.structs.replace(own, beside=self._comparison.compared(others))
            for own, *others in zip(*found, strict=True)
        ]


class TimedOracle:
    """`Oracle[Program]`: compiles each program however much of it is known, and judges by a fixed limit in seconds."""

    def __init__(self, pool: Pool, limit: float, *, priority: int = 0) -> None:
        self._pool = pool
        self._limit = limit
        self._priority = priority

    @property
    def workers(self) -> int:
        """How many candidates are answered at once."""
        return self._pool.workers

    def submit(self, candidate: Program, *, fresh: bool = False) -> Future[Result]:
        """Queue a program; see `Oracle.submit`."""
        return _chained(self._steps(candidate, fresh=fresh))

    def _steps(self, candidate: Program, *, fresh: bool) -> Generator[Future[Result], Result, Result]:
        job = program_job(candidate, require_host_placement=True)
        result = yield self._pool.submit(job, fresh=fresh, priority=self._priority, want_ledger=True, want_time=True)
        return timed(result, self._limit)


def timed(result: Result, limit: float) -> Result:
    """The result, judged by a limit in seconds."""
    return msgspec.structs.replace(result, slow_limit=limit)


def _chained(steps: Generator[Future[Result], Result, Result]) -> Future[Result]:
    """One future for questions of which each depends on the answer before. Cancelling it cancels what is queued."""
    whole: Future[Result] = Future()
    asked: list[Future[Result]] = []

    def advance(answered: Future[Result] | None) -> None:
        if whole.cancelled() or (answered is not None and answered.cancelled()):
            whole.cancel()
            steps.close()
            return
        try:
            error = answered.exception() if answered is not None else None
            if error is not None:
                question = steps.throw(error)
            else:
                question = steps.send(answered.result()) if answered is not None else next(steps)
        except StopIteration as end:
            if whole.set_running_or_notify_cancel():
                whole.set_result(end.value)
        except BaseException as failed:
            if whole.set_running_or_notify_cancel():
                whole.set_exception(failed)
        else:
            asked.append(question)
            question.add_done_callback(advance)

    whole.add_done_callback(lambda one: asked[-1].cancel() if one.cancelled() and asked else None)
    advance(None)
    return whole


__all__ = ["BesideOracle", "Comparison", "Costs", "TimedOracle", "Twinned", "comparison_of", "timed"]
