"""A program compiled beside others that mean the same."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from reducer.ir.build import Builder
from reducer.ir.codec import decode, identity
from reducer.ir.equations import Program
from reducer.ir.types import Type
from reducer.ledger import Owed, Stack, ledger_of
from reducer.oracle.beside import BesideOracle, Costs, TimedOracle, Twinned, comparison_of
from reducer.oracle.confirm import Confirmation
from reducer.oracle.jobs import ProgramJob
from reducer.oracle.outcome import Compiled, Memory, Rejected, Result, Skipped, TimedOut
from reducer.oracle.verdict import said_of, verdict
from reducer.twins import saved_on_device, scaled_up

SEED = Path(__file__).parents[1] / "seed"
OWED = Owed((Stack("float32", (6, 8, 128), (6,), "h", "eqns[0].body"),))
BITCAST = Rejected("INTERNAL: during context [post-optimization]: Bitcast cannot have different memory spaces of x")


def seed(name: str) -> Program:
    return decode((SEED / f"{name}.json").read_bytes())


def kept(temp: int = 0) -> Result:
    return Result(Compiled(Memory(temp=temp)), ledger=ledger_of(OWED, {"f32[6,8,128]": (5,)}))


def lost() -> Result:
    return Result(Compiled(Memory()), ledger=ledger_of(OWED, {"f32[6,8,128]": (0,)}))


class FakePool:
    """Answers by the program's identity when told to, in the order of asking."""

    workers = 2

    def __init__(self, answers: dict[str, Result], *, hold: bool = False) -> None:
        self.answers = answers
        self.hold = hold
        self.asked: list[str] = []
        self.open: list[tuple[str, Future[Result]]] = []

    def submit(self, job: ProgramJob, **_: Any) -> Future[Result]:
        key = job.key.partition(":")[0]
        self.asked.append(key)
        future: Future[Result] = Future()
        if self.hold:
            self.open.append((key, future))
        else:
            future.set_result(self.answers[key])
        return future

    def confirm(self, job: ProgramJob, times: int, **_: Any) -> Future[Confirmation]:
        future: Future[Confirmation] = Future()
        future.set_result(Confirmation.of([self.submit(job).result() for _ in range(times)]))
        return future


def oracle(answers: dict[Program, Result], comparison: Any, **options: Any) -> tuple[BesideOracle, FakePool]:
    pool = FakePool({identity(program): result for program, result in answers.items()}, **options)
    return BesideOracle(pool, comparison), pool  # type: ignore[arg-type]


ONE = seed("trip_count_one_no_barrier")
BARRIER = Twinned("with the barrier")
(OTHER,) = BARRIER.others(ONE)


@pytest.mark.parametrize(
    ("twin", "word", "signature"),
    [
        (Result(BITCAST), "pair-differs", "pair-differs with the barrier: bitcast-memory-space"),
        (lost(), "pair-differs", "pair-differs with the barrier: lost-offload"),
        (kept(), "ok", None),
        (Result(Rejected("RESOURCE_EXHAUSTED: too large")), "ok", None),
        (Result(Skipped("no host placement")), "ok", None),
    ],
)
def test_a_twin_that_fails_is_a_difference(twin: Result, word: str, signature: str | None) -> None:
    asked, _ = oracle({ONE: kept(), OTHER: twin}, BARRIER)
    found = verdict(asked.submit(ONE).result())
    assert (found.word, found.signature.text if found.signature else None) == (word, signature)
    assert found.kind == (None if word == "ok" else "pair-differs")


def test_it_says_what_the_twin_did() -> None:
    asked, _ = oracle({ONE: kept(), OTHER: Result(BITCAST)}, BARRIER)
    result = asked.submit(ONE).result()
    assert said_of(result) == (
        "it is fine, and with the barrier, which means the same, it is not: rejected: " + BITCAST.message
    )
    assert result.beside is not None
    assert result.beside.results == (Result(BITCAST),)


