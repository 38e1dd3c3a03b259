"""Pass `inputs-for-values`: replace values by new inputs."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder, lit
from reducer.ir.equations import Program
from reducer.ir.types import parse_type
from reducer.ir.walk import equations


def test_a_value_deep_inside_becomes_an_input(run: Callable[..., str]) -> None:
    inner = Builder()
    y = inner.op("mul", inner.op("exp", inner.param(parse_type("f32[4]"))), lit(2.0))
    body = Builder()
    c = body.param(parse_type("f32[4]"))
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    program = Program(b.block(*b.scan(body.block(*body.checkpoint(inner.block(y), c)), length=3, carry=[x])))

    def holds(p: Program) -> bool:
        return any(getattr(eqn, "primitive", "") == "mul" for _, _, eqn in equations(p))

    assert (
        run("inputs-for-values", program, holds)
        == """\
{ lambda ; a:f32[4] b:f32[4]. let
    c:f32[4] = scan[length=3 num_consts=1 num_carry=1
      body={ lambda ; d:f32[4] e:f32[4]. let
          f:f32[4] = checkpoint[
            body={ lambda ; g:f32[4]. let
                h:f32[4] = mul g 2.0:f32[]
              in (h,) }
          ] d
        in (f,) }
    ] a b
  in (c,) }
"""
    )
