"""Pass `simplify-operations`: replace operations by simpler ones."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import parse_type


def test_functions_become_sin(run: Callable[..., str]) -> None:
    b = Builder()
    x, y = b.param(parse_type("f32[4]")), b.param(parse_type("f32[4]"))
    program = Program(b.block(b.op("logistic", b.op("atan2", x, y))))
    assert (
        run("simplify-operations", program)
        == """\
{ lambda ; a:f32[4] b:f32[4]. let
    c:f32[4] = sin a
    d:f32[4] = sin c
  in (d,) }
"""
    )
