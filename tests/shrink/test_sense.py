"""What nobody would run: loops without a counter, divisions by zero."""

from __future__ import annotations

import pytest

from reducer.ir.build import Builder, lit
from reducer.ir.equations import Arg, Program
from reducer.ir.sense import nonsense
from reducer.ir.types import parse_type

INDEX = parse_type("i32[]")


def loop(compare: str, bound_first: bool, primitive: str, step: Arg, counter_first: bool = True) -> Program:
    cond = Builder()
    k, bound = cond.param(INDEX), lit(3, "int32")
    test = cond.op(compare, *((bound, k) if bound_first else (k, bound)))
    body = Builder()
    i = body.param(INDEX)
    update = body.op(primitive, *((i, step) if counter_first else (step, i)))
    b = Builder()
    return Program(b.block(*b.while_loop(cond.block(test), body.block(update), [b.param(INDEX)])))


@pytest.mark.parametrize(
    "program",
    [
        loop("lt", False, "add", lit(1, "int32")),
        loop("le", False, "add", lit(2, "int32"), counter_first=False),
        loop("gt", True, "add", lit(1, "int32")),
        loop("gt", False, "sub", lit(1, "int32")),
        loop("ge", False, "add", lit(-1, "int32")),
        loop("ne", False, "add", lit(1, "int32")),
    ],
)
def test_counted_loops_end(program: Program) -> None:
    assert nonsense(program) is None


@pytest.mark.parametrize(
    "program",
    [
        loop("lt", False, "add", lit(0, "int32")),
        loop("lt", False, "sub", lit(1, "int32")),
        loop("gt", False, "add", lit(1, "int32")),
        loop("lt", False, "mul", lit(2, "int32")),
        loop("lt", False, "sub", lit(5, "int32"), counter_first=False),
    ],
)
def test_others_may_not(program: Program) -> None:
    assert nonsense(program) == "a while loop without a counter"


@pytest.mark.parametrize(("value", "bad"), [("0.0", True), ("-0.0", True), ("1.0", False)])
def test_division_by_a_constant(value: str, bad: bool) -> None:
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    for by in (b.fill(parse_type("f32[4]"), value), lit(float(value))):
        assert (nonsense(Program(b.block(b.op("div", x, by)))) is not None) is bad
