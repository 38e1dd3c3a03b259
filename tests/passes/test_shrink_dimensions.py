"""Pass `shrink-dimensions`: shrink one dimension wherever it flows."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_the_least_sizes_that_do(run: Callable[..., str]) -> None:
    body = Builder()
    y = body.op("sin", body.param(parse_type("f32[8,300]")))
    b = Builder()
    x = b.param(parse_type("f32[8,300]"))
    program = Program(b.block(*b.scan(body.block(y), length=12, carry=[x])))

    def holds(p: Program) -> bool:
        return (
            p.block.params[0].type.shape[0] >= 3
            and p.block.params[0].type.shape[1] > 128
            and p.block.eqns[0].length > 4
        )

    assert (
        run("shrink-dimensions", program, holds)
        == """\
{ lambda ; a:f32[3,129]. let
    b:f32[3,129] = scan[length=5 num_carry=1
      body={ lambda ; c:f32[3,129]. let
          d:f32[3,129] = sin c
        in (d,) }
    ] a
  in (b,) }
"""
    )
