"""Pass `cut-values`: replace values by zeros."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_all_that_only_feeds_a_value_goes(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    program = Program(b.block(b.op("exp", b.op("sin", b.op("cos", x)))))

    def holds(p: Program) -> bool:
        return any(getattr(eqn, "primitive", "") == "exp" for eqn in p.block.eqns)

    assert (
        run("cut-values", program, holds)
        == """\
{ lambda ; a:f32[4]. let
    b:f32[4] = full 0.0
    c:f32[4] = exp b
  in (c,) }
"""
    )
