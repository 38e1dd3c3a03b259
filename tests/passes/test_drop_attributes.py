"""Pass `drop-attributes`: drop optional attributes."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Enum, Program
from reducer.ir.types import parse_type


def test_optional_ones_go_and_others_stay(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("f32[4,4]"))
    numbers = (((1,), (0,)), ((), ()))
    highest = Enum("Precision.HIGHEST")
    program = Program(b.block(b.op("dot_general", x, x, dimension_numbers=numbers, precision=highest)))
    assert (
        run("drop-attributes", program)
        == """\
{ lambda ; a:f32[4,4]. let
    b:f32[4,4] = dot_general[dimension_numbers=(((1,), (0,)), ((), ()))] a a
  in (b,) }
"""
    )
