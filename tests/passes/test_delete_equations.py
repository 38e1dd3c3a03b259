"""Pass `delete-equations`: delete equations, repairing what used them."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_everything_can_go(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    program = Program(b.block(b.op("exp", b.op("mul", x, b.op("sin", x)))))
    assert (
        run("delete-equations", program)
        == """\
{ lambda ; a:f32[4]. let
  in (a,) }
"""
    )


def test_a_deleted_value_is_replaced_by_an_argument(run: Callable[..., str]) -> None:
    b = Builder()
    x, y = b.param(parse_type("f32[4]")), b.param(parse_type("f32[4]"))
    program = Program(b.block(b.op("exp", b.op("mul", b.op("cos", y), b.op("sin", x)))))

    def holds(p: Program) -> bool:
        return any(getattr(eqn, "primitive", "") == "exp" for eqn in p.block.eqns)

    assert (
        run("delete-equations", program, holds)
        == """\
{ lambda ; a:f32[4] b:f32[4]. let
    c:f32[4] = exp a
  in (c,) }
"""
    )


def test_what_has_no_stand_in_becomes_zeros(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("f32[4,2]"))
    program = Program(b.block(b.op("exp", b.op("reduce_sum", x, axes=(1,)))))

    def holds(p: Program) -> bool:
        return any(getattr(eqn, "primitive", "") == "exp" for eqn in p.block.eqns)

    assert (
        run("delete-equations", program, holds)
        == """\
{ lambda ; a:f32[4,2]. let
    b:f32[4] = full 0.0
    c:f32[4] = exp b
  in (c,) }
"""
    )
