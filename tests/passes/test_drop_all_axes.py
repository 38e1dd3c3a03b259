"""Pass `drop-all-axes`: drop all axes of size 1."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_everything_becomes_a_scalar(run: Callable[..., str]) -> None:
    body = Builder()
    c, w = body.param(parse_type("f32[1,1]")), body.param(parse_type("f32[1,1]"))
    y = body.op("tanh", body.matmul(c, w))
    b = Builder()
    x, w = b.param(parse_type("f32[1,1]")), b.param(parse_type("f32[3,1,1]"))
    program = Program(b.block(*b.scan(body.block(y, y), length=3, carry=[x], xs=[w])))
    assert (
        run("drop-all-axes", program)
        == """\
{ lambda ; a:f32[] b:f32[3]. let
    c:f32[] d:f32[3] = scan[length=3 num_carry=1
      body={ lambda ; e:f32[] f:f32[]. let
          g:f32[] = dot_general[dimension_numbers=(((), ()), ((), ()))] e f
          h:f32[] = tanh g
        in (h, h) }
    ] a b
  in (d, c) }
"""
    )
