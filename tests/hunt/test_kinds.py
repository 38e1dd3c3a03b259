"""Failures that compile are failures like others; a hunt can be told which sorts to look for."""

from __future__ import annotations

import msgspec

from reducer.hunt import Find
from reducer.hunt.finds import FlakyRow
from reducer.ledger import Ledger
from reducer.oracle.outcome import Result

from .fakes import COMPILED, FakeWorkshop, bug, lost, program, run


def test_a_lost_offload_is_confirmed_saved_and_reduced() -> None:
    ran = run([program(3)], lambda _: lost())
    (row,) = ran.summary.signatures
    assert (row.signature, row.family, row.kind) == ("lost-offload all, 1 loop deep", "lost-offload", "lost-offload")
    assert ran.summary.failing == 1
    assert ran.workshop.confirmed == [program(3)]
    assert row.case == "corpus/lost-offload-program"


def test_the_ledger_is_the_message() -> None:
    ran = run([program(3)], lambda _: lost())
    (find,) = ran.hunt.tally.finds.values()
    assert find.message == "'h', f32[6,8,128] over loops of 6, owes 24576 B of host memory: lost (HBM)"


def test_kinds_that_are_not_wanted_are_counted_apart() -> None:
    answers = {1: bug("alpha"), 2: lost()}
    for kind, signature in (
        ("error", "INTERNAL [post-optimization] the alpha invariant is violated"),
        ("lost-offload", "lost-offload all, 1 loop deep"),
    ):
        ran = run([program(1), program(2)], lambda p: answers[len(p.block.eqns)], kinds=[kind])  # type: ignore[list-item]
        assert [row.signature for row in ran.summary.signatures] == [signature]
        assert ran.summary.excused == {"of another kind": 1}
        assert ran.summary.compiled == 2


def test_a_ledger_that_cannot_be_had_is_said_once_and_is_no_failure() -> None:
    result = Result(COMPILED, ledger=Ledger(reason="no text of the compiled program"))
    ran = run([program(n) for n in (1, 2, 3)], lambda _: result)
    assert ran.summary.signatures == ()
    assert ran.summary.unjudged == 3
    assert ran.summary.excused == {}
    assert ran.lines == ["lost offloads are not judged where the ledger cannot be had: no text of the compiled program"]


def test_other_failures_of_a_reduction_may_be_lost_offloads() -> None:
    class Meeting(FakeWorkshop):
        def reduce(self, find, step):
            super().reduce(find, step)
            return [(program(2), msgspec.structs.replace(lost()))] if find.kind == "error" else []

    ran = run([program(5)], lambda _: bug("alpha"), Meeting())
    assert {row.kind for row in ran.summary.signatures} == {"error", "lost-offload"}
    assert ran.summary.failing == 1


def test_a_flaky_failure_is_told_with_how_often_it_came() -> None:
    class Repeating(FakeWorkshop):
        def confirm(self, find: Find) -> bool:
            find.repeats = {"compiled": 1, find.signature: 1}
            return False

    ran = run([program(3, strategy="layer_stacks")], lambda _: bug("alpha"), Repeating())
    signature = "INTERNAL [post-optimization] the alpha invariant is violated"
    assert ran.summary.signatures == ()
    assert ran.summary.failing == 0
    assert ran.summary.excused == {"unconfirmed": 1}
    (row,) = ran.summary.flaky
    assert row == FlakyRow(signature, "error", "program", "layer_stacks", 1, 3, {"compiled": 1, signature: 1})
    assert f"is flaky and not counted; repeated in a fresh worker: 1x compiled, 1x {signature}" in ran.lines[-1]
