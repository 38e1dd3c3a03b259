"""Pass `drop-branches`: drop branches of conds."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_one_branch_is_left(run: Callable[..., str]) -> None:
    one = Builder()
    one_block = one.block(one.op("sin", one.param(parse_type("f32[4]"))))
    two = Builder()
    two_block = two.block(two.op("exp", two.param(parse_type("f32[4]"))))
    b = Builder()
    i, x = b.param(parse_type("i32[]")), b.param(parse_type("f32[4]"))
    program = Program(b.block(*b.cond(i, [one_block, two_block], x)))

    def holds(p: Program) -> bool:
        return bool(p.block.eqns)

    assert (
        run("drop-branches", program, holds)
        == """\
{ lambda ; a:i32[] b:f32[4]. let
    c:f32[4] = cond[
      branches[0]={ lambda ; d:f32[4]. let
          e:f32[4] = exp d
        in (e,) }
    ] a b
  in (c,) }
"""
    )
