"""Pass `plain-layers`: replace what a block computes by sin(name(x))."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Grad, Program
from reducer.ir.policies import OffloadNames
from reducer.ir.types import parse_type
from reducer.ir.walk import equations


def test_a_layer_becomes_sin_of_its_name(run: Callable[..., str]) -> None:
    layer = Builder()
    x, w = layer.param(parse_type("f32[8,128]")), layer.param(parse_type("f32[128,128]"))
    y = layer.op("tanh", layer.matmul(layer.name(x, "act"), w))
    b = Builder()
    x, w = b.param(parse_type("f32[8,128]")), b.param(parse_type("f32[128,128]"))
    program = Program(b.block(*b.checkpoint(layer.block(y), x, w, policy=OffloadNames(("act",)))), Grad((0,)))
    assert (
        run("plain-layers", program)
        == """\
value_and_grad(argnums=(0,)) of
{ lambda ; a:f32[8,128] b:f32[128,128]. let
    c:f32[8,128] = checkpoint[
      policy=save_and_offload_only_these_names(offloaded=(h) device->pinned_host)
      body={ lambda ; d:f32[8,128]. let
          e:f32[8,128] = name[name=h] d
          f:f32[8,128] = sin e
        in (f,) }
    ] a
  in (c,) }
"""
    )


def test_where_weights_matter_a_layer_becomes_one_product_with_its_name(run: Callable[..., str]) -> None:
    layer = Builder()
    x, w = layer.param(parse_type("f32[8,128]")), layer.param(parse_type("f32[128,128]"))
    y = layer.op("tanh", layer.name(layer.matmul(layer.op("exp", x), w), "act"))
    b = Builder()
    x, w = b.param(parse_type("f32[8,128]")), b.param(parse_type("f32[128,128]"))
    program = Program(b.block(*b.checkpoint(layer.block(y), x, w, policy=OffloadNames(("act",)))), Grad((0, 1)))

    def holds(p: Program) -> bool:
        return any(getattr(eqn, "primitive", "") == "dot_general" for _, _, eqn in equations(p))

    assert (
        run("plain-layers", program, holds)
        == """\
value_and_grad(argnums=(0, 1)) of
{ lambda ; a:f32[8,128] b:f32[128,128]. let
    c:f32[8,128] = checkpoint[
      policy=save_and_offload_only_these_names(offloaded=(h) device->pinned_host)
      body={ lambda ; d:f32[8,128] e:f32[128,128]. let
          f:f32[8,128] = name[name=h] d
          g:f32[8,128] = dot_general[dimension_numbers=(((1,), (0,)), ((), ()))] f e
        in (g,) }
    ] a b
  in (c,) }
"""
    )
