"""Pass `keep-one`: keep one region and nothing around it."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Checkpoint, Grad, Program
from reducer.ir.policies import OffloadNames
from reducer.ir.types import parse_type
from reducer.ir.walk import equations


def test_the_innermost_region_is_left(run: Callable[..., str]) -> None:
    inner = Builder()
    y = inner.op("sin", inner.name(inner.param(parse_type("f32[4]")), "h"))
    middle = Builder()
    c = middle.param(parse_type("f32[4]"))
    outs = middle.checkpoint(inner.block(y), c, policy=OffloadNames(("h",)))
    b = Builder()
    x = b.op("exp", b.param(parse_type("f32[4]")))
    (y,) = b.scan(middle.block(*outs), length=3, carry=[x])
    program = Program(b.block(b.op("tanh", y)), Grad((0,)))

    def holds(p: Program) -> bool:
        return any(isinstance(eqn, Checkpoint) for _, _, eqn in equations(p))

    assert (
        run("keep-one", program, holds)
        == """\
value_and_grad(argnums=(0,)) of
{ lambda ; a:f32[4]. let
    b:f32[4] = checkpoint[
      policy=save_and_offload_only_these_names(offloaded=(h) device->pinned_host)
      body={ lambda ; c:f32[4]. let
          d:f32[4] = name[name=h] c
          e:f32[4] = sin d
        in (e,) }
    ] a
  in (b,) }
"""
    )
