"""Pass `simplify-entries`: drop shardings and donation."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Entry, Mesh, Program
from reducer.ir.types import parse_type


def test_nothing_is_sharded_or_donated(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    program = Program(
        b.block(b.op("sin", x)),
        mesh=Mesh((("x", 4),)),
        inputs=(Entry(("x",), donated=True),),
        result_specs=(("x",),),
    )
    assert (
        run("simplify-entries", program)
        == """\
mesh x=4
{ lambda ; a:f32[4]. let
    b:f32[4] = sin a
  in (b,) }
"""
    )
