"""Pass `simplify-scalars`: make scalars 0 or 1."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder, lit
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_zero_or_one_but_no_division_by_zero(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    y = b.fill(parse_type("f32[4]"), "3.5")
    program = Program(b.block(b.op("div", b.op("mul", b.op("add", x, y), lit(2.5)), lit(7.0))))
    assert (
        run("simplify-scalars", program)
        == """\
{ lambda ; a:f32[4]. let
    b:f32[4] = full 0.0
    c:f32[4] = add a b
    d:f32[4] = mul c 0.0:f32[]
    e:f32[4] = div d 1.0:f32[]
  in (e,) }
"""
    )
