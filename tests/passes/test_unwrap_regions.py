"""Pass `unwrap-regions`: replace regions by what is in them."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import parse_type
from reducer.ir.walk import equations


def test_regions_become_what_is_in_them(run: Callable[..., str]) -> None:
    inner = Builder()
    y = inner.op("sin", inner.param(parse_type("f32[4]")))
    body = Builder()
    c, x = body.param(parse_type("f32[4]")), body.param(parse_type("f32[4]"))
    (z,) = body.checkpoint(inner.block(y), x)
    b = Builder()
    c, xs = b.param(parse_type("f32[4]")), b.param(parse_type("f32[3,4]"))
    program = Program(b.block(*b.scan(body.block(body.op("add", 0, z), z), length=3, carry=[c], xs=[xs])))
    assert (
        run("unwrap-regions", program)
        == """\
{ lambda ; a:f32[4] b:f32[3,4]. let
    c:f32[4] = sin a
    d:f32[4] = add a c
  in (b, d) }
"""
    )


def test_a_cond_becomes_its_first_branch(run: Callable[..., str]) -> None:
    one = Builder()
    one_block = one.block(one.op("sin", one.param(parse_type("f32[4]"))))
    two = Builder()
    two_block = two.block(two.op("exp", two.param(parse_type("f32[4]"))))
    b = Builder()
    i, x = b.param(parse_type("i32[]")), b.param(parse_type("f32[4]"))
    program = Program(b.block(*b.cond(i, [one_block, two_block], x)))
    assert (
        run("unwrap-regions", program)
        == """\
{ lambda ; a:f32[4] b:i32[]. let
    c:f32[4] = sin a
  in (c,) }
"""
    )


def test_or_the_branch_that_matters(run: Callable[..., str]) -> None:
    one = Builder()
    one_block = one.block(one.op("sin", one.param(parse_type("f32[4]"))))
    two = Builder()
    two_block = two.block(two.op("exp", two.param(parse_type("f32[4]"))))
    b = Builder()
    i, x = b.param(parse_type("i32[]")), b.param(parse_type("f32[4]"))
    program = Program(b.block(*b.cond(i, [one_block, two_block], x)))

    def holds(p: Program) -> bool:
        return any(getattr(eqn, "primitive", "") == "exp" for _, _, eqn in equations(p))

    assert (
        run("unwrap-regions", program, holds)
        == """\
{ lambda ; a:f32[4] b:i32[]. let
    c:f32[4] = exp a
  in (c,) }
"""
    )
