"""Pass `stack-carries`: return what every turn makes of a carry."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.canonical import canonical
from reducer.ir.equations import Program
from reducer.ir.text import to_text
from reducer.ir.types import parse_type

VECTOR = parse_type("f32[4]")


def loop(result_is_used: bool) -> Program:
    body = Builder()
    c, x = body.param(VECTOR), body.param(VECTOR)
    b = Builder()
    xs = b.param(parse_type("f32[3,4]"))
    block = body.block(body.op("add", body.op("exp", c), x))
    (y,) = b.scan(block, length=3, carry=[b.fill(VECTOR)], xs=[xs])
    return Program(b.block(b.op("neg", y) if result_is_used else y))


def test_the_last_value_becomes_those_of_all_turns(run: Callable[..., str]) -> None:
    assert (
        run("stack-carries", loop(result_is_used=False))
        == """\
{ lambda ; a:f32[3,4]. let
    b:f32[3,4] = scan[length=3
      body={ lambda ; c:f32[4]. let
          d:f32[4] = full 0.0
          e:f32[4] = exp d
          f:f32[4] = add e c
        in (f,) }
    ] a
  in (b,) }
"""
    )


def test_a_last_value_that_is_used_stays(run: Callable[..., str]) -> None:
    program = loop(result_is_used=True)
    assert run("stack-carries", program) == to_text(canonical(program)) + "\n"
