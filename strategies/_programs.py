"""`programs()`: any mixture of regions, layers and transfers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

from reducer.ir.equations import Program
from reducer.ir.types import Type
from strategies._assemble import assemble
from strategies._draws import (
    FEATURES,
    THREE_IN_FOUR,
    draw_dtype,
    draw_gradient,
    draw_leaf,
    draw_loop,
    draw_mesh,
    draw_remat,
    draw_shape,
)
from strategies._motifs import WEIGHTED
from strategies._source import Draw, Source, often
from strategies._trees import (
    Branch,
    Jit,
    Loop,
    Move,
    Moved,
    Node,
    Plan,
    Seq,
    Slot,
    Update,
    gives_extras,
    motifs_in,
    walk,
)

_LAYERS: Final = often(
    pointwise=3, dense=3, mlp=2, damped=2, scaled=2, gated=1, normed=1, pooled=1, attention=1, batched=1, heads=1,
    halves=1, int8=1, fp8=1, narrow=1, consume=1, optimizer=1, sliced=1,
)  # fmt: skip
_REGIONS: Final = often(scan=8, offload=6, remat=2, move=3, seq=2, jit=1, branch=1, loop=1)


def plan_any(
    source: Source,
    *,
    max_depth: int,
    max_equations: int,
    gradient: bool | None,
    dtypes: Sequence[str],
    offload_only: bool,
) -> Plan:
    """Draw a chain of regions from the inside out, branching now and then."""
    x = Type(draw_dtype(source, dtypes), draw_shape(source))
    mesh, sharded = draw_mesh(source, one_in=10)
    fields = draw_gradient(source, gradient, THREE_IN_FOUR)
    differentiated = fields["gradient"] != "none"
    layers = max(1, min(4, max_equations // 12))
    slots: tuple[Slot, ...] = source.some(("aux", "y", "buffer")) if source.chance(4, "slots") else ()
    node: Node = draw_leaf(source, x, layers=_LAYERS)
    depth, offloads = 0, False
    for _ in range(source.pick((2, 3, 4, 5, 6))):
        kind = source.pick(_REGIONS)
        if kind == "offload" and not differentiated:
            kind = "move"  # a policy does nothing without a gradient
        match kind:
            case "scan" if depth < max_depth:
                node, depth = draw_loop(source, node), depth + 1
            case "loop" if depth < max_depth and source.allows("while"):
                node, depth = Loop(node, source.pick((1, 2, 3)), "while"), depth + 1
            case "offload":
                node, offloads = draw_remat(source, node, offload=True), True
            case "remat":
                node = draw_remat(source, node, offload=False)
            case "move":
                moves = _moves(node, differentiated=differentiated)
                if moves:
                    node, offloads = Move(node, source.pick(moves)), True
            case "jit":
                node = Jit(node)
            case "seq" | "branch" if layers > 1:
                layers -= 1
                other: Node = Update(source.pick(_updates(slots))) if slots else draw_leaf(source, x, layers=_LAYERS)
                node = Branch(node, other) if kind == "branch" else Seq((node, other))
            case _:
                pass
    if offload_only and not offloads:
        node = draw_remat(source, node, offload=True) if differentiated else Move(node, "carry")
    if depth == 0:
        node = draw_loop(source, node)
    return Plan(
        (node,), x, slots, mesh=mesh, sharded=sharded, donated=source.chance(6), total=source.chance(6), **fields
    )


def _moves(node: Node, *, differentiated: bool) -> tuple[Moved, ...]:
    """The transfers that change something: of weights if there are any, of stacked outputs if there are any."""
    weights: tuple[Moved, ...] = ("weights", "cast-after", "cast-before") if motifs_in(node) & set(WEIGHTED) else ()
    if differentiated:
        return weights
    moved = any(isinstance(inner, Move) and inner.what == "extras" for inner in walk(node))
    extras: tuple[Moved, ...] = (("extras-back",) if moved else ("extras",)) if gives_extras(node) else ()
    return (*weights, *extras, "carry")


def _updates(slots: tuple[Slot, ...]) -> tuple[Slot, ...]:
    """The updates the slots allow."""
    return (*slots, "read") if "buffer" in slots else slots


def programs(
    *,
    max_depth: int = 3,
    max_equations: int = 40,
    gradient: bool | None = None,
    dtypes: Sequence[str] = ("float32", "bfloat16"),
    offload_only: bool = True,
) -> st.SearchStrategy[Program]:
    """Programs of any form the IR has, small, nested, most of them offloading something.

    Every program passes `reducer.ir.check`, traces and lowers in JAX, and is finite on a CPU for inputs at the scale
    models start from (matrices of standard deviation 0.1).
    Hypothesis keeps the choices of one example in 8 KiB, which bounds a generated program to some hundred
    equations; real train steps come from capture, not from here.

    Args:
        max_depth: at most this many loops inside one another.
        max_equations: a program has about this many equations at most, nested ones included.
        gradient: always, never, or (None) three times in four.
        dtypes: of the values that flow through; inexact ones, the simplest first.
        offload_only: only programs that ask for some value to be in host memory.
    """

    @st.composite
    def anything(draw: Draw) -> Program:
        source = Source(draw, FEATURES)
        plan = plan_any(
            source,
            max_depth=max_depth,
            max_equations=max_equations,
            gradient=gradient,
            dtypes=dtypes,
            offload_only=offload_only,
        )
        return assemble(plan)

    return anything()
