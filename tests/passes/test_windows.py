"""Pass `windows`: delete and unwrap several equations at once."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder
from reducer.ir.equations import Checkpoint, Program, Scan
from reducer.ir.policies import OffloadNames
from reducer.ir.types import parse_type
from reducer.ir.walk import equations
from reducer.passes.windows import LARGER, LARGEST, windows


def test_two_go_where_neither_could_go_alone(run: Callable[..., str]) -> None:
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    program = Program(b.block(b.op("exp", b.op("neg", b.op("neg", x)))))

    def holds(p: Program) -> bool:
        return sum(getattr(e, "primitive", "") == "neg" for e in p.block.eqns) % 2 == 0 and bool(p.block.eqns)

    assert (
        run("windows", program, holds)
        == """\
{ lambda ; a:f32[4]. let
    b:f32[4] = exp a
  in (b,) }
"""
    )


def test_pairs_only_in_a_larger_program_and_nothing_in_a_large_one() -> None:
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    for _ in range(LARGEST):
        x = b.op("sin", x)
    small = list(windows(Program(b.block(x))))
    x = b.op("sin", x)
    larger = list(windows(Program(b.block(x))))
    # Of n equations in a row: n-3 fours, 3(n-3)+1 threes and 3(n-2) pairs; or the n-1 pairs of neighbours.
    assert (len(small), len(larger)) == (13 + 40 + 42, 16)
    for _ in range(LARGER - LARGEST):
        x = b.op("sin", x)
    assert list(windows(Program(b.block(x)))) == []


def test_regions_around_each_other_go_together(run: Callable[..., str]) -> None:
    inner = Builder()
    layer = Builder()
    y = layer.op("sin", layer.name(layer.param(parse_type("f32[4]")), "h"))
    outs = inner.checkpoint(layer.block(y), inner.param(parse_type("f32[4]")), policy=OffloadNames(("h",)))
    body = Builder()
    outs = body.scan(inner.block(*outs), length=2, carry=[body.param(parse_type("f32[4]"))])
    b = Builder()
    x = b.param(parse_type("f32[4]"))
    program = Program(b.block(*b.scan(body.block(*outs), length=3, carry=[x])))

    def holds(p: Program) -> bool:
        return sum(isinstance(e, Scan) for _, _, e in equations(p)) in (0, 2) and any(
            isinstance(e, Checkpoint) for _, _, e in equations(p)
        )

    assert (
        run("windows", program, holds)
        == """\
{ lambda ; a:f32[4]. let
    b:f32[4] = checkpoint[
      policy=save_and_offload_only_these_names(offloaded=(h) device->pinned_host)
      body={ lambda ; c:f32[4]. let
          d:f32[4] = sin c
        in (d,) }
    ] a
  in (b,) }
"""
    )
