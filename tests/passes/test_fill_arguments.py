"""Pass `fill-arguments`: replace scalar arguments by earlier values."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder, lit
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_a_scalar_becomes_an_earlier_value(run: Callable[..., str]) -> None:
    body = Builder()
    y = body.op("sin", body.param(parse_type("f32[]")))
    b = Builder()
    b.param(parse_type("f32[]"))
    program = Program(b.block(*b.scan(body.block(y), length=2, carry=[lit(2.0)])))
    assert (
        run("fill-arguments", program)
        == """\
{ lambda ; a:f32[]. let
    b:f32[] = scan[length=2 num_carry=1
      body={ lambda ; c:f32[]. let
          d:f32[] = sin c
        in (d,) }
    ] a
  in (b,) }
"""
    )
