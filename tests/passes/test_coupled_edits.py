"""Pass `coupled-edits`: take something away and make up for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from reducer.errors import ProgramError
from reducer.ir.build import Builder, lit
from reducer.ir.dims import dimensions
from reducer.ir.equations import Fill, Grad, Op, Program, Scan
from reducer.ir.text import to_text
from reducer.ir.types import Type, parse_type
from reducer.ir.walk import blocks, equations
from reducer.passes.coupled import LARGEST, coupled_edits

SCALAR = parse_type("f32[]")


def scans(program: Program) -> list[Scan]:
    return [eqn for _, _, eqn in equations(program) if isinstance(eqn, Scan)]


def test_a_loop_goes_and_another_turns_once_more(run: Callable[..., str]) -> None:
    inner = Builder()
    inner_block = inner.block(inner.op("sin", inner.param(SCALAR)))
    body = Builder()
    outs = body.scan(inner_block, length=2, carry=[body.param(SCALAR)])
    b = Builder()
    program = Program(b.block(*b.scan(body.block(*outs), length=1, carry=[b.param(SCALAR)])))

    def two_turns(p: Program) -> bool:
        """Two nested loops of some length, or one of three turns."""
        found = scans(p)
        if not any(isinstance(eqn, Op) for _, _, eqn in equations(p)):
            return False
        if [var.type for var in p.block.params] != [SCALAR]:
            return False
        return len(found) == 2 or (len(found) == 1 and found[0].length == 3)

    assert (
        run("coupled-edits", program, two_turns)
        == """\
{ lambda ; a:f32[]. let
    b:f32[] = scan[length=3 num_carry=1
      body={ lambda ; c:f32[]. let
          d:f32[] = sin c
        in (d,) }
    ] a
  in (b,) }
"""
    )


def test_a_layer_is_fed_by_an_input_instead(run: Callable[..., str]) -> None:
    body = Builder()
    c, x = body.param(SCALAR), body.param(SCALAR)
    block = body.block(body.op("sin", body.op("mul", c, x)))
    b = Builder()
    program = Program(
        b.block(*b.scan(block, length=2, carry=[lit(0.0)], xs=[b.param(parse_type("f32[2]"))])), gradient=Grad((0,))
    )

    def depends(p: Program) -> bool:
        """A product with what is sliced in the loop, or a loop with one carry from an input; and a gradient."""
        products = any(isinstance(eqn, Op) and eqn.primitive == "mul" for _, _, eqn in equations(p))
        fed = any(eqn.carry == (0,) and not eqn.xs and eqn.length == 2 and eqn.body.eqns for eqn in scans(p))
        return p.gradient is not None and (products or fed)

    assert (
        run("coupled-edits", program, depends)
        == """\
value_and_grad(argnums=(0,)) of
{ lambda ; a:f32[]. let
    b:f32[] = scan[length=2 num_carry=1
      body={ lambda ; c:f32[]. let
          d:f32[] = sin c
        in (d,) }
    ] a
  in (b,) }
"""
    )


def test_an_equation_goes_and_everything_changes_its_type(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("bf16[2]"))
    program = Program(b.block(b.op("sin", b.op("neg", x))))

    def holds(p: Program) -> bool:
        types = {var.type for place in blocks(p) for var in place.block.params}
        ops = [eqn for _, _, eqn in equations(p) if not isinstance(eqn, Fill)]
        return (len(ops) == 2 and types == {x_type}) or (len(ops) == 1 and types == {Type("float32", (2,))})

    x_type = parse_type("bf16[2]")
    assert run("coupled-edits", program, holds).splitlines()[0] == "{ lambda ; a:f32[2]. let"


def test_a_gradient_or_one_element_more_for_an_equation() -> None:
    b = Builder()
    x = b.param(parse_type("f32[2]"))
    program = Program(b.block(b.op("sin", b.op("exp", x))))
    texts = set()
    for build in coupled_edits(program):
        with contextlib.suppress(ProgramError):
            texts.add(to_text(build()))
    assert "grad(argnums=(0,)) of\n{ lambda ; a:f32[2]. let\n    b:f32[2] = exp a\n  in (b,) }" in texts
    assert "{ lambda ; a:f32[3]. let\n    b:f32[3] = sin a\n  in (b,) }" in texts


def test_large_programs_are_left_alone() -> None:
    b = Builder()
    x = b.param(SCALAR)
    for _ in range(LARGEST + 1):
        x = b.op("sin", x)
    assert list(coupled_edits(Program(b.block(x)))) == []
    assert dimensions(Program(b.block(x))) == ()


def test_a_loop_becomes_an_input_that_is_a_stack(run: Callable[..., str]) -> None:
    inner = Builder()
    inner_block = inner.block(inner.param(SCALAR))
    body = Builder()
    (ys,) = body.scan(inner_block, length=2, consts=[body.param(SCALAR)])
    b = Builder()
    program = Program(b.block(*b.scan(body.block(ys), length=1, consts=[b.param(SCALAR)])))

    def deep(p: Program) -> bool:
        """A stack of two loops, or one large enough of one loop that turns."""
        if not p.block.params or not scans(p):
            return False
        (x, *_) = p.block.params
        return x.type.dtype == "float32" and (len(scans(p)) == 2 or (x.type.rank > 3 and scans(p)[0].length > 1))

    assert (
        run("coupled-edits", program, deep)
        == """\
{ lambda ; a:f32[2,2,2,1]. let
    b:f32[2,2,2,2,1] = scan[length=2 num_consts=1
      body={ lambda ; c:f32[2,2,2,1]. let
        in (c,) }
    ] a
  in (b,) }
"""
    )
