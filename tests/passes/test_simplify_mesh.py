"""Pass `simplify-mesh`: use fewer devices."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Entry, Mesh, Program
from reducer.ir.types import parse_type


def test_no_mesh_is_simplest(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    program = Program(b.block(b.op("sin", x)), mesh=Mesh((("x", 4), ("y", 2))), inputs=(Entry(("x",)),))
    assert (
        run("simplify-mesh", program)
        == """\
{ lambda ; a:f32[4]. let
    b:f32[4] = sin a
  in (b,) }
"""
    )


def test_the_least_mesh(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    program = Program(b.block(b.op("sin", x)), mesh=Mesh((("x", 4), ("y", 2))), inputs=(Entry(("x",)),))

    def holds(p: Program) -> bool:
        return p.mesh is not None and p.mesh.size > 1

    assert (
        run("simplify-mesh", program, holds)
        == """\
mesh y=2
{ lambda ; a:f32[4]. let
    b:f32[4] = sin a
  in (b,) }
"""
    )
