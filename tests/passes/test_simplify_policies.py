"""Pass `simplify-policies`: simplify checkpoint policies."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.policies import Both, OffloadNames, SaveNames, offloads
from reducer.ir.types import parse_type


def test_no_policy_is_simplest(run: Callable[..., str]) -> None:
    inner = Builder()
    y = inner.op("sin", inner.name(inner.param(parse_type("f32[4]")), "a"))
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    policy = Both(SaveNames(("b",)), OffloadNames(("a", "b"), ("c",)))
    program = Program(b.block(*b.checkpoint(inner.block(y), x, policy=policy)))
    assert (
        run("simplify-policies", program)
        == """\
{ lambda ; a:f32[4]. let
    b:f32[4] = checkpoint[
      body={ lambda ; c:f32[4]. let
          d:f32[4] = name[name=h] c
          e:f32[4] = sin d
        in (e,) }
    ] a
  in (b,) }
"""
    )


def test_one_offloaded_name_is_left(run: Callable[..., str]) -> None:
    inner = Builder()
    y = inner.op("sin", inner.name(inner.param(parse_type("f32[4]")), "a"))
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    policy = Both(SaveNames(("b",)), OffloadNames(("a", "b"), ("c",)))
    program = Program(b.block(*b.checkpoint(inner.block(y), x, policy=policy)))

    def holds(p: Program) -> bool:
        return offloads(p.block.eqns[0].policy)

    assert (
        run("simplify-policies", program, holds)
        == """\
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
