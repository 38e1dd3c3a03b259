"""What a hunt counts, skips and keeps."""

from __future__ import annotations

import msgspec
import pytest

from reducer.errors import ProgramError, WorkerError
from reducer.hunt import Hunt, Snapshot
from reducer.hunt.finds import Find
from reducer.ir.equations import Block, Op, Program, Var
from reducer.ir.order import size
from reducer.ir.types import Type
from reducer.oracle.outcome import (
    NO_HOST_PLACEMENT,
    Answer,
    Compiled,
    Crashed,
    Incompatible,
    Invalid,
    Rejected,
    Skipped,
    TimedOut,
)

from .fakes import (
    A_LONG_TIME,
    COMPILED,
    FakeOracle,
    FakeWorkshop,
    Listed,
    bug,
    mixed,
    placement,
    program,
    run,
)


def test_nothing_to_hunt() -> None:
    summary = run([]).summary
    assert (summary.generated, summary.compiled, summary.failing, summary.signatures) == (0, 0, 0, ())
    assert (summary.seed, summary.corpus, summary.interrupted) == (3, "corpus", False)


def test_an_equal_program_is_asked_about_once() -> None:
    ran = run([program(1), program(2), program(1, strategy="other meta")])
    assert len(ran.oracle.asked) == 2
    assert (ran.summary.generated, ran.summary.compiled) == (3, 2)
    assert ran.summary.skipped == {"duplicate program": 1}


def test_programs_of_one_module_count_once() -> None:
    ran = run([program(1), program(2), program(3)], module=lambda p: "same" if size(p) < 3 else "other")
    assert ran.summary.compiled == 2
    assert ran.summary.skipped == {"duplicate module": 1}


def test_failures_of_one_module_count_once() -> None:
    ran = run([program(1), program(2)], lambda _: bug("alpha"), module=lambda _: "same")
    assert (ran.summary.compiled, ran.summary.failing) == (1, 1)
    assert ran.summary.signatures[0].finds == 1


def test_without_a_module_key_nothing_is_a_duplicate() -> None:
    assert run([program(1), program(2)], module=lambda _: "").summary.compiled == 2


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Skipped(NO_HOST_PLACEMENT), "no host placement"),
        (Invalid("TypeError: no"), "invalid"),
        (Incompatible("x + 1 fails too"), "incompatible"),
        (Crashed("SIGSEGV", "", "lower"), "invalid"),
        (TimedOut(60.0, "lower"), "invalid"),
    ],
)
def test_what_never_reaches_the_compiler_is_skipped(answer: Answer, reason: str) -> None:
    ran = run([program(1)], lambda _: answer)
    assert ran.summary.skipped == {reason: 1}
    assert (ran.summary.compiled, ran.summary.failing, ran.workshop.confirmed) == (0, 0, [])


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("INVALID_ARGUMENT: the layout for this output is not set to host memory", "user error"),
        ("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm", "out of memory"),
    ],
)
def test_failures_that_are_no_findings_are_excused(message: str, reason: str) -> None:
    ran = run([program(1)], lambda _: Rejected(message))
    assert ran.summary.excused == {reason: 1}
    assert (ran.summary.compiled, ran.summary.failing, ran.summary.signatures) == (1, 0, ())


def test_crashes_and_timeouts_are_findings() -> None:
    answers = {1: Crashed("SIGABRT", "a.cc:5] Check failed: x"), 2: TimedOut(60.0)}
    ran = run([program(1), program(2)], lambda p: answers[size(p)])
    assert {row.signature for row in ran.summary.signatures} == {"SIGABRT a.cc:5 Check failed: x", "timed-out"}


def test_a_program_that_cannot_be_written_is_skipped() -> None:
    class Unwritable(FakeOracle):
        def submit(self, candidate: Program, *, fresh: bool = False):
            if size(candidate) == 1:
                raise ProgramError("no text for this primitive")
            return super().submit(candidate, fresh=fresh)

    hunt = Hunt(Listed([program(1), program(2)]), Unwritable(lambda _: COMPILED), FakeWorkshop(), seconds=A_LONG_TIME)
    summary = hunt.run()
    assert (summary.generated, summary.compiled, summary.skipped) == (2, 1, {"invalid": 1})


