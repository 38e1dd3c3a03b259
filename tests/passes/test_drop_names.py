"""Pass `drop-names`: drop names that nothing has from policies."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.policies import OffloadNames
from reducer.ir.types import parse_type


def test_policies_forget_names_nothing_has(run: Callable[..., str]) -> None:
    inner = Builder()
    y = inner.op("sin", inner.name(inner.param(parse_type("f32[4]")), "a"))
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    program = Program(b.block(*b.checkpoint(inner.block(y), x, policy=OffloadNames(("a", "c"), ("d",)))))
    assert (
        run("drop-names", program)
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
