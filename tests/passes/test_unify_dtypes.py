"""Pass `unify-dtypes`: make everything float32."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder, lit
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_everything_becomes_float32(run: Callable[..., str]) -> None:
    b = Builder()
    x, y = b.param(parse_type("bf16[4]")), b.param(parse_type("i8[4]"))
    program = Program(b.block(b.convert(b.op("mul", x, lit(2.0, "bfloat16")), "float32"), b.op("add", y, y)))
    assert (
        run("unify-dtypes", program)
        == """\
{ lambda ; a:f32[4] b:i32[4]. let
    c:f32[4] = mul a 2.0:f32[]
    d:i32[4] = add b b
  in (c, d) }
"""
    )


def test_or_one_that_needs_no_conversions(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    y = b.convert(b.op("neg", b.convert(x, "float8_e4m3fn")), "float32")
    program = Program(b.block(b.op("sin", y)))

    def holds(p: Program) -> bool:
        return any(v.type.dtype != "float32" for e in p.block.eqns for v in e.outs)

    assert (
        run("unify-dtypes", program, holds)
        == """\
{ lambda ; a:bf16[4]. let
    b:bf16[4] = neg a
    c:bf16[4] = sin b
  in (c,) }
"""
    )
