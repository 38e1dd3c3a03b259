"""Failures that compile are failures like others; a hunt can be told which sorts to look for."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from reducer.hunt import Find
from reducer.hunt.besides import Besides
from reducer.hunt.finds import FlakyRow
from reducer.hunt.pace import LEAST
from reducer.ir.build import Builder
from reducer.ir.codec import identity
from reducer.ir.equations import Program
from reducer.ir.types import Type
from reducer.ledger import Ledger, Owed, Stack, ledger_of
from reducer.oracle.beside import Comparison
from reducer.oracle.outcome import Beside, Result
from reducer.oracle.verdict import Kind

from .fakes import COMPILED, FakeOracle, FakeWorkshop, bug, lost, program, run

KEPT = ledger_of(Owed((Stack("float32", (6, 8, 128), (6,), "h", "eqns[0].body"),)), {"f32[6,8,128]": (5,)})


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

    workshop = Repeating()
    ran = run([program(3, strategy="layer_stacks")], lambda _: bug("alpha"), workshop)
    signature = "INTERNAL [post-optimization] the alpha invariant is violated"
    assert ran.summary.signatures == ()
    assert ran.summary.failing == 0
    assert ran.summary.excused == {"unconfirmed": 1}
    (row,) = ran.summary.flaky
    assert row == FlakyRow(signature, "error", "program", "layer_stacks", 1, 3, {"compiled": 1, signature: 1})
    assert workshop.comes_and_goes == [signature]
    assert f"is flaky and not counted; repeated in a fresh worker: 1x compiled, 1x {signature}" in ran.lines[-1]


def steady(program_: Program, seconds: float = 0.1) -> Result:
    """Compiled in so many seconds; a module has as many lines as its program has equations, times ten."""
    lines = 10 * len(program_.block.eqns)
    return Result(COMPILED, seconds_compile=seconds, cpu_compile=seconds, lines=lines, ledger=KEPT)


def slow(length: int, seconds: float = 60.0, cpu: float = 60.0) -> Callable[[Program], Result]:
    def answer(program_: Program) -> Result:
        if len(program_.block.eqns) != length:
            return steady(program_)
        return msgspec.structs.replace(steady(program_, seconds), cpu_compile=cpu)

    return answer


def test_a_program_that_compiles_far_slower_than_others_of_its_size_is_a_find() -> None:
    ran = run([program(n) for n in range(1, 60)], slow(59))
    (row,) = ran.summary.signatures
    assert (row.signature, row.kind, row.finds) == ("slow-compile", "slow-compile", 1)
    (find,) = ran.hunt.tally.finds.values()
    assert find.limit == LEAST
    assert find.message == "compiling took 60.0 s, expected were less than 5.0 s"
    assert ran.workshop.confirmed == [program(59)]
    assert ran.summary.failing == 0


@pytest.mark.parametrize(
    "answer",
    [
        slow(20),  # too few were seen before
        slow(59, cpu=0.1),  # the machine was busy
        slow(59, seconds=4.9),  # nothing that takes so little is slow
        lambda p: msgspec.structs.replace(slow(59)(p), cached=True),
    ],
    ids=["few seen", "busy machine", "short", "cached"],
)
def test_what_is_not_slow(answer: Callable[[Program], Result]) -> None:
    assert run([program(n) for n in range(1, 60)], answer).summary.signatures == ()


def test_slow_only_once_is_forgotten() -> None:
    ran = run([program(n) for n in range(1, 60)], slow(59), FakeWorkshop(flaky=["slow-compile"]))
    assert ran.summary.signatures == ()
    assert ran.summary.flaky == ()
    assert ran.workshop.comes_and_goes == []
    assert ran.summary.excused == {"slow only once": 1}


def test_slow_compiles_that_are_not_wanted() -> None:
    ran = run([program(n) for n in range(1, 60)], slow(59), kinds=["error", "lost-offload"])
    assert ran.summary.signatures == ()


# -- compared with others ---------------------------------------------------------------------------------------------


def scans(length: int) -> Program:
    """A program with twins: a scan of one step, of so many tanh."""
    b = Builder()
    inner = Builder()
    x = inner.param(Type("float32", (8, 128)))
    for _ in range(length):
        x = inner.op("tanh", x)
    return Program(b.block(*b.scan(inner.block(x), length=1, carry=(b.param(Type("float32", (8, 128))),))))


def test_a_share_of_the_programs_that_are_fine_is_compared() -> None:
    asked: list[tuple[Comparison, Program]] = []

    def opened(comparison: Comparison) -> FakeOracle:
        def answer(program_: Program) -> Result:
            asked.append((comparison, program_))
            differs = Beside("pair-differs", "with the barrier: lane-slice", "it differs")
            return msgspec.structs.replace(steady(program_), beside=differs)

        return FakeOracle(answer)

    programs = [scans(n) for n in range(1, 101)]
    ran = run(programs, steady, kinds=["pair-differs"], besides=Besides(opened, ["pair-differs"], share=4))
    chosen = [p for p in programs if int(identity(p)[:12], 16) % 4 == 0]
    assert [p for _, p in asked] == chosen
    assert len(chosen) > 10
    assert {comparison.name for comparison, _ in asked} == {  # type: ignore[attr-defined]
        "without loops of one step",
        "with the barrier",
        "loops without inputs reversed",
    }
    (row,) = ran.summary.signatures
    assert (row.signature, row.finds) == ("pair-differs with the barrier: lane-slice", len(chosen))
    assert (ran.summary.compiled, ran.summary.compared, ran.summary.failing) == (100, len(chosen), 0)


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        (lambda _: bug("alpha"), ["pair-differs"]),
        (lambda _: lost(), ["pair-differs"]),
        (lambda p: msgspec.structs.replace(steady(p), ledger=Ledger()), ["pair-differs"]),  # it offloads nothing
        (steady, ["offload-costs"]),  # nor has it a policy
        (steady, ["error"]),
    ],
)
def test_what_is_not_compared(answer: Callable[[Program], Result], kinds: list[Kind]) -> None:
    def opened(comparison: Comparison) -> FakeOracle:
        raise AssertionError(comparison)

    ran = run([scans(n) for n in range(1, 9)], answer, kinds=kinds, besides=Besides(opened, kinds, share=1))
    assert ran.summary.compared == 0
