"""Pass `drop-axes`: drop one axis of size 1 wherever it flows."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder, lit
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_an_axis_goes_wherever_it_flows(run: Callable[..., str]) -> None:
    b = Builder()
    x, w = b.param(parse_type("f32[1,4]")), b.param(parse_type("f32[4,5]"))
    y = b.op("reduce_max", b.op("transpose", b.matmul(x, w), permutation=(1, 0)), axes=(0,))
    program = Program(b.block(b.op("dynamic_slice", y, lit(0, "int32"), to=parse_type("f32[1]"))))
    assert (
        run("drop-axes", program)
        == """\
{ lambda ; a:f32[4] b:f32[4,5]. let
    c:f32[5] = dot_general[dimension_numbers=(((0,), (0,)), ((), ()))] a b
    d:f32[5] = transpose[permutation=(0,)] c
    e:f32[] = reduce_max[axes=(0,)] d
    f:f32[] = dynamic_slice e
  in (f,) }
"""
    )


def test_a_loop_of_one_turn_over_slices_becomes_its_body(run: Callable[..., str]) -> None:
    body = Builder()
    c, x = body.param(parse_type("f32[4]")), body.param(parse_type("f32[4]"))
    y = body.op("mul", c, x)
    b = Builder()
    x, xs = b.param(parse_type("f32[4]")), b.param(parse_type("f32[1,4]"))
    _, ys = b.scan(body.block(y, x), length=1, carry=[x], xs=[xs])
    program = Program(b.block(b.op("sin", ys)))
    assert (
        run("drop-axes", program)
        == """\
{ lambda ; a:f32[4] b:f32[4]. let
    c:f32[4] = sin a
  in (c,) }
"""
    )
