"""Pass `drop-results`: drop results with what only they need."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_one_result_is_left(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    program = Program(b.block(b.op("sin", x), b.op("exp", x), b.op("cos", x)))
    assert (
        run("drop-results", program)
        == """\
{ lambda ; a:f32[4]. let
    b:f32[4] = sin a
  in (b,) }
"""
    )
