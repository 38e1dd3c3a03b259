"""Pass `bypass-equations`: replace a result by an argument."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_any_argument_may_stand_for_the_result(run: Callable[..., str]) -> None:
    b = Builder()
    x, y = b.param(parse_type("f32[4]")), b.param(parse_type("f32[4]"))
    program = Program(b.block(b.op("add", x, b.op("exp", y))))

    def holds(p: Program) -> bool:
        return any(getattr(eqn, "primitive", "") == "exp" for eqn in p.block.eqns)

    assert (
        run("bypass-equations", program, holds)
        == """\
{ lambda ; a:f32[4] b:f32[4]. let
    c:f32[4] = exp a
  in (c,) }
"""
    )
