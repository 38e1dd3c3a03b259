"""Pass `simplify-gradient`: differentiate less."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Grad, Program
from reducer.ir.types import parse_type


def test_no_gradient_is_simplest(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    program = Program(b.block(b.op("sin", x)), Grad((0,)))
    assert (
        run("simplify-gradient", program)
        == """\
{ lambda ; a:f32[4]. let
    b:f32[4] = sin a
  in (b,) }
"""
    )


def test_one_argument_and_no_value(run: Callable[..., str]) -> None:
    b = Builder()
    x, y = b.param(parse_type("f32[4]")), b.param(parse_type("f32[4]"))
    program = Program(b.block(b.op("add", x, y)), Grad((0, 1)))

    def holds(p: Program) -> bool:
        return p.gradient is not None

    assert (
        run("simplify-gradient", program, holds)
        == """\
grad(argnums=(0,)) of
{ lambda ; a:f32[4] b:f32[4]. let
    c:f32[4] = add a b
  in (c,) }
"""
    )
