"""A pool without workers, and the commands' seams to put it in place."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from click.testing import Result as Ran

from reducer.cli import main
from reducer.ir.codec import encode
from reducer.ir.equations import Block, Grad, Op, Program, Transfer, Var
from reducer.ir.types import Type
from reducer.oracle.confirm import Confirmation
from reducer.oracle.counters import PoolStats
from reducer.oracle.jobs import Job
from reducer.oracle.outcome import Answer, Compiled, Incompatible, Memory, Rejected, Result
from reducer.oracle.target import Target

COMPILED = Compiled(Memory(host_temp=12288, temp=0))
TARGET = Target(libtpu="0.0.52", path="/x/libtpu.so", sha256="a" * 64)
BITCAST = Rejected(
    "INTERNAL: during context [post-optimization]: %bitcast.42 = f32[1,8]{1,0:T(8,128)S(5)} bitcast(%p): Bitcast "
    "cannot have different memory spaces of output (5) and operand (0)"
)


def chain(length: int, *, placed: bool = True, gradient: bool = False) -> Program:
    """`length` tanh, and a move to the host if `placed`."""
    t = Type("float32", (8, 128))
    eqns: list[Op | Transfer] = [Op(outs=(Var(i + 1, t),), primitive="tanh", args=(i,)) for i in range(length)]
    results: tuple[int, ...] = (length,)
    if placed:
        eqns.append(Transfer(outs=(Var(length + 1, t.in_memory("host")),), arg=length, memory="host"))
        results = (length, length + 1)
    return Program(
        Block((Var(0, t),), tuple(eqns), results), gradient=Grad((0,), with_value=False) if gradient else None
    )


def write(path: Path, program: Program) -> str:
    path.write_bytes(encode(program))
    return str(path)


class FakePool:
    """Answers a job by `answer(job)`, at once."""

    def __init__(self, answer: Callable[[Job], Answer], target: Target, workers: int) -> None:
        self.answer, self.target, self.workers = answer, target, workers
        self.busy_seconds = 0.0
        self.compiled = 0

    def submit(self, job: Job, **_: Any) -> Future[Result]:
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()
        self.compiled += 1
        try:
            key = getattr(job, "key", "") or str(self.compiled)
            future.set_result(Result(self.answer(job), 0.25, 0.5, module_key=key, module="module {}"))
        except Exception as error:
            future.set_exception(error)
        return future

    def confirm(self, job: Job, times: int = 2, **_: Any) -> Future[Confirmation]:
        future: Future[Confirmation] = Future()
        future.set_result(Confirmation.of([Result(self.answer(job)) for _ in range(times)]))
        return future

    def stats(self) -> PoolStats:
        return PoolStats(
            queued=0,
            running=0,
            answered=0,
            cached=0,
            skipped=0,
            invalid=0,
            compiled=self.compiled,
            deaths=0,
            starts=0,
            busy_seconds=0.0,
            start_seconds=0.0,
        )

    def wait_ready(self) -> Incompatible | None:
        return None


class Opened:
    """Stands for `open_pool`; remembers with what each pool was opened."""

    def __init__(self, answer: Callable[[Job], Answer]) -> None:
        self.answer = answer
        self.unfit: Incompatible | None = None
        self.calls: list[tuple[Target, int, dict[str, Any]]] = []

    @contextlib.contextmanager
    def __call__(self, target: Target, jobs: int, **options: Any) -> Iterator[FakePool]:
        self.calls.append((target, jobs, options))
        pool = FakePool(self.answer, target, jobs)
        pool.wait_ready = lambda: self.unfit  # type: ignore[method-assign]
        yield pool


def invoke(*words: str) -> Ran:
    """Run the command line in this process; an error that is not of the contract is raised."""
    ran = CliRunner().invoke(main, list(words), catch_exceptions=False)
    assert "Traceback" not in ran.output
    return ran


def machine(*words: str) -> tuple[dict[str, Any], int]:
    """Run with ``--json``: the one object, and the exit code."""
    ran = invoke(*words, "--json")
    assert ran.stdout.count("\n") == 1, ran.stdout
    return json.loads(ran.stdout), ran.exit_code


def one_error(ran: Ran, *expected: str) -> None:
    """The contract of an error: exit code 2, nothing on stdout, one line on stderr that says `expected`."""
    assert ran.exit_code == 2, ran.output
    assert ran.stdout == ""
    assert ran.stderr.count("\n") == 1, ran.stderr
    assert ran.stderr.startswith("scanshrink")
    for words in expected:
        assert words in ran.stderr
