"""Pass `keep-one`: keep one region of a large program and nothing around it."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Grad, Program, Scan
from reducer.ir.policies import OffloadNames
from reducer.ir.types import parse_type
from reducer.ir.walk import equations


def test_one_region_of_a_large_program_is_left(run: Callable[..., str]) -> None:
    inner = Builder()
    y = inner.op("sin", inner.name(inner.param(parse_type("f32[4]")), "h"))
    middle = Builder()
    c = middle.op("neg", middle.param(parse_type("f32[4]")))
    outs = middle.checkpoint(inner.block(y), c, policy=OffloadNames(("h",)))
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    for _ in range(60):
        x = b.op("exp", x)
    (y,) = b.scan(middle.block(*outs), length=3, carry=[x])
    program = Program(b.block(b.op("tanh", y)), Grad((0,)))

    def holds(p: Program) -> bool:
        return any(isinstance(eqn, Scan) for _, _, eqn in equations(p))

    assert (
        run("keep-one", program, holds)
        == """\
value_and_grad(argnums=(0,)) of
{ lambda ; a:f32[4]. let
    b:f32[4] = scan[length=3 num_carry=1
      body={ lambda ; c:f32[4]. let
          d:f32[4] = neg c
          e:f32[4] = checkpoint[
            policy=save_and_offload_only_these_names(offloaded=(h) device->pinned_host)
            body={ lambda ; f:f32[4]. let
                g:f32[4] = name[name=h] f
                h:f32[4] = sin g
              in (h,) }
          ] d
        in (e,) }
    ] a
  in (b,) }
"""
    )


def test_a_small_program_is_left_alone(run: Callable[..., str]) -> None:
    inner = Builder()
    y = inner.op("sin", inner.name(inner.param(parse_type("f32[4]")), "h"))
    b = Builder()
    x = b.op("exp", b.param(parse_type("f32[4]")))
    outs = b.checkpoint(inner.block(y), x, policy=OffloadNames(("h",)))
    program = Program(b.block(*outs), Grad((0,)))
    assert (
        run("keep-one", program)
        == """\
value_and_grad(argnums=(0,)) of
{ lambda ; a:f32[4]. let
    b:f32[4] = exp a
    c:f32[4] = checkpoint[
      policy=save_and_offload_only_these_names(offloaded=(h) device->pinned_host)
      body={ lambda ; d:f32[4]. let
          e:f32[4] = name[name=h] d
          f:f32[4] = sin e
        in (f,) }
    ] b
  in (c,) }
"""
    )
