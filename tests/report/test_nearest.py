"""The neighbours that compile, as differences of the text; what a terminal is told."""

from __future__ import annotations

import msgspec

from reducer.corpus import Certificate, Explanation, Neighbour, TierMinimum
from reducer.corpus.proof import NeighbourWord
from reducer.ir.build import Builder
from reducer.ir.canonical import canonical
from reducer.ir.codec import identity
from reducer.ir.equations import BARRIER, Grad, Program
from reducer.ir.order import size
from reducer.ir.policies import OffloadNames
from reducer.ir.types import parse_type
from reducer.neighbourhood import NAME, neighbours
from reducer.neighbourhood.modules import MODULE_NAME
from reducer.report.nearest import certificate_text, evidence_lines, nearest, shown_first


def trip_count_one() -> Program:
    scalar = parse_type("f32[]")
    layer = Builder()
    c = layer.name(layer.param(scalar), "h")
    body = Builder()
    outs = body.checkpoint(layer.block(layer.op("sin", c)), body.param(scalar), policy=OffloadNames(("h",)))
    b = Builder()
    x = b.param(scalar)
    scan = b.scan(body.block(*outs), length=1, carry=[x], metadata=BARRIER)
    return canonical(Program(b.block(*scan), gradient=Grad((0,), with_value=False)))


def minimum() -> TierMinimum:
    """With a certificate in which everything compiles but one neighbour."""
    program = trip_count_one()
    found = [
        Neighbour(kind=n.kind, edit=n.description, key=identity(n.program)[:16], outcome="compiled")
        for n in neighbours(program)
    ]
    found[0] = msgspec.structs.replace(found[0], outcome="rejected", signature="other")
    return TierMinimum(
        size=size(program),
        program=program,
        certificate=Certificate(neighbourhood=NAME, neighbours=tuple(found)),
        explanations=(Explanation(parameter="dtype", still_fails="any tried: bf16, f32"),),
    )


def test_the_barrier_is_a_difference_of_one_line() -> None:
    near = {one.step: one for one in nearest(minimum(), "wanted")}
    assert near["metadata eqns[0]: skip-simplify-while-loops_trip-count-one"].difference == (
        "...\n"
        " grad(argnums=(0,)) of\n"
        " { lambda ; a:f32[]. let\n"
        "-    b:f32[] = scan[\n"
        "-      length=1\n"
        "-      num_carry=1\n"
        "-      metadata={skip-simplify-while-loops_trip-count-one: true}\n"
        "+    b:f32[] = scan[length=1 num_carry=1\n"
        "       body={ lambda ; c:f32[]. let\n"
        "           d:f32[] = checkpoint["
    )


def test_one_of_each_kind_is_shown_those_that_change_least_first() -> None:
    near = nearest(minimum(), "wanted")
    assert len(near) == len(list(neighbours(trip_count_one()))) - 1
    assert [one.lines for one in near] == sorted(one.lines for one in near)
    shown = shown_first(near)
    assert len({one.kind for one in shown}) == len(shown) == 5
    assert shown[0].step == "gradient none"


def test_what_cannot_be_made_again_is_named() -> None:
    old = msgspec.structs.replace(
        minimum(),
        certificate=Certificate(neighbourhood="0", neighbours=(Neighbour(edit="a step", outcome="compiled"),)),
    )
    assert [(one.step, one.difference) for one in nearest(old, "wanted")] == [("a step", "")]
    stranger = Neighbour(kind="delete", edit="eqns[9]", key="f" * 16, outcome="compiled")
    gone = msgspec.structs.replace(old, certificate=Certificate(neighbourhood=NAME, neighbours=(stranger,)))
    assert [(one.step, one.difference) for one in nearest(gone, "wanted")] == [("delete eqns[9]", "")]
    assert nearest(TierMinimum(size=1, module="m.mlir"), "wanted") == []


def test_what_a_terminal_is_told() -> None:
    lines = evidence_lines(minimum(), "wanted")
    n = len(list(neighbours(trip_count_one())))
    assert lines == [
        f"{n} programs are one step smaller: {n - 1} compile, 1 fail otherwise; none fails the same: it is 1-minimal.",
        "  dtype  any tried: bf16, f32",
    ]
    assert evidence_lines(TierMinimum(size=1, module="m.mlir"), "wanted") == []
    failing = Certificate(neighbourhood=NAME, neighbours=(Neighbour(edit="x", outcome="rejected", signature="wanted"),))
    assert certificate_text(failing, "wanted") == "1 program is one step smaller: 1 fail the same: it is not minimal."


def around(*outcomes: NeighbourWord, neighbourhood: str = NAME) -> str:
    found = tuple(
        Neighbour(edit=str(n), outcome=one, signature="other" if one == "rejected" else "")
        for n, one in enumerate(outcomes)
    )
    return certificate_text(Certificate(neighbourhood=neighbourhood, neighbours=found), "wanted")


def test_nothing_is_claimed_of_what_was_not_asked_about() -> None:
    assert around("compiled", "compiled", "rejected", "not-kept", "skipped", "skipped") == (
        "6 programs are one step smaller: 2 compile, 1 fail otherwise; of the 3 that were asked about none fails the "
        "same. Not asked about: 2 place nothing in host memory, 1 lack what was to be kept."
    )
    assert around("not-kept") == (
        "1 program is one step smaller: none was asked about. Not asked about: 1 lack what was to be kept."
    )
    assert around("invalid") == (
        "1 program is one step smaller: 1 are no programs; none fails the same: it is 1-minimal."
    )


def test_a_neighbourhood_that_is_not_todays_is_named() -> None:
    older = " That is not today's neighbourhood: `scanshrink corpus certify` asks about that."
    assert around("compiled", neighbourhood="program-0") == (
        "1 program is one step smaller: 1 compile; none fails the same: it is 1-minimal in the neighbourhood "
        f"program-0.{older}"
    )
    assert around("compiled", "skipped", neighbourhood="program-0") == (
        "2 programs are one step smaller in the neighbourhood program-0: 1 compile; of the 1 that were asked about "
        f"none fails the same. Not asked about: 1 place nothing in host memory.{older}"
    )
    for today in (NAME, MODULE_NAME):
        assert around("compiled", neighbourhood=today).endswith("it is 1-minimal.")
