"""Pass `reset-flags`: put flags and metadata back to defaults."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_flags_and_metadata_go(run: Callable[..., str]) -> None:
    inner = Builder()
    y = inner.op("sin", inner.param(parse_type("f32[4]")))
    body = Builder()
    outs = body.checkpoint(inner.block(y), body.param(parse_type("f32[4]")), prevent_cse=False, differentiated=True)
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    tags = (("a", "1"), ("b", "2"))
    program = Program(b.block(*b.scan(body.block(*outs), length=3, carry=[x], reverse=True, unroll=3, metadata=tags)))
    assert (
        run("reset-flags", program)
        == """\
{ lambda ; a:f32[4]. let
    b:f32[4] = scan[length=3 num_carry=1
      body={ lambda ; c:f32[4]. let
          d:f32[4] = checkpoint[
            body={ lambda ; e:f32[4]. let
                f:f32[4] = sin e
              in (f,) }
          ] c
        in (d,) }
    ] a
  in (b,) }
"""
    )


def test_one_tag_can_stay(run: Callable[..., str]) -> None:
    body = Builder()
    y = body.op("sin", body.param(parse_type("f32[4]")))
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    tags = (("a", "1"), ("b", "2"), ("c", "3"))
    program = Program(b.block(*b.scan(body.block(y), length=3, carry=[x], reverse=True, metadata=tags)))

    def holds(p: Program) -> bool:
        return ("b", "2") in p.block.eqns[0].metadata

    assert (
        run("reset-flags", program, holds)
        == """\
{ lambda ; a:f32[4]. let
    b:f32[4] = scan[length=3 num_carry=1 metadata={b: 2}
      body={ lambda ; c:f32[4]. let
          d:f32[4] = sin c
        in (d,) }
    ] a
  in (b,) }
"""
    )
