"""The exact minimum on the real compiler: different programs with one bug end as the same text, for few compiles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reducer.ir.build import Builder
from reducer.ir.codec import decode
from reducer.ir.equations import BARRIER, Grad, Program
from reducer.ir.policies import OffloadNames
from reducer.ir.text import to_text
from reducer.ir.types import Type
from reducer.oracle.outcome import Result, Skipped
from reducer.oracle.programs import ProgramOracle
from reducer.oracle.signature import signature
from reducer.shrink import certify_program, shrink_program

if TYPE_CHECKING:
    from reducer.oracle.pool import Pool

SEED = Path(__file__).parents[1] / "seed" / "trip_count_one.json"

TRIP_COUNT_ONE = """\
grad(argnums=(0,)) of
{ lambda ; a:f32[]. let
    b:f32[] = scan[
      length=1
      num_carry=1
      metadata={skip-simplify-while-loops_trip-count-one: true}
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
  in (b,) }"""

SCALAR_PER_STEP = """\
grad(argnums=(0,)) of
{ lambda ; a:f32[]. let
    b:f32[] = checkpoint[
      policy=save_and_offload_only_these_names(offloaded=(h) device->pinned_host)
      body={ lambda ; c:f32[]. let
          d:f32[] = scan[length=2 num_carry=1
            body={ lambda ; e:f32[]. let
                f:f32[] = name[name=h] e
              in (f,) }
          ] c
          g:f32[] = sin d
        in (g,) }
    ] a
  in (b,) }"""


def nest(
    *lengths: int,
    tagged: tuple[int, ...] = (),
    around: int | None = None,
    dtype: str = "float32",
    shape: tuple[int, ...] = (8, 128),
    function: str = "tanh",
    stacked: bool = False,
    residual: bool = False,
) -> Program:
    """Loops of these lengths, outermost first, around a layer `function(name(x) @ w)`, differentiated.

    The checkpoint stands outside loop number `around` (None: inside all of them). Loops in `tagged` carry the barrier.
    """
    x_type = Type(dtype, shape)
    w_type = Type(dtype, (shape[-1], shape[-1])) if shape else x_type
    layer = Builder()
    x, w = layer.param(x_type), layer.param(w_type)
    h = layer.name(x, "act")
    y = layer.op(function, layer.matmul(h, w) if shape else layer.op("mul", h, w))
    if residual:
        y = layer.op("add", layer.name(y, "other"), x)
    block = layer.block(y)
    for level in range(len(lengths), -1, -1):
        if level == (len(lengths) if around is None else around):
            b = Builder()
            x, w = b.param(x_type), b.param(w_type)
            policy = OffloadNames(("act",), ("other",))
            block = b.block(*b.checkpoint(block, x, w, policy=policy, prevent_cse=False))
        if level:
            body = Builder()
            w, x = body.param(w_type), body.param(x_type)
            (y,) = body.call(block, x, w)
            inner = body.block(y, y) if stacked else body.block(y)
            metadata = BARRIER if level - 1 in tagged else ()
            b = Builder()
            x, w = b.param(x_type), b.param(w_type)
            outs = b.scan(inner, length=lengths[level - 1], consts=[w], carry=[x], metadata=metadata)
            block = b.block(outs[0])
    return Program(block, gradient=Grad((0, 1)))


STARTS = {
    "the seed": (decode(SEED.read_bytes()), TRIP_COUNT_ONE),
    "bf16, three turns": (
        nest(3, 1, tagged=(1,), dtype="bfloat16", function="logistic", residual=True),
        TRIP_COUNT_ONE,
    ),
    "checkpoint between the loops": (nest(5, 1, tagged=(0, 1), around=1, stacked=True), TRIP_COUNT_ONE),
    "checkpoint outside": (nest(1, tagged=(0,), around=0), TRIP_COUNT_ONE),
    "checkpoint outside two loops": (
        nest(1, 1, tagged=(0, 1), around=0, shape=(16, 128), dtype="bfloat16", residual=True),
        TRIP_COUNT_ONE,
    ),
    "rank three": (
        nest(1, tagged=(0,), around=0, function="exp", shape=(2, 8, 128), stacked=True),
        TRIP_COUNT_ONE,
    ),
    "a scalar per step": (nest(4, shape=()), SCALAR_PER_STEP),
    "a scalar per step, checkpoint outside": (nest(3, around=0, shape=(), residual=True), SCALAR_PER_STEP),
    "a scalar per step, stacked": (nest(6, shape=(), function="cos", stacked=True), SCALAR_PER_STEP),
}


@pytest.mark.parametrize("name", STARTS)
def test_the_minimum(name: str, pool: Pool) -> None:
    start, text = STARTS[name]
    oracle = ProgramOracle(pool, require_host_placement=True)
    answer = oracle.submit(start).result().answer
    assert not isinstance(answer, Skipped)
    failure = signature(answer)
    assert failure is not None, answer

    def wanted(result: Result) -> bool:
        return not isinstance(result.answer, Skipped) and signature(result.answer) == failure

    shrunk = shrink_program(start, oracle, wanted)
    assert to_text(shrunk.program) == text
    assert shrunk.minimal
    assert shrunk.to_fixpoint <= 30
    assert shrunk.compiles <= 50
    if name == "the seed":
        certificate = certify_program(shrunk.program, oracle, wanted)
        assert certificate.minimal
        # The nearest program that compiles is the same one without the barrier.
        assert certificate.counts()["metadata"] == {"compiles": 1}
