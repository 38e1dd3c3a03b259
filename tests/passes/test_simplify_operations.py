"""Pass `simplify-operations`: replace operations by simpler ones."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_functions_become_sin(run: Callable[..., str]) -> None:
    b = Builder()
    x, y = b.param(parse_type("f32[4]")), b.param(parse_type("f32[4]"))
    program = Program(b.block(b.op("logistic", b.op("atan2", x, y))))
    assert (
        run("simplify-operations", program)
        == """\
{ lambda ; a:f32[4] b:f32[4]. let
    c:f32[4] = sin a
    d:f32[4] = sin c
  in (d,) }
"""
    )


def test_or_a_transfer_of_an_earlier_value(run: Callable[..., str]) -> None:
    b = Builder()
    _, y = b.param(parse_type("f32[4]<host>")), b.param(parse_type("f32[2,4]"))
    program = Program(b.block(b.op("exp", b.op("reduce_sum", y, axes=(0,)))))

    def holds(p: Program) -> bool:
        return any(getattr(eqn, "primitive", "") == "exp" for eqn in p.block.eqns)

    assert (
        run("simplify-operations", program, holds)
        == """\
{ lambda ; a:f32[4]<host> b:f32[2,4]. let
    c:f32[4] = device_put[memory=device] a
    d:f32[4] = exp c
  in (d,) }
"""
    )
