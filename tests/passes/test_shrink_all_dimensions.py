"""Pass `shrink-all-dimensions`: make many dimensions 1 at once."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_a_dimension_shrinks_wherever_it_flows(run: Callable[..., str]) -> None:
    body = Builder()
    c, w = body.param(parse_type("f32[8,128]")), body.param(parse_type("f32[128,128]"))
    y = body.op("tanh", body.matmul(c, w))
    b = Builder()
    x, w = b.param(parse_type("f32[8,128]")), b.param(parse_type("f32[3,128,128]"))
    program = Program(b.block(*b.scan(body.block(y, y), length=3, carry=[x], xs=[w])))
    assert (
        run("shrink-all-dimensions", program)
        == """\
{ lambda ; a:f32[1,1] b:f32[3,1,1]. let
    c:f32[1,1] d:f32[3,1,1] = scan[length=3 num_carry=1
      body={ lambda ; e:f32[1,1] f:f32[1,1]. let
          g:f32[1,1] = dot_general[dimension_numbers=(((1,), (0,)), ((), ()))] e f
          h:f32[1,1] = tanh g
        in (h, h) }
    ] a b
  in (c, d) }
"""
    )


def test_sizes_in_attributes_follow(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("f32[8,6]"))
    y = b.op("slice", x, start_indices=(0, 2), limit_indices=(8, 5), strides=None)
    y = b.op("reshape", y, to=parse_type("f32[8,1,3]"))
    program = Program(b.block(b.broadcast(y, (8, 7, 3), (0, 1, 2))))
    assert (
        run("shrink-all-dimensions", program)
        == """\
{ lambda ; a:f32[1,6]. let
    b:f32[1,3] = slice[limit_indices=(1, 5) start_indices=(0, 2) strides=None] a
    c:f32[1,1,3] = reshape b
    d:f32[1,1,3] = broadcast_in_dim[broadcast_dimensions=(0, 1, 2)] c
  in (d,) }
"""
    )
