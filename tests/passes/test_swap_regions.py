"""Pass `swap-regions`: exchange scans and checkpoints."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Program, Scan
from reducer.ir.policies import OffloadNames
from reducer.ir.types import parse_type


def test_the_checkpoint_goes_outside(run: Callable[..., str]) -> None:
    inner = Builder()
    y = inner.op("sin", inner.name(inner.param(parse_type("f32[4]")), "h"))
    body = Builder()
    outs = body.checkpoint(inner.block(y), body.param(parse_type("f32[4]")), policy=OffloadNames(("h",)))
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    program = Program(b.block(*b.scan(body.block(*outs), length=3, carry=[x])))
    assert (
        run("swap-regions", program)
        == """\
{ lambda ; a:f32[4]. let
    b:f32[4] = checkpoint[
      policy=save_and_offload_only_these_names(offloaded=(h) device->pinned_host)
      body={ lambda ; c:f32[4]. let
          d:f32[4] = scan[length=3 num_carry=1
            body={ lambda ; e:f32[4]. let
                f:f32[4] = name[name=h] e
                g:f32[4] = sin f
              in (g,) }
          ] c
        in (d,) }
    ] a
  in (b,) }
"""
    )


def test_or_inside_where_slices_are_smaller_than_stacks(run: Callable[..., str]) -> None:
    body = Builder()
    c, x = body.param(parse_type("f32[4]")), body.param(parse_type("f32[4]"))
    block = body.block(body.op("sin", body.op("mul", body.name(c, "h"), x)), x)
    inner = Builder()
    x, xs = inner.param(parse_type("f32[4]")), inner.param(parse_type("f32[3,4]"))
    outs = inner.scan(block, length=3, carry=[x], xs=[xs])
    b = Builder()
    x, xs = b.param(parse_type("f32[4]")), b.param(parse_type("f32[3,4]"))
    program = Program(b.block(*b.checkpoint(inner.block(*outs), x, xs, policy=OffloadNames(("h",)))))
    assert (
        run("swap-regions", program)
        == """\
{ lambda ; a:f32[4] b:f32[3,4]. let
    c:f32[4] d:f32[3,4] = scan[length=3 num_carry=1
      body={ lambda ; e:f32[4] f:f32[4]. let
          g:f32[4] h:f32[4] = checkpoint[
            policy=save_and_offload_only_these_names(offloaded=(h) device->pinned_host)
            body={ lambda ; i:f32[4] j:f32[4]. let
                k:f32[4] = name[name=h] i
                l:f32[4] = mul k j
                m:f32[4] = sin l
              in (m, j) }
          ] e f
        in (g, h) }
    ] a b
  in (d, c) }
"""
    )


def test_the_flag_goes_back_to_its_default_on_the_way(run: Callable[..., str]) -> None:
    layer = Builder()
    y = layer.op("sin", layer.name(layer.param(parse_type("f32[]")), "h"))
    body = Builder()
    outs = body.scan(layer.block(y), length=1, carry=[body.param(parse_type("f32[]"))])
    b = Builder()
    x = b.param(parse_type("f32[]"))
    policy = OffloadNames(("h",))
    program = Program(b.block(*b.checkpoint(body.block(*outs), x, policy=policy, prevent_cse=False)))

    def holds(p: Program) -> bool:
        return isinstance(p.block.eqns[0], Scan) or not p.block.eqns[0].prevent_cse

    assert (
        run("swap-regions", program, holds)
        == """\
{ lambda ; a:f32[]. let
    b:f32[] = scan[length=1 num_carry=1
      body={ lambda ; c:f32[]. let
          d:f32[] = checkpoint[
            policy=save_and_offload_only_these_names(offloaded=(h) device->pinned_host)
            body={ lambda ; e:f32[]. let
                f:f32[] = name[name=h] e
                g:f32[] = sin f
              in (g,) }
          ] c
        in (d,) }
    ] a
  in (b,) }
"""
    )
