"""However a hunt ends, what it found is saved, or in the state for the next one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from reducer.errors import StorageError
from reducer.hunt import Find, Hunt, Snapshot, Unstable, engine
from reducer.ir.equations import Program
from reducer.ir.order import size

from .fakes import (
    A_LONG_TIME,
    COMPILED,
    Endless,
    FakeOracle,
    FakeWorkshop,
    Listed,
    bug,
    mixed,
    placement,
    program,
    run,
    wait_for,
)


def for_ever(start: Program) -> Iterator[Program]:
    """A reduction that makes one step and then none, without an end."""
    yield program(size(start) - 1)
    while True:
        yield program(size(start) - 1)


def test_ctrl_c_while_generating_keeps_everything() -> None:
    kept = threading.Event()
    workshop = FakeWorkshop(shrink=for_ever)
    workshop.on_reduce = lambda _: kept.set()

    def then() -> None:
        if kept.is_set():
            raise KeyboardInterrupt

    hunt = Hunt(Endless(program(5), then), FakeOracle(lambda _: bug("alpha")), workshop, seconds=A_LONG_TIME)
    summary = hunt.run()
    assert summary.interrupted
    assert workshop.kept[0] == ("program", program(5), False)
    (find,) = hunt.pending()
    assert find.program == workshop.kept[-1][1]
    assert summary.signatures[0].case == find.case != ""
    assert summary.signatures[0].reduce_seconds is None


def test_ctrl_c_while_reducing_keeps_the_best_so_far() -> None:
    workshop = FakeWorkshop(shrink=for_ever)

    def progress(snapshot: Snapshot) -> None:
        if snapshot.finishing and snapshot.reducing is not None and snapshot.reducing[2] == 4:
            raise KeyboardInterrupt

    hunt = Hunt(
        Listed([program(5)]),
        FakeOracle(lambda _: bug("alpha")),
        workshop,
        seconds=A_LONG_TIME,
        progress=progress,
        grace=A_LONG_TIME,
    )
    summary = hunt.run()
    assert summary.interrupted
    assert workshop.kept == [("program", program(5), False), ("program", program(4), False)]
    assert [(find.program, find.state) for find in hunt.pending()] == [(program(4), "confirmed")]
    assert summary.signatures[0].size == 4


def test_a_signal_handler_may_end_a_hunt() -> None:
    workshop = FakeWorkshop()
    hunt: Hunt
    hunt = Hunt(
        Endless(program(2), lambda: hunt.interrupt()), FakeOracle(lambda _: COMPILED), workshop, seconds=A_LONG_TIME
    )
    summary = hunt.run()
    assert summary.interrupted
    assert summary.compiled <= 1


def test_a_second_interrupt_does_not_wait() -> None:
    entered, never = threading.Event(), threading.Event()
    workshop = FakeWorkshop()

    def confirm(_: Find) -> None:
        entered.set()
        never.wait(60)

    workshop.on_confirm = confirm
    hunt: Hunt

    def then() -> None:
        if entered.is_set():
            hunt.interrupt()
            hunt.interrupt()

    hunt = Hunt(Endless(program(2), then), FakeOracle(lambda _: bug("alpha")), workshop, seconds=A_LONG_TIME)
    summary = hunt.run()
    assert not workshop.confirmed, "the hunt waited for a confirmation that does not end"
    assert [find.start for find in hunt.pending()] == [program(2)]
    assert (summary.failing, summary.excused) == (0, {"unconfirmed": 1})
    never.set()


def test_what_the_grace_does_not_reach_is_saved_as_it_is() -> None:
    workshop = FakeWorkshop(shrink=for_ever)
    names = {2: "alpha", 3: "beta", 4: "gamma"}
    confirmed = threading.Semaphore(0)
    workshop.on_keep = lambda _: confirmed.release()
    hunt: Hunt

    def progress(snapshot: Snapshot) -> None:
        if snapshot.finishing and all(state in ("confirmed", "reducing") for _, _, state, _, _ in snapshot.signatures):
            hunt._end = 0.0  # the grace is over

    hunt = Hunt(
        Listed([program(n) for n in names]),
        FakeOracle(lambda p: bug(names[size(p)])),
        workshop,
        seconds=A_LONG_TIME,
        grace=A_LONG_TIME,
        progress=progress,
    )
    summary = hunt.run()
    assert not summary.interrupted
    saved = [start for _, start, reduced in workshop.kept if not reduced]
    assert all(program(n) in saved for n in names)
    assert len(hunt.pending()) == 3
    assert all(row.case and row.reduce_seconds is None for row in summary.signatures)
    assert summary.failing == 3


def test_without_grace_nothing_is_lost() -> None:
    ran = run([program(n) for n in range(2, 8)], lambda p: bug("abcdefgh"[size(p)] * 5), grace=0.0)
    reached = {id(find) for find in ran.hunt.pending()}
    done = [find for find in ran.hunt.tally.finds.values() if id(find) not in reached]
    assert len(reached) + len(done) == 6
    assert all(find.case for find in done)


def test_a_mixed_find_that_was_not_shrunk_is_shelved() -> None:
    workshop = FakeWorkshop(shrink=for_ever)

    def progress(snapshot: Snapshot) -> None:
        if snapshot.reducing is not None and snapshot.finishing:
            raise KeyboardInterrupt

    hunt = Hunt(
        Listed([mixed(5)]),
        FakeOracle(lambda _: bug("alpha")),
        workshop,
        seconds=A_LONG_TIME,
        grace=A_LONG_TIME,
        progress=progress,
    )
    summary = hunt.run()
    assert len(workshop.shelved) == len(workshop.kept) == 1
    assert summary.signatures[0].case
    assert len(hunt.pending()) == 1


@pytest.mark.parametrize("when", ["confirmed", "reduced"])
def test_a_corpus_that_cannot_be_written_ends_the_hunt(when: str) -> None:
    workshop = FakeWorkshop(shrink=lambda _: [program(1)])

    def keep(find: Find) -> None:
        if when == "confirmed" or find.reduced_seconds is not None:
            raise StorageError("the disk is full")

    workshop.on_keep = keep
    hunt = Hunt(Endless(program(3), lambda: None), FakeOracle(lambda _: bug("alpha")), workshop, seconds=A_LONG_TIME)
    with pytest.raises(StorageError, match="the disk is full"):
        hunt.run()
    assert [find.signature for find in hunt.pending()] != []


def test_a_count_that_cannot_be_written_is_an_error() -> None:
    class Full(FakeWorkshop):
        def settle(self, _: Find) -> None:
            raise StorageError("the disk is full")

    with pytest.raises(StorageError, match="the disk is full"):
        run([program(2)], lambda _: bug("alpha"), Full(recalled=program(1)))


def test_a_failure_that_is_gone_when_it_is_saved_is_flaky() -> None:
    workshop = FakeWorkshop()

    def gone(_: Find) -> None:
        raise Unstable("compiled")

    workshop.on_keep = gone
    ran = run([program(2)], lambda _: bug("alpha"), workshop)
    assert (ran.summary.signatures, ran.summary.excused) == ((), {"unconfirmed": 1})
    assert ran.hunt.pending() == []


def test_a_failure_that_is_gone_when_it_is_reduced_is_flaky() -> None:
    workshop = FakeWorkshop()

    def gone(_: Find) -> None:
        raise Unstable("compiled")

    workshop.on_reduce = gone
    ran = run([program(2), program(3)], lambda p: bug("alpha" if size(p) == 2 else "beta"), workshop)
    assert ran.summary.excused == {"unconfirmed": 2}
    assert [line for line in ran.lines if "is flaky" in line and "compiled" in line]


def test_a_smaller_form_that_is_gone_leaves_the_find_as_it_was_saved() -> None:
    workshop = FakeWorkshop(shrink=for_ever)
    lines: list[str] = []

    def keep(find: Find) -> None:
        if find.program != program(5):
            raise Unstable("compiled")

    workshop.on_keep = keep

    def progress(snapshot: Snapshot) -> None:
        if snapshot.finishing and snapshot.reducing is not None and snapshot.reducing[2] == 4:
            raise KeyboardInterrupt

    hunt = Hunt(
        Listed([program(5)]),
        FakeOracle(lambda _: bug("alpha")),
        workshop,
        seconds=A_LONG_TIME,
        grace=A_LONG_TIME,
        progress=progress,
        notify=lines.append,
    )
    hunt.run()
    assert workshop.kept == [("program", program(5), False)]
    assert [line for line in lines if "kept as it was found" in line]


def test_families_without_a_minimum_and_programs_go_first() -> None:
    hold, entered = threading.Event(), threading.Event()
    workshop = FakeWorkshop()

    def reduce(_: Find) -> None:
        entered.set()
        wait_for(hold)

    workshop.on_reduce = reduce
    first = program(2)
    rest = [mixed(3), placement(3), program(9), program(7)]
    names = {identity_of(first): "alpha", identity_of(rest[0]): "beta", identity_of(rest[1]): "gamma"}

    def progress(snapshot: Snapshot) -> None:
        if len(snapshot.signatures) == 5 and [s for _, _, s, _, _ in snapshot.signatures].count("confirmed") == 4:
            hold.set()

    class AfterTheFirst(Listed):
        def poll(self) -> Program | None:
            if len(self.items) < 5 and not entered.is_set():
                return None
            return super().poll()

    hunt = Hunt(
        AfterTheFirst([first, *rest]),
        FakeOracle(lambda p: bug(names.get(identity_of(p), "delta" if size(p) == 9 else "epsilon"))),
        workshop,
        seconds=A_LONG_TIME,
        grace=A_LONG_TIME,
        progress=progress,
    )
    hunt.run()
    assert workshop.reduced == [first, program(7), program(9), placement(3), mixed(3)]


def identity_of(candidate: Program) -> tuple[int, str]:
    from reducer.ir.tiers import sort_of

    return size(candidate), sort_of(candidate)


def test_a_smaller_find_takes_the_place_of_a_queued_one() -> None:
    hunt: Hunt
    workshop = FakeWorkshop()

    def hold(_: Find) -> None:
        # The first confirmation lasts until all four answers are in the book.
        end = time.monotonic() + 60
        while sum(find.finds for find in list(hunt.tally.finds.values())) < 4:
            assert time.monotonic() < end
            time.sleep(0.001)

    workshop.on_confirm = hold
    names = {1: "first"}
    hunt = Hunt(
        Listed([program(1), program(6), program(4), program(5)]),
        FakeOracle(lambda p: bug(names.get(size(p), "alpha"))),
        workshop,
        seconds=A_LONG_TIME,
        grace=A_LONG_TIME,
    )
    summary = hunt.run()
    assert workshop.confirmed == [program(1), program(4)]
    assert sorted(row.finds for row in summary.signatures) == [1, 3]


def test_the_state_is_saved_while_the_hunt_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_CHECKPOINT_EVERY", 0.0)
    saved: list[int] = []
    hunt: Hunt
    hunt = Hunt(
        Listed([program(1), program(2)]),
        FakeOracle(lambda _: COMPILED),
        FakeWorkshop(),
        seconds=A_LONG_TIME,
        checkpoint=lambda: saved.append(hunt.tally.compiled),
    )
    hunt.run()
    assert saved
