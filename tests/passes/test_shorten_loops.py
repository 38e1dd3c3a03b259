"""Pass `shorten-loops`: make all loops turn twice."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_all_loops_turn_twice(run: Callable[..., str]) -> None:
    inner = Builder()
    inner_block = inner.block(inner.op("sin", inner.param(parse_type("f32[4]"))))
    body = Builder()
    (y,) = body.scan(inner_block, length=5, carry=[body.param(parse_type("f32[4]"))])
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    program = Program(b.block(*b.scan(body.block(y, y), length=3, carry=[x], unroll=3)))
    assert (
        run("shorten-loops", program)
        == """\
{ lambda ; a:f32[4]. let
    b:f32[4] c:f32[2,4] = scan[length=2 num_carry=1 unroll=2
      body={ lambda ; d:f32[4]. let
          e:f32[4] = scan[length=2 num_carry=1
            body={ lambda ; f:f32[4]. let
                g:f32[4] = sin f
              in (g,) }
          ] d
        in (e, e) }
    ] a
  in (c, b) }
"""
    )
