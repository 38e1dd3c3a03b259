"""Write the seed programs: one layer offloaded under one scan, under two, and under two of which one runs once.

Run it after a change of the file format: ``python tests/seed/make.py``.
"""

from __future__ import annotations

from pathlib import Path

from reducer.ir.build import Builder
from reducer.ir.codec import encode
from reducer.ir.equations import BARRIER, Block, Grad, Metadata, Program
from reducer.ir.policies import OffloadNames
from reducer.ir.types import Type

D, B, LAYERS = 128, 8, 12
CARRY = Type("float32", (B, D))
WEIGHT = Type("float32", (D, D))


def layer() -> Block:
    """One layer: ``tanh(checkpoint_name(c, "h") @ w)``.

    The name is on what the backward pass needs: a named result of the layer would never be a residual, and nothing
    would be offloaded.
    """
    inner = Builder()
    c, w = inner.param(CARRY), inner.param(WEIGHT)
    body = inner.block(inner.op("tanh", inner.matmul(inner.name(c, "h"), w)))
    outer = Builder()
    c, w = outer.param(CARRY), outer.param(WEIGHT)
    return outer.block(*outer.checkpoint(body, c, w, policy=OffloadNames(("h",)), prevent_cse=False))


def stack(body: Block, weights: Type, length: int, metadata: Metadata = ()) -> Block:
    """A block that scans a body over a stack of weights."""
    b = Builder()
    c, w = b.param(CARRY), b.param(weights.stacked(length))
    return b.block(*b.scan(body, length=length, carry=(c,), xs=(w,), metadata=metadata))


def loss(block: Block) -> Program:
    """Differentiate a block in its weights."""
    return Program(block, gradient=Grad((1,)))


def programs() -> dict[str, Program]:
    """The seed programs by name."""
    return {
        "flat": loss(stack(layer(), WEIGHT, LAYERS)),
        "nested": loss(stack(stack(layer(), WEIGHT, 3), WEIGHT.stacked(3), 4)),
        "trip_count_one": loss(stack(stack(layer(), WEIGHT, 1, BARRIER), WEIGHT.stacked(1), LAYERS)),
        "trip_count_one_no_barrier": loss(stack(stack(layer(), WEIGHT, 1), WEIGHT.stacked(1), LAYERS)),
    }


if __name__ == "__main__":
    for name, program in programs().items():
        Path(__file__).with_name(f"{name}.json").write_bytes(encode(program, indent=2) + b"\n")