def test_a_source_that_is_not_ready_is_asked_again() -> None:
    assert run([None, None, program(1), None, program(2)]).summary.compiled == 2


def test_a_failure_is_confirmed_saved_reduced_and_saved_again() -> None:
    start, smaller, minimum = program(5, strategy="layer_stacks"), program(3), program(2)
    workshop = FakeWorkshop(shrink=lambda _: (smaller, minimum))
    ran = run([start], lambda _: bug("alpha"), workshop)
    assert workshop.confirmed == [start]
    assert workshop.kept == [("program", start, False), ("program", minimum, True)]
    (row,) = ran.summary.signatures
    assert row.signature == "INTERNAL [post-optimization] the alpha invariant is violated"
    assert (row.finds, row.size, row.compiles_to_minimum, row.tier, row.kind) == (1, 2, 2, "program", "error")
    assert row.strategy == "layer_stacks"
    assert row.case.startswith("corpus/")
    assert row.reduce_seconds is not None
    assert ran.hunt.pending() == []


def test_further_finds_are_counted_in_the_summary_and_in_the_corpus() -> None:
    ran = run([program(n) for n in (2, 3, 4)], lambda _: bug("alpha"))
    (row,) = ran.summary.signatures
    assert (row.finds, ran.summary.failing, ran.summary.compiled) == (3, 3, 3)
    assert ran.workshop.counts == {row.case: 3}
    assert ran.workshop.reduced == [program(2)]


def test_skeletons_are_structure_without_sizes() -> None:
    small, large = program(1), program(1)
    narrow = Type("float32", (1,))
    op = Op(outs=(Var(1, narrow),), primitive="tanh", args=(0,))
    small = msgspec.structs.replace(small, block=Block((Var(0, narrow),), (op,), (1,)))
    summary = run([small, large, program(2)]).summary
    assert (summary.compiled, summary.skeletons) == (3, 2)


def test_signatures_are_told_apart_by_tier() -> None:
    ran = run([program(3), placement(2)], lambda _: bug("alpha"))
    assert sorted((row.tier, row.size, row.finds) for row in ran.summary.signatures) == [
        ("placement", 3, 1),
        ("program", 3, 1),
    ]


def test_an_unconfirmed_failure_does_not_count() -> None:
    ran = run(
        [program(1), program(2)], lambda p: bug("alpha" if size(p) == 1 else "beta"), FakeWorkshop(flaky=["alpha"])
    )
    assert ran.summary.failing == 1
    assert ran.summary.excused == {"unconfirmed": 1}
    assert [row.finds for row in ran.summary.signatures] == [1]
    assert [line for line in ran.lines if "is flaky and not counted" in line]
    assert program(1) not in ran.workshop.reduced
    assert ran.hunt.pending() == []


def test_a_known_failure_is_counted_but_neither_confirmed_nor_saved() -> None:
    ran = run([program(1), program(2)], lambda _: bug("alpha"), FakeWorkshop(known=["alpha"]))
    (row,) = ran.summary.signatures
    assert (row.finds, row.case, ran.summary.failing) == (2, "", 2)
    assert (ran.workshop.confirmed, ran.workshop.kept, ran.workshop.counts) == ([], [], {})


def test_a_failure_that_the_corpus_holds_is_not_reduced_again() -> None:
    ran = run([program(5), program(6)], lambda _: bug("alpha"), FakeWorkshop(recalled=program(2)))
    (row,) = ran.summary.signatures
    assert (row.finds, row.case, row.size) == (2, "corpus/recalled", 2)
    assert ran.workshop.reduced == []
    assert ran.workshop.counts == {"corpus/recalled": 2}


def test_a_find_smaller_than_what_the_corpus_holds_is_reduced() -> None:
    ran = run([program(2)], lambda _: bug("alpha"), FakeWorkshop(recalled=program(5)))
    assert ran.workshop.reduced == [program(2)]
    (row,) = ran.summary.signatures
    assert (row.size, row.finds, ran.summary.failing) == (2, 1, 1)