@pytest.mark.parametrize("own", [lost(), Result(BITCAST), Result(TimedOut(1.0))])
def test_of_a_program_that_fails_itself_no_twin_is_compiled(own: Result) -> None:
    asked, pool = oracle({ONE: own}, BARRIER)
    assert asked.submit(ONE).result() == own
    assert pool.asked == [identity(ONE)]


def test_a_program_without_the_twin_is_not_compiled() -> None:
    asked, pool = oracle({}, Twinned("without loops of one step"))
    b = Builder()
    plain = Program(b.block(b.op("tanh", b.param(Type("float32", (8,))))))
    assert asked.submit(plain).result() == Result(Skipped("no such twin"))
    assert asked.repeated(plain, 2) == [Result(Skipped("no such twin"))] * 2
    assert pool.asked == []


@pytest.mark.parametrize(
    ("offloaded", "saved", "word"), [(300, 200, "offload-costs"), (200, 200, "ok"), (100, 200, "ok")]
)
def test_an_offload_costs_if_it_needs_more_than_none(offloaded: int, saved: int, word: str) -> None:
    flat = seed("flat")
    large = scaled_up(flat)
    asked, _ = oracle({flat: kept(1), large: kept(offloaded), saved_on_device(large): kept(saved)}, Costs())
    found = verdict(asked.submit(flat).result())
    assert found.word == word
    assert (found.signature.text if found.signature else None) == (None if word == "ok" else word)


def test_what_does_not_compile_when_it_is_large_costs_nothing() -> None:
    flat = seed("flat")
    large = scaled_up(flat)
    for pair in ((Result(BITCAST), kept(1)), (kept(2), Result(BITCAST))):
        asked, _ = oracle(dict(zip((flat, large, saved_on_device(large)), (kept(), *pair), strict=True)), Costs())
        assert verdict(asked.submit(flat).result()).word == "ok"


def test_repeats_are_compared_one_by_one() -> None:
    asked, pool = oracle({ONE: kept(), OTHER: Result(BITCAST)}, BARRIER)
    assert [verdict(result).word for result in asked.repeated(ONE, 2)] == ["pair-differs"] * 2
    assert pool.asked == [identity(ONE)] * 2 + [identity(OTHER)] * 2


def test_cancelling_cancels_what_is_queued() -> None:
    asked, pool = oracle({}, BARRIER, hold=True)
    whole = asked.submit(ONE)
    assert whole.cancel()
    assert [future.cancelled() for _, future in pool.open] == [True]


def test_an_error_of_the_pool_comes_through() -> None:
    asked, pool = oracle({}, BARRIER, hold=True)
    whole = asked.submit(ONE)
    pool.open[0][1].set_result(kept())
    pool.open[1][1].set_exception(RuntimeError("no worker"))
    with pytest.raises(RuntimeError, match="no worker"):
        whole.result(0)


def test_what_a_signature_is_compared_with() -> None:
    assert comparison_of("pair-differs", "pair-differs a loop of n x m steps as two: lane-slice") == Twinned(
        "a loop of n x m steps as two"
    )
    assert comparison_of("offload-costs", "offload-costs") == Costs()
    assert comparison_of("error", "INTERNAL x: y") is None


@pytest.mark.parametrize(
    ("result", "word"),
    [
        ({"seconds_compile": 9.0, "cpu_compile": 9.0}, "slow-compile"),
        ({"seconds_compile": 9.0, "cpu_compile": 1.0}, "ok"),
        ({"seconds_compile": 1.0, "cpu_compile": 9.0}, "ok"),
        ({"seconds_compile": 9.0, "cpu_compile": 9.0, "cached": True}, "ok"),
    ],
)
def test_slow_by_a_fixed_limit(result: dict[str, Any], word: str) -> None:
    answer = Result(Compiled(Memory()), **result)
    pool: Any = FakePool({identity(ONE): answer})
    found = verdict(TimedOracle(pool, 5.0).submit(ONE).result())
    assert found.word == word
