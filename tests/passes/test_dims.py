"""Linked dimensions: a size or an axis changes wherever it flows, and the program stays well-typed."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import strategies
from reducer.errors import ProgramError
from reducer.ir.build import Builder, lit
from reducer.ir.check import check
from reducer.ir.dims import dimensions, resized, without_axis
from reducer.ir.equations import Program
from reducer.ir.types import Type, parse_type

QUICK = settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    max_examples=30,
)


@QUICK
@given(strategies.hunting())
def test_any_free_dimension_can_shrink(program: Program) -> None:
    for d in dimensions(program):
        if not d.pinned and d.size > 1:
            for n in {1, d.size // 2, d.size - 1}:
                check(resized(program, [(d, n)]))


def refusal(program: Program, *, default: str) -> str:
    """What check has against a program; `default` if nothing."""
    try:
        check(program)
    except ProgramError as error:
        return str(error)
    return default


@QUICK
@given(strategies.hunting())
def test_dropping_an_axis_works_or_says_why_not(program: Program) -> None:
    shrunk = resized(program, [(d, 1) for d in dimensions(program) if not d.pinned])
    for d in dimensions(shrunk):
        if d.size == 1:
            try:
                smaller = without_axis(shrunk, d)
            except ProgramError:
                continue
            # A scalar does not keep an operation's result on the host, as an array does: that is for check to say.
            assert "<host>" in refusal(smaller, default="<host>")


def one(primitive: str, *types: str, to: str | None = None, scalars: int = 0, **attributes: object) -> Program:
    b = Builder()
    args = [b.param(parse_type(t)) for t in types] + [lit(0, "int32")] * scalars
    return Program(b.block(b.op(primitive, *args, to=parse_type(to) if to else None, **attributes)))


def shapes(program: Program) -> str:
    """Types of the inputs, then of the result."""
    found: list[Type] = [v.type for v in program.block.params] + [v.type for v in program.block.eqns[-1].outs]
    return " ".join(map(str, found))


DOT = (((1,), (0,)), ((), ()))


@pytest.mark.parametrize(
    ("program", "smallest"),
    [
        (one("tanh", "f32[4,5]"), "f32[1,1] f32[1,1]"),
        (one("add", "f32[4,5]", "f32[4,1]"), "f32[1,1] f32[1,1] f32[1,1]"),
        (one("dot_general", "f32[4,5]", "f32[5,6]", dimension_numbers=DOT), "f32[1,1] f32[1,1] f32[1,1]"),
        (one("reduce_sum", "f32[4,5]", axes=(1,)), "f32[1,1] f32[1]"),
        (one("transpose", "f32[4,5]", permutation=(1, 0)), "f32[1,1] f32[1,1]"),
        (one("broadcast_in_dim", "f32[5]", to="f32[4,5]", broadcast_dimensions=(1,)), "f32[1] f32[1,1]"),
        (one("reshape", "f32[4,5]", to="f32[4,1,5]"), "f32[1,1] f32[1,1,1]"),
        (one("reshape", "f32[4,5,6]", to="f32[20,6]"), "f32[4,5,1] f32[20,1]"),
        (one("concatenate", "f32[4,5]", "f32[4,6]", dimension=1), "f32[1,5] f32[1,6] f32[1,11]"),
        (one("dynamic_slice", "f32[4,5]", to="f32[1,5]", scalars=2), "f32[1,1] f32[1,1]"),
        (one("dynamic_update_slice", "f32[4,5]", "f32[1,5]", scalars=2), "f32[1,1] f32[1,1] f32[1,1]"),
        (
            one("slice", "f32[4,5]", start_indices=(0, 1), limit_indices=(4, 3), strides=None),
            "f32[1,5] f32[1,2]",
        ),
        (one("pad", "f32[4,5]", "f32[]", padding_config=((0, 0, 0), (1, 1, 0))), "f32[1,5] f32[] f32[1,7]"),
        (one("cumsum", "f32[4,5]", axis=0, reverse=False), "f32[1,1] f32[1,1]"),
        (one("argmax", "f32[4,5]", to="i32[4]", axes=(1,)), "f32[1,1] i32[1]"),
        (one("iota", to="i32[4,5]", dimension=1), "i32[1,1]"),
        (one("gather", "f32[4,5]", to="f32[4]"), "f32[4,5] f32[4]"),
    ],
)
def test_what_is_linked_and_what_is_pinned(program: Program, smallest: str) -> None:
    small = resized(program, [(d, 1) for d in dimensions(program) if not d.pinned])
    check(small)
    assert shapes(small) == smallest


@pytest.mark.parametrize(
    ("program", "dropped"),
    [
        (one("dot_general", "f32[1,5]", "f32[5,6]", dimension_numbers=DOT), "f32[5] f32[5,6] f32[6]"),
        (one("transpose", "f32[4,1,6]", permutation=(2, 1, 0)), "f32[4,6] f32[6,4]"),
        (one("reduce_sum", "f32[1,5]", axes=(1,)), "f32[5] f32[]"),
        (one("squeeze", "f32[4,1]", dimensions=(1,)), "f32[4] f32[4]"),
        (one("broadcast_in_dim", "f32[1,5]", to="f32[4,5]", broadcast_dimensions=(0, 1)), "f32[5] f32[4,5]"),
        (one("concatenate", "f32[1,5]", "f32[1,6]", dimension=1), "f32[5] f32[6] f32[11]"),
        (one("cumsum", "f32[1,5]", axis=1, reverse=False), "f32[5] f32[5]"),
        (one("rev", "f32[1,5]", dimensions=(0, 1)), "f32[5] f32[5]"),
        (one("pad", "f32[1,5]", "f32[]", padding_config=((0, 0, 0), (1, 1, 0))), "f32[5] f32[] f32[7]"),
        (one("dynamic_slice", "f32[1,5]", to="f32[1,5]", scalars=2), "f32[5] f32[5]"),
    ],
)
def test_an_axis_goes_and_the_others_are_renumbered(program: Program, dropped: str) -> None:
    (d,) = [d for d in dimensions(program) if d.size == 1]
    smaller = without_axis(program, d)
    check(smaller)
    assert shapes(smaller) == dropped


@pytest.mark.parametrize(
    "program",
    [
        one("concatenate", "f32[1,5]", "f32[2,5]", dimension=0),
        one("iota", to="i32[1,5]", dimension=0),
        one("gather", "f32[1,5]", to="f32[5]"),
    ],
)
def test_an_operation_about_the_axis_keeps_it(program: Program) -> None:
    (d,) = [d for d in dimensions(program) if d.size == 1]
    with pytest.raises(ProgramError):
        check(without_axis(program, d))
