"""Pass `hoist-equations`: move equations out of regions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reducer.errors import ProgramError
from reducer.ir.build import Builder
from reducer.ir.equations import Op, Program, Scan
from reducer.ir.hoist import moved_after, moved_before
from reducer.ir.types import parse_type
from reducer.ir.walk import equations


def has(*primitives: str) -> Callable[[Program], bool]:
    """A scan, and all these operations."""

    def holds(program: Program) -> bool:
        found = [eqn for _, _, eqn in equations(program)]
        names = {eqn.primitive for eqn in found if isinstance(eqn, Op)}
        return any(isinstance(eqn, Scan) for eqn in found) and set(primitives) <= names

    return holds


def loop() -> Program:
    body = Builder()
    c, x = body.param(parse_type("f32[4]")), body.param(parse_type("f32[4]"))
    y = body.op("mul", body.op("exp", c), body.op("cos", x))
    block = body.block(body.op("tanh", y), body.op("sin", y))
    b = Builder()
    x, xs = b.param(parse_type("f32[4]")), b.param(parse_type("f32[3,4]"))
    return Program(b.block(*b.scan(block, length=3, carry=[x], xs=[xs])))


def test_what_comes_first_and_last_moves_out(run: Callable[..., str]) -> None:
    assert (
        run("hoist-equations", loop(), has("mul", "exp", "cos", "tanh", "sin"))
        == """\
{ lambda ; a:f32[4] b:f32[3,4]. let
    c:f32[4] = exp a
    d:f32[3,4] = cos b
    e:f32[4] f:f32[3,4] = scan[length=3 num_carry=1
      body={ lambda ; g:f32[4] h:f32[4]. let
          i:f32[4] = mul g h
        in (i, i) }
    ] c d
    j:f32[3,4] = sin f
    k:f32[4] = tanh e
  in (j, k) }
"""
    )


def test_what_is_used_twice_stays() -> None:
    body = Builder()
    c = body.param(parse_type("f32[]"))
    y = body.op("sin", c)
    b = Builder()
    x = b.param(parse_type("f32[]"))
    block = b.block(*b.scan(body.block(body.op("add", y, c), y), length=2, carry=[x]))
    with pytest.raises(ProgramError, match="parameter that nothing else uses"):
        moved_before(block, 0, 0)
    with pytest.raises(ProgramError, match="result of the region and nothing else"):
        moved_after(block, 0, 0)
    with pytest.raises(ProgramError, match="no region with such an equation"):
        moved_after(block, 0, 1)
