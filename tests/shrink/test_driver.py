"""The driver, on plain tuples of integers: what is accepted, counted, announced, and when it stops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest

from reducer.errors import ProgramError, WorkerError
from reducer.oracle.fake import FakeOracle
from reducer.oracle.outcome import Compiled, Memory, Outcome, Rejected, Result, message_of
from reducer.passes.base import Candidate, Edits, Pass
from reducer.shrink import (
    Accepted,
    Event,
    Finished,
    Found,
    PassFinished,
    PassStarted,
    Shrunk,
    Started,
    StartError,
    Tier,
    Tried,
    shrink,
)

Items = tuple[int, ...]


def plain(items: Items) -> Items:
    return items


def ordered(items: Items) -> Items:
    return tuple(sorted(items))


def no_negative(items: Items) -> None:
    if any(x < 0 for x in items):
        raise ProgramError("a negative item")


def tier(*forms: Callable[[Items], Items]) -> Tier[Items]:
    return Tier(
        name="program",
        forms=forms or (plain,),
        check=no_negative,
        key=str,
        order_key=lambda items: (len(items), sum(items), items),
        size=len,
        text=str,
    )


def remove(items: Items) -> Edits[Items]:
    def apply(positions: Sequence[int]) -> Items:
        return tuple(x for k, x in enumerate(items) if k not in positions)

    return Edits(len(items), apply)


def lower(items: Items) -> Iterator[Candidate[Items]]:
    for k, x in enumerate(items):
        for y in (0, x // 2, x - 1):
            yield partial(lowered, items, k, y)


def lowered(items: Items, k: int, y: int) -> Items:
    return (*items[:k], y, *items[k + 1 :])


REMOVE: Pass[Items] = Pass("remove", "remove items", remove, 5, "log")
LOWER: Pass[Items] = Pass("lower", "lower one item", lower, 1, "linear")


def wanted(result: Result) -> bool:
    return result.answer == Rejected("wanted")


def label(result: Result) -> str | None:
    return message_of(result.answer) or None


def big_sum(items: Items) -> Outcome:
    """What the tests reduce: a sum of 100 at least; sums from 90 on are another failure."""
    total = sum(items)
    return Rejected("wanted" if total >= 100 else "other") if total >= 90 else Compiled(Memory())


START = (3, 50, 7, 60, 1, 30)


def run(
    start: Items = START,
    passes: Sequence[Pass[Items]] = (REMOVE, LOWER),
    *,
    answer: Callable[[Items], Outcome] = big_sum,
    workers: int = 1,
    budget: int | None = None,
    restart: bool = False,
    forms: tuple[Callable[[Items], Items], ...] = (),
    events: Callable[[Event[Items]], None] | None = None,
) -> tuple[Shrunk[Items], FakeOracle[Items]]:
    with FakeOracle(answer, workers) as oracle:
        return shrink(
            start,
            oracle,
            wanted,
            tier=tier(*forms),
            passes=passes,
            budget=budget,
            restart=restart,
            label=label,
            events=events,
        ), oracle


def test_the_minimum_and_its_counts() -> None:
    shrunk, oracle = run()
    assert shrunk.program == (40, 60)
    assert shrunk.minimal
    assert shrunk.start_size == 6
    assert shrunk.compiles == shrunk.asked == oracle.unique_calls == len(oracle.calls)
    assert shrunk.history[0] == (1, 6)
    assert [size for _, size in shrunk.history] == sorted((size for _, size in shrunk.history), reverse=True)
    assert shrunk.proposals == sum(stats.proposed for stats in shrunk.stats.values())
    assert shrunk.stats["remove"].removed == 4


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_the_same_for_any_number_of_workers(workers: int) -> None:
    one, _ = run()
    more, oracle = run(workers=workers)
    assert (more.program, more.history, more.stats, more.compiles) == (
        one.program,
        one.history,
        one.stats,
        one.compiles,
    )
    assert [(find.label, find.candidate) for find in more.finds] == [(find.label, find.candidate) for find in one.finds]
    assert oracle.unique_calls >= more.asked >= more.compiles


def test_a_start_that_does_not_fail_as_wanted_is_an_error_with_its_result() -> None:
    with pytest.raises(StartError, match="rejected: other") as caught:
        run((95,))
    assert caught.value.result is not None
    assert caught.value.result.answer == Rejected("other")


def test_an_ill_formed_start_is_an_error() -> None:
    with pytest.raises(ProgramError, match="negative"):
        run((-1, 200))


def test_another_failure_is_not_accepted_but_kept_where_smallest() -> None:
    shrunk, _ = run()
    (find,) = shrunk.finds
    assert find.label == "other"
    assert 90 <= sum(find.candidate) < 100
    assert all(sum(p) >= 100 for p in (shrunk.program,))


def test_ill_formed_candidates_cost_nothing() -> None:
    def negative(items: Items) -> Iterator[Candidate[Items]]:
        yield partial(lowered, items, 0, -1)

    shrunk, oracle = run((100,), [Pass("negative", "propose nonsense", negative, 1, "1")])
    assert shrunk.program == (100,)
    assert shrunk.invalid == 1
    assert len(oracle.calls) == 1


def test_what_the_oracle_cannot_be_asked_is_invalid() -> None:
    class Picky(FakeOracle[Items]):
        def submit(self, candidate: Items, *, fresh: bool = False):
            if len(candidate) == 2:
                raise ProgramError("this one has no text")
            return super().submit(candidate, fresh=fresh)

    with Picky(big_sum) as oracle:
        shrunk = shrink((50, 60, 1), oracle, wanted, tier=tier(), passes=[REMOVE])
    assert shrunk.program == (50, 60, 1)
    assert shrunk.invalid > 0


def test_larger_candidates_are_never_asked_about() -> None:
    def grow(items: Items) -> Iterator[Candidate[Items]]:
        yield lambda: (*items, 1)

    shrunk, oracle = run((100,), [Pass("grow", "grow", grow, 1, "1")])
    assert shrunk.program == (100,)
    assert len(oracle.calls) == 1


def test_a_pass_without_progress_is_not_run_again_on_the_same_candidate() -> None:
    seen: list[Items] = []

    def idle(items: Items) -> Iterator[Candidate[Items]]:
        seen.append(items)
        yield from ()

    run(passes=[Pass("idle", "do nothing", idle, 1, "1"), REMOVE, LOWER])
    assert len(set(seen)) == len(seen)


def test_a_one_shot_pass_runs_once() -> None:
    seen: list[Items] = []

    def once(items: Items) -> Iterator[Candidate[Items]]:
        seen.append(items)
        yield from ()

    run(passes=[Pass("once", "do nothing", once, 1, "1", one_shot=True), REMOVE, LOWER])
    assert seen == [START]


@pytest.mark.parametrize("budget", [1, 2, 3, 5, 8])
def test_a_budget_counts_compiles(budget: int) -> None:
    shrunk, _ = run(budget=budget)
    assert not shrunk.minimal
    assert shrunk.compiles == budget
    assert sum(shrunk.program) >= 100


def test_a_second_run_changes_nothing() -> None:
    first, _ = run()
    second, _ = run(first.program)
    assert second.program == first.program
    assert second.history == ((1, 2),)


def test_the_strongest_form_that_the_start_survives() -> None:
    def unsorted(items: Items) -> Outcome:
        return Rejected("wanted" if sum(items) >= 100 and (len(items) < 4 or items != ordered(items)) else "other")

    shrunk, _ = run((60, 3, 50, 7), answer=unsorted, forms=(ordered, plain))
    # Sorted, the start does not fail; (60, 40) does, so that is the form it ends in.
    assert shrunk.program == (50, 50)
    again, _ = run(shrunk.program, answer=unsorted, forms=(ordered, plain))
    assert again.program == shrunk.program


def test_events_tell_the_story() -> None:
    events: list[Event[Items]] = []
    shrunk, _ = run(events=events.append)
    assert isinstance(events[0], Started)
    assert events[0].candidate == START
    last = events[-1]
    assert isinstance(last, Finished)
    assert (last.candidate, last.size, last.compiles, last.minimal) == (shrunk.program, 2, shrunk.compiles, True)
    accepted = [e for e in events if isinstance(e, Accepted)]
    assert accepted[-1].candidate == shrunk.program
    assert len(accepted) == len(shrunk.history) - 1
    assert sum(isinstance(e, PassStarted) for e in events) == sum(isinstance(e, PassFinished) for e in events)
    assert sum(isinstance(e, Tried) for e in events) <= shrunk.proposals
    assert any(isinstance(e, Found) for e in events)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_interrupted_the_last_accepted_is_known(stop: type[BaseException]) -> None:
    best: list[Items] = []

    def events(event: Event[Items]) -> None:
        if isinstance(event, Accepted):
            best.append(event.candidate)
            if len(best) == 2:
                raise stop

    with pytest.raises(stop):
        run(workers=2, events=events)
    assert sum(best[-1]) >= 100
    # Going on from there ends where an undisturbed run ends.
    assert run(best[-1])[0].program == run()[0].program


def test_an_oracle_that_breaks_down_breaks_the_run() -> None:
    def broken(items: Items) -> Outcome:
        if len(items) < 6:
            raise WorkerError("no worker")
        return big_sum(items)

    with pytest.raises(WorkerError):
        run(answer=broken, workers=2)


def test_late_passes_wait_for_the_others_and_are_counted_apart() -> None:
    order: list[str] = []

    def watch(event: Event[Items]) -> None:
        if isinstance(event, PassStarted):
            order.append(event.name)

    late: Pass[Items] = Pass("late", "lower one item", lower, 1, "linear", late=True)
    shrunk, _ = run(passes=(late, REMOVE), events=watch)
    assert order[0] == "remove"
    assert order[-1] in ("late", "remove")
    assert order.index("late") == order[: order.index("late")].count("remove")
    assert shrunk.program == (40, 60)
    assert 0 < shrunk.to_fixpoint < shrunk.compiles


def first_or_last(items: Items) -> Outcome:
    """Fails with the first three items of `TWICE` or with its last one: two causes, one of them smaller."""
    return Rejected("wanted") if {1, 2, 3} <= set(items) or 9 in items else Compiled(Memory())


TWICE = (9, 5, 6, 1, 2, 3)


def test_a_restart_finds_the_smaller_of_two_causes() -> None:
    once, _ = run(TWICE, [REMOVE], answer=first_or_last)
    assert once.program == (1, 2, 3)
    events: list[Event[Items]] = []
    twice, oracle = run(TWICE, [REMOVE], answer=first_or_last, restart=True, events=events.append)
    assert twice.program == (9,)
    assert twice.minimal
    assert twice.to_fixpoint == once.compiles
    assert 0 < twice.restarted <= once.compiles // 2 + 10
    assert twice.compiles == oracle.unique_calls == once.compiles + twice.restarted
    # Only what is smaller than the best so far is announced.
    accepted = [event for event in events if isinstance(event, Accepted)]
    assert [event.size for event in accepted] == sorted((event.size for event in accepted), reverse=True)
    assert accepted[-1].name == "restart"
    assert [size for _, size in twice.history] == [6, *(event.size for event in accepted)]


@pytest.mark.parametrize("workers", [2, 5])
def test_a_restart_is_the_same_for_any_number_of_workers(workers: int) -> None:
    one, _ = run(TWICE, [REMOVE], answer=first_or_last, restart=True)
    more, _ = run(TWICE, [REMOVE], answer=first_or_last, restart=True, workers=workers)
    assert (more.program, more.history, more.stats, more.compiles, more.restarted) == (
        one.program,
        one.history,
        one.stats,
        one.compiles,
        one.restarted,
    )


def test_a_restart_takes_another_way_and_leaves_the_minimum_where_there_is_none() -> None:
    events: list[Event[Items]] = []
    shrunk, _ = run((1, 2, 3, 4, 100), [REMOVE], restart=True, events=events.append)
    assert shrunk.program == (100,)
    assert shrunk.restarted == 5
    assert all(event.name == "remove" for event in events if isinstance(event, Accepted))
    # What it met on its way was the failure itself, and no other one.
    assert shrunk.finds == ()


@pytest.mark.parametrize("budget", [6, 9, 12])
def test_a_restart_keeps_to_the_budget(budget: int) -> None:
    shrunk, _ = run(TWICE, [REMOVE], answer=first_or_last, restart=True, budget=budget)
    assert shrunk.compiles <= budget


def test_a_restart_that_is_cut_off_has_removed_nothing() -> None:
    shrunk, _ = run(TWICE, answer=first_or_last, restart=True, budget=13)
    assert (shrunk.program, shrunk.compiles, shrunk.restarted) == ((1, 2, 3), 13, 0)
    assert {name: stats.removed for name, stats in shrunk.stats.items()} == {
        "remove": 3,
        "lower": 0,
        "restart/remove": 0,
    }


def test_a_pass_that_stalls_waits_for_the_others_and_is_not_dropped() -> None:
    ran: list[tuple[str, Items]] = []

    def useless(items: Items) -> Iterator[Candidate[Items]]:
        ran.append(("useless", items))
        yield lambda: (*items[:-1], items[-1] - 1) if len(items) == 1 else items

    def first(items: Items) -> Iterator[Candidate[Items]]:
        ran.append(("first", items))
        if len(items) > 1:
            yield lambda: items[1:]

    shrunk, _ = run(
        tuple(range(100, 108)),
        [Pass("useless", "do little", useless, 1, "1"), Pass("first", "drop the first item", first, 1, "1")],
        answer=lambda items: Rejected("wanted") if items and items[-1] >= 105 else Compiled(Memory()),
    )
    assert shrunk.program == (105,)
    seen = [items for name, items in ran if name == "useless"]
    # Three programs in a row, then not again before the other pass is through.
    assert [len(items) for items in seen[:4]] == [8, 1, 1, 1]
