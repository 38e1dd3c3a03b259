"""Pass `shrink-to-tiles`: shrink one dimension to a multiple of the tile."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_the_next_lower_multiples(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("f32[13,300]"))
    program = Program(b.block(b.op("sin", x)))

    def holds(p: Program) -> bool:
        return p.block.params[0].type.shape[1] % 128 == 0 or p.block.params[0].type.shape == (13, 300)

    assert (
        run("shrink-to-tiles", program, holds)
        == """\
{ lambda ; a:f32[8,128]. let
    b:f32[8,128] = sin a
  in (b,) }
"""
    )
