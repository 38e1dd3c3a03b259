"""What is asked next: one question for several likely candidates, and a question for every worker."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from functools import partial

import pytest

from reducer.errors import WorkerError
from reducer.oracle.fake import FakeOracle
from reducer.oracle.outcome import Compiled, Invalid, Memory, Outcome, Rejected, Result
from reducer.passes.base import Candidate, Chances, Pass
from reducer.shrink import Event, Shrunk, Tier, shrink

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
def test_the_chances_do_not_change_an_only_minimum(least: int, chance: float) -> None:
    shrunk, calls = run(11, least, chance)
    assert (shrunk.program, shrunk.minimal) == (least, True)
    assert len(calls) == len(set(calls)) == shrunk.compiles


def test_what_is_accepted_is_told_before_what_was_skipped_over() -> None:
    # From 3 the pass "down" ends at 1, where "last" begins: one question for all of it.
    def above_one(n: int) -> list[Candidate[int]]:
        return [partial(int, n - 1)] if n > 1 else []

    def last(n: int) -> list[Candidate[int]]:
        return [partial(int, 0)] if n == 1 else []

    sure = Chances(0.9, 0.9, 0.9, 0.9)
    passes = [Pass("down", "go down", above_one, 1, "linear", chances=sure)]
    passes.append(Pass("last", "make the last step", last, 1, "1", chances=sure))
    told: list[str] = []

    def events(event: Event[int]) -> None:
        told.append(f"{type(event).__name__} {getattr(event, 'name', '')}".strip())

    with FakeOracle(at_least(0)) as oracle:
        shrink(3, oracle, wanted, tier=TIER, passes=passes, restart=False, events=events)
    assert oracle.calls == [3, 0]
    assert told[:7] == [
        "Started",
        "PassStarted down",
        "Accepted last",
        "PassFinished down",
        "PassStarted last",
        "Tried last",
        "PassFinished last",
    ]


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


def test_an_answer_that_comes_while_looking_ahead_is_taken_at_once() -> None:
    class Quick(Slow):
        """Whatever is asked while other questions are open, these are answered."""

        def submit(self, candidate: int, *, fresh: bool = False) -> Future[Result]:
            before, self.open = self.open, []
            for asked, future in before:
                future.set_result(Result(self.answer(asked)))
            calls.append(candidate)
            return super().submit(candidate, fresh=fresh)

        def pause(self, futures: Collection[Future[Result]]) -> None:
            if not any(future.done() for future in futures):
                super().pause(futures)

    calls: list[int] = []
    oracle = Quick(at_least(22), 8)
    shrunk = shrink(24, oracle, wanted, tier=TIER, passes=[down(0.1)], restart=False, pause=oracle.pause)
    assert shrunk.program == 22
    # 23 while 24 is open, 22 while 23 is, and so on: one each time, though there is room for eight.
    assert calls == [24, 23, 22, 21, 20]


class Backwards(Slow):
    """The youngest question is answered first."""

    def pause(self, futures: Collection[Future[Result]]) -> None:
        self.open.reverse()
        super().pause(futures)
        self.open.reverse()


@pytest.mark.parametrize("workers", [1, 4])
def test_counts_do_not_tell_what_was_asked_ahead(workers: int) -> None:
    # One worker skips over 2, which does not lower; others ask about it ahead.
    answers: dict[int, Outcome] = {2: Invalid("no")}

    def answer(n: int) -> Outcome:
        return answers.get(n, Rejected("wanted"))

    slow = Backwards(answer, workers)
    with FakeOracle(answer) as fake:
        oracle = fake if workers == 1 else slow
        shrunk = shrink(4, oracle, wanted, tier=TIER, passes=[down(0.9)], restart=False, pause=slow.pause)
    assert (2 in {candidate for asked in slow.under_way for candidate in asked}) is (workers > 1)
    assert (shrunk.program, shrunk.invalid, shrunk.compiles) == (0, 0, 2)


def test_a_question_asked_ahead_that_fails_is_not_waited_for() -> None:
    class Breaking(Slow):
        """Whatever is asked while another question is open fails at once."""

        def submit(self, candidate: int, *, fresh: bool = False) -> Future[Result]:
            if not self.open:
                return super().submit(candidate, fresh=fresh)
            future: Future[Result] = Future()
            future.set_exception(WorkerError("no worker"))
            return future

        def pause(self, futures: Collection[Future[Result]]) -> None:
            assert not any(future.done() for future in futures)
            super().pause(futures)

    oracle = Breaking(at_least(20), 3)
    with pytest.raises(WorkerError):
        shrink(24, oracle, wanted, tier=TIER, passes=[down(0.1)], restart=False, pause=oracle.pause)
    # The start is answered; the next question is one of those that failed.
    assert oracle.under_way == [[24]]


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
