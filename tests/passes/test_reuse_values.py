"""Pass `reuse-values`: replace a value by an earlier one."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_an_earlier_value_does_as_well(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    y = b.op("sin", x)
    program = Program(b.block(b.op("add", y, b.op("exp", y))))

    def holds(p: Program) -> bool:
        return any(getattr(eqn, "primitive", "") == "add" for eqn in p.block.eqns)

    assert (
        run("reuse-values", program, holds)
        == """\
{ lambda ; a:f32[4]. let
    b:f32[4] = add a a
  in (b,) }
"""
    )
