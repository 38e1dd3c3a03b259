"""Pass `slices-to-constants`: give what a loop slices as a constant."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_an_x_becomes_a_constant(run: Callable[..., str]) -> None:
    body = Builder()
    c, x = body.param(parse_type("f32[4]")), body.param(parse_type("f32[4]"))
    b = Builder()
    c, xs = b.param(parse_type("f32[4]")), b.param(parse_type("f32[3,4]"))
    program = Program(b.block(*b.scan(body.block(body.op("add", 0, x)), length=3, carry=[c], xs=[xs])))
    assert (
        run("slices-to-constants", program)
        == """\
{ lambda ; a:f32[4] b:f32[4]. let
    c:f32[4] = scan[length=3 num_consts=1 num_carry=1
      body={ lambda ; d:f32[4] e:f32[4]. let
          f:f32[4] = add e d
        in (f,) }
    ] a b
  in (c,) }
"""
    )