def test_a_smaller_find_that_is_not_real_leaves_the_known_one() -> None:
    workshop = FakeWorkshop(recalled=program(5), flaky=["alpha"])
    ran = run([program(2), program(3)], lambda _: bug("alpha"), workshop)
    (row,) = ran.summary.signatures
    assert (row.size, row.case, ran.summary.failing) == (5, "corpus/recalled", 2)
    assert workshop.kept == []


def test_other_failures_of_a_reduction_are_finds_but_no_failing_programs() -> None:
    workshop = FakeWorkshop(
        others=[
            (program(3), bug("beta")),
            (program(2), Rejected("RESOURCE_EXHAUSTED: too much")),
            (program(1), Rejected("INVALID_ARGUMENT: E1200: no")),
        ]
    )
    ran = run([program(4)], lambda _: bug("alpha"), workshop)
    rows = {row.signature.split()[3]: row for row in ran.summary.signatures}
    assert set(rows) == {"alpha", "beta"}
    assert rows["beta"].strategy.startswith("shrinking ")
    assert rows["beta"].case
    assert ran.summary.failing == 1


def test_a_mixed_find_is_saved_only_when_its_tier_is_known() -> None:
    workshop = FakeWorkshop(shrink=lambda p: [placement(1)] if p == mixed(4) else ())
    ran = run([mixed(4)], lambda _: bug("alpha"), workshop)
    assert workshop.kept == [("placement", placement(1), True)]
    assert [row.tier for row in ran.summary.signatures] == ["placement"]


def test_finds_that_end_as_one_case_are_one_line() -> None:
    workshop = FakeWorkshop(shrink=lambda p: [placement(1)] if p in (mixed(4), placement(6)) else ())
    ran = run([mixed(4), placement(6), mixed(5)], lambda _: bug("alpha"), workshop)
    (row,) = ran.summary.signatures
    assert (row.tier, row.finds, row.size, ran.summary.failing) == ("placement", 3, 2, 3)
    assert workshop.counts == {row.case: 3}


def test_a_backlog_is_worked_off_first() -> None:
    left = left_over(program(7))
    ran = run([], backlog=[left])
    assert ran.workshop.reduced == [program(7)]
    (row,) = ran.summary.signatures
    assert (row.finds, ran.summary.failing, ran.summary.generated) == (4, 0, 0)


def left_over(start: Program) -> Find:
    return Find(
        signature="INTERNAL old",
        family="old",
        slug="old",
        start=start,
        program=start,
        message="INTERNAL: old",
        strategy="programs",
        tier="program",
        sort="program",
        started_size=9,
        first_seconds=1.5,
        finds=4,
        counted=4,
        size=size(start),
    )


@pytest.mark.parametrize("error", [WorkerError("no worker"), RuntimeError("a bug of ours")])
def test_an_error_of_the_generator_surfaces_and_what_was_found_is_kept(error: Exception) -> None:
    workshop = FakeWorkshop()
    source = Listed([program(2), None, None, None, error])
    hunt = Hunt(source, FakeOracle(lambda _: bug("alpha")), workshop, seconds=A_LONG_TIME)
    with pytest.raises(type(error), match=str(error)):
        hunt.run()
    assert source.closed == 1
    kept = [kept for _, kept, _ in workshop.kept] + [find.program for find in hunt.pending()]
    assert program(2) in kept


def test_an_error_of_the_oracle_surfaces() -> None:
    def answer(candidate: Program) -> Compiled:
        if size(candidate) == 2:
            raise WorkerError("workers keep dying")
        return COMPILED

    with pytest.raises(WorkerError, match="workers keep dying"):
        run([program(1), program(2), program(3)], answer)


def test_snapshots_say_how_the_hunt_stands() -> None:
    seen: list[Snapshot] = []
    hunt = Hunt(
        Listed([program(1), program(2)]),
        FakeOracle(lambda p: bug("alpha") if size(p) == 2 else Skipped("no host placement")),
        FakeWorkshop(),
        seconds=A_LONG_TIME,
        progress=seen.append,
        compiles=lambda: 7,
    )
    hunt.run()
    last = hunt.snapshot()
    assert (last.generated, last.compiled, last.failing, last.skipped) == (2, 1, 1, {"no host placement": 1})
    assert last.finishing
    assert [(sort, state, finds, size_) for _, sort, state, finds, size_ in last.signatures] == [
        ("program", "saved", 1, 2)
    ]
