"""A pool without workers that answers by a job's text, and a reduction on it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec

from reducer.ir.equations import Block, Op, Program, Transfer, Var
from reducer.ir.types import Type
from reducer.oracle.confirm import Confirmation
from reducer.oracle.jobs import Job, ProgramJob
from reducer.oracle.outcome import Answer, Compiled, Memory, Rejected, Result, TimedOut
from reducer.oracle.target import Target
from reducer.reduction import Progress, Reduced, Reduction, Request
from reducer.reduction.model import Candidate

TARGET = Target(libtpu="0.0.52", path="/x/libtpu.so", sha256="a" * 64)
COMPILED = Compiled(Memory())


def bug(name: str = "alpha") -> Rejected:
    """A failure; each name is a signature of its own."""
    return Rejected(f"INTERNAL: during context [post-optimization]: the {name} invariant is violated")


def chain(*primitives: str) -> Program:
    """These operations, each of the one before, and a move of the last one to the host."""
    t = Type("float32", (8, 128))
    eqns: list[Op | Transfer] = [Op(outs=(Var(i + 1, t),), primitive=p, args=(i,)) for i, p in enumerate(primitives)]
    n = len(eqns)
    eqns.append(Transfer(outs=(Var(n + 1, t.in_memory("host")),), arg=n, memory="host"))
    return Program(Block((Var(0, t),), tuple(eqns), (n + 1,)))


def text_of(job: Job) -> str:
    assert isinstance(job, ProgramJob)
    return job.source


def on_host(job: Job, _: Target) -> Answer:
    """Fails as long as something is moved to the host."""
    return bug() if "jax.device_put(" in text_of(job) else COMPILED


Answering = Callable[[Job, Target], Answer]


class FakePool:
    """Answers at once, and remembers what it was asked and how. What takes longer than it may is a time-out.

    As a pool does, it answers what its machine remembers in no time, unless that is what is asked for.
    """

    def __init__(self, machine: Machine, target: Target, workers: int) -> None:
        self.machine, self.target, self.workers = machine, target, workers

    def _result(self, job: Job, timeout: float | None = None, *, remembered: bool = False) -> Result:
        self.machine.asked.append(text_of(job) if isinstance(job, ProgramJob) else "module")
        answer = self.machine.answer(job, self.target)
        result = Result(answer, 0.25, 0.5, module_key=getattr(job, "key", ""), module=self.machine.module)
        if self.machine.seconds is None:
            return result
        took = self.machine.seconds(job)
        if remembered:
            return msgspec.structs.replace(result, seconds_lower=0.0, seconds_compile=0.0, cached=True)
        if timeout is not None and took > timeout:
            return msgspec.structs.replace(result, answer=TimedOut(timeout), seconds_compile=timeout)
        return msgspec.structs.replace(result, seconds_compile=took)

    def submit(
        self, job: Job, *, timeout: float | None = None, fresh: bool = False, want_time: bool = False, **_: Any
    ) -> Future[Result]:
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()
        try:
            remembered = self.machine.remembers and not fresh and not want_time
            future.set_result(self._result(job, timeout, remembered=remembered))
        except Exception as error:
            future.set_exception(error)
        return future

    def confirm(self, job: Job, times: int = 2, *, timeout: float | None = None, **_: Any) -> Future[Confirmation]:
        future: Future[Confirmation] = Future()
        future.set_result(Confirmation.of([self._result(job, timeout) for _ in range(times)]))
        return future

    def wait_ready(self) -> None:
        return None


class Machine:
    """Opens pools; `asked` are the texts of all jobs, `opened` the targets, `cached` whether with the cache,
    `open` how many workers there are now, and `most` how many there were at once.

    With `seconds`, jobs take so long; with `remembers` too, every answer is in the cache from before.
    """

    def __init__(self, answer: Answering, *, module: str = "") -> None:
        self.answer, self.module = answer, module
        self.seconds: Callable[[Job], float] | None = None
        self.remembers = False
        self.asked: list[str] = []
        self.opened: list[Target] = []
        self.cached: list[bool] = []
        self.open = self.most = 0

    @contextlib.contextmanager
    def __call__(self, target: Target, jobs: int, /, *, use_cache: bool = True) -> Iterator[Any]:
        self.opened.append(target)
        self.cached.append(use_cache)
        self.open += jobs
        self.most = max(self.most, self.open)
        try:
            yield FakePool(self, target, jobs)
        finally:
            self.open -= jobs


class Heard:
    """A watcher that remembers. `then` is called with each moment."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.moments: list[Progress] = []
        self.then: Callable[[Progress], None] = lambda _: None

    def say(self, line: str) -> None:
        self.lines.append(line)

    def show(self, progress: Progress) -> None:
        self.moments.append(progress)
        self.then(progress)

    def begun(self) -> None:
        self.lines.append("begun")


def request(out: Path, start: Candidate, **fields: Any) -> Request:
    """A request without the tiers that need JAX, unless told otherwise."""
    tiers = frozenset({"program", "placement"})
    return Request(**{"starts": (start,), "target": TARGET, "tiers": tiers, "out": out, **fields})


def reduce(
    out: Path, start: Candidate, answer: Answering = on_host, *, heard: Heard | None = None, **fields: Any
) -> tuple[Reduced, Machine]:
    """Reduce `start` on a machine of its own."""
    machine = Machine(answer)
    return Reduction(request(out, start, **fields), machine, heard or Heard()).run(), machine


def with_options(**options: str | int | bool) -> Target:
    return msgspec.structs.replace(TARGET, options=tuple(sorted(options.items())))
