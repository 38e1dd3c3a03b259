"""Pass `other-results`: replace a result by another value."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Op, Program
from reducer.ir.types import parse_type
from reducer.ir.walk import equations


def test_a_result_may_be_any_value(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.op("sin", b.param(parse_type("f32[4]")))
    program = Program(b.block(b.op("reduce_sum", x, axes=(0,))))
    assert (
        run("other-results", program, lambda p: any(isinstance(e, Op) for _, _, e in equations(p)))
        == """\
{ lambda ; a:f32[4]. let
    b:f32[4] = sin a
  in (b,) }
"""
    )


def test_what_is_a_result_already_is_no_other_one(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    y = b.op("sin", x)
    program = Program(b.block(x, y))
    assert (
        run("other-results", program)
        == """\
{ lambda ; a:f32[4]. let
    b:f32[4] = sin a
  in (a, b) }
"""
    )
