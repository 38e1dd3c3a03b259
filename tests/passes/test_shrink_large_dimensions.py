"""Pass `shrink-large-dimensions`: make many large dimensions 1 at once."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_large_dimensions_go_and_small_ones_stay(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("f32[4,3,128]"))
    y = b.op("sin", b.param(parse_type("f32[2]")))
    program = Program(b.block(b.op("exp", x), y))
    assert (
        run("shrink-large-dimensions", program)
        == """\
{ lambda ; a:f32[1,3,1] b:f32[2]. let
    c:f32[1,3,1] = exp a
    d:f32[2] = sin b
  in (c, d) }
"""
    )
