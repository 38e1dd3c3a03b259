"""Pass `unwrap-small-regions`: replace regions by what is in them, sizes being small."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import BARRIER, Program
from reducer.ir.types import parse_type
from reducer.ir.walk import equations


def test_the_loop_around_a_loop_of_one_turn_goes(run: Callable[..., str]) -> None:
    inner = Builder()
    y = inner.op("sin", inner.param(parse_type("f32[]")))
    body = Builder()
    outs = body.scan(inner.block(y), length=1, carry=[body.param(parse_type("f32[]"))], metadata=BARRIER)
    b = Builder()
    x = b.param(parse_type("f32[]"))
    program = Program(b.block(*b.scan(body.block(*outs), length=2, carry=[x])))

    def holds(p: Program) -> bool:
        return any(e.metadata for _, _, e in equations(p))

    assert (
        run("unwrap-small-regions", program, holds)
        == """\
{ lambda ; a:f32[]. let
    b:f32[] = scan[
      length=1
      num_carry=1
      metadata={skip-simplify-while-loops_trip-count-one: true}
      body={ lambda ; c:f32[]. let
          d:f32[] = sin c
        in (d,) }
    ] a
  in (b,) }
"""
    )
