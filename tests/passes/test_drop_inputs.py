"""Pass `drop-inputs`: drop inputs."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Grad, Program
from reducer.ir.types import parse_type


def test_uses_become_another_input_or_zeros(run: Callable[..., str]) -> None:
    b = Builder()
    x, y, z = b.param(parse_type("f32[4]")), b.param(parse_type("f32[4]")), b.param(parse_type("f32[3]"))
    program = Program(b.block(b.op("add", x, y), b.op("sin", z)), Grad((1, 2)))

    def holds(p: Program) -> bool:
        return any(v.type.shape == (4,) for v in p.block.params)

    assert (
        run("drop-inputs", program, holds)
        == """\
value_and_grad(argnums=(0,)) of
{ lambda ; a:f32[4]. let
    b:f32[3] = full 0.0
    c:f32[3] = sin b
    d:f32[4] = add a a
  in (c, d) }
"""
    )
