"""What is asked next: one question for several likely candidates, and a question for every worker."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from functools import partial

import pytest

from reducer.oracle.fake import FakeOracle
from reducer.oracle.outcome import Compiled, Memory, Outcome, Rejected, Result
from reducer.passes.base import Candidate, Chances, Pass
from reducer.shrink import Shrunk, Tier, shrink

TIER: Tier[int] = Tier(
    name="program",
    forms=(lambda n: n,),
    check=lambda _: None,
    key=str,
    order_key=lambda n: n,
    size=lambda n: n,
    text=str,
)


def down(chance: float) -> Pass[int]:
    """One step down at a time."""
    return Pass(
        "down",
        "go down",
        lambda n: [partial(int, n - 1)] if n else [],
        1,
        "linear",
        chances=Chances(chance, chance, chance, chance),
    )


def at_least(least: int) -> Callable[[int], Outcome]:
    return lambda n: Rejected("wanted") if n >= least else Compiled(Memory())


def wanted(result: Result) -> bool:
    return isinstance(result.answer, Rejected)


def run(start: int, least: int, chance: float) -> tuple[Shrunk[int], list[int]]:
    with FakeOracle(at_least(least)) as oracle:
        return shrink(start, oracle, wanted, tier=TIER, passes=[down(chance)], restart=False), oracle.calls


def test_what_is_hardly_likely_is_asked_one_by_one() -> None:
    shrunk, calls = run(3, 0, 0.1)
    assert (shrunk.program, calls) == (0, [3, 2, 1, 0])


def test_what_is_likely_is_skipped_over() -> None:
    # Golomb's rule for a chance of 0.9: of seven in a row only the last is asked about.
    shrunk, calls = run(7, 0, 0.9)
    assert (shrunk.program, calls) == (0, [7, 0])
    assert (shrunk.stats["down"].accepted, shrunk.stats["down"].proposed, shrunk.compiles) == (7, 7, 2)
    assert shrunk.history == ((1, 7), (2, 0))


def test_of_a_way_that_ends_too_far_the_end_is_found_by_halving() -> None:
    shrunk, calls = run(7, 4, 0.9)
    assert shrunk.program == 4
    # All seven steps are too many; three are not, five are, and so are four.
    assert calls == [7, 0, 4, 2, 3]


@pytest.mark.parametrize("least", range(12))
@pytest.mark.parametrize("chance", [0.05, 0.5, 0.95])
def test_the_chances_decide_nothing(least: int, chance: float) -> None:
    shrunk, calls = run(11, least, chance)
    assert (shrunk.program, shrunk.minimal) == (least, True)
    assert len(calls) == len(set(calls)) == shrunk.compiles


class Slow:
    """An oracle whose answers come when they are waited for, one at a time: the oldest first."""

    def __init__(self, answer: Callable[[int], Outcome], workers: int) -> None:
        self.answer, self.workers = answer, workers
        self.open: list[tuple[int, Future[Result]]] = []
        self.under_way: list[list[int]] = []

    def submit(self, candidate: int, *, fresh: bool = False) -> Future[Result]:  # noqa: ARG002
        future: Future[Result] = Future()
        self.open.append((candidate, future))
        return future

    def pause(self, futures: Collection[Future[Result]]) -> None:
        assert {id(future) for _, future in self.open} <= {id(future) for future in futures}
        self.under_way.append([candidate for candidate, _ in self.open])
        candidate, future = self.open.pop(0)
        future.set_result(Result(self.answer(candidate)))


@pytest.mark.parametrize("workers", [2, 3])
def test_every_worker_has_a_question_from_the_first_moment_on(workers: int) -> None:
    oracle = Slow(at_least(20), workers)
    shrunk = shrink(24, oracle, wanted, tier=TIER, passes=[down(0.1)], restart=False, pause=oracle.pause)
    assert shrunk.program == 20
    assert oracle.under_way[0][0] == 24
    assert all(len(asked) == workers for asked in oracle.under_way[:-2])


def test_the_likelier_of_two_ways_is_asked_about_ahead() -> None:
    def two(n: int) -> list[Candidate[int]]:
        return [partial(int, n - 10), partial(int, n - 1)] if n > 10 else []

    ahead = {}
    for chance in (0.1, 0.55):
        oracle = Slow(at_least(100), 2)
        one = Pass("two", "go down", two, 1, "linear", chances=Chances(chance, chance, chance, chance))
        shrink(115, oracle, wanted, tier=TIER, passes=[one], restart=False, pause=oracle.pause)
        ahead[chance] = oracle.under_way[1]
    # While 105 is compiled: 114 is next if it is refused, 95 if it is accepted.
    assert ahead == {0.1: [105, 114], 0.55: [105, 95]}
