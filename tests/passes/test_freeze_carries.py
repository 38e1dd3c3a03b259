"""Pass `freeze-carries`: turn carries into constants."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder, lit
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_a_carry_becomes_a_constant(run: Callable[..., str]) -> None:
    body = Builder()
    w, c, d = body.param(parse_type("f32[4]")), body.param(parse_type("f32[4]")), body.param(parse_type("f32[4]"))
    block = body.block(body.op("add", c, d), body.op("mul", d, w), body.op("sin", c))
    b = Builder()
    x, w = b.param(parse_type("f32[4]")), b.param(parse_type("f32[4]"))
    program = Program(b.block(*b.scan(block, length=3, consts=[w], carry=[x, x])))
    assert (
        run("freeze-carries", program)
        == """\
{ lambda ; a:f32[4] b:f32[4]. let
    c:f32[3,4] = scan[length=3 num_consts=1
      body={ lambda ; d:f32[4]. let
          e:f32[4] = sin d
        in (e,) }
    ] a
  in (c, a, a) }
"""
    )


def test_a_counter_stays(run: Callable[..., str]) -> None:
    cond = Builder()
    k = cond.param(parse_type("i32[]"))
    cond.param(parse_type("f32[4]"))
    body = Builder()
    i, c = body.param(parse_type("i32[]")), body.param(parse_type("f32[4]"))
    block = body.block(body.op("add", i, lit(1, "int32")), body.op("sin", c))
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    outs = b.while_loop(cond.block(cond.op("lt", k, lit(3, "int32"))), block, [lit(0, "int32"), x])
    program = Program(b.block(*outs))
    assert (
        run("freeze-carries", program)
        == """\
{ lambda ; a:f32[4]. let
  in (a, 0:i32[]) }
"""
    )
