"""`placements()`: explicit transfers to and from host memory inside nested loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hypothesis import strategies as st

from reducer.ir.equations import Program
from reducer.ir.types import Type
from strategies._assemble import assemble
from strategies._draws import (
    FEATURES,
    HALF,
    draw_dtype,
    draw_gradient,
    draw_leaf,
    draw_loop,
    draw_mesh,
    draw_remat,
    draw_shape,
    maybe_jit,
)
from strategies._motifs import WEIGHTED
from strategies._source import Draw, Source, often
from strategies._trees import Branch, Leaf, Loop, Move, Moved, Node, Plan, Seq, Slot, Update

#: What lives on the host. `both`: stacked outputs, and x or the weights; `pair`: what a second nest reads back;
#: `twice`: one of two stacked outputs of one shape.
_WHAT: Final = often(extras=5, carry=3, weights=3, both=2, buffer=3, pair=4, optimizer=2, table=2, twice=1)
_STACKING: Final = ("extras", "both", "pair", "twice")
#: Layers with a point whose type is that of x.
_LAYERS: Final = often(pointwise=3, dense=3, damped=2, scaled=2, mlp=1, normed=1, pooled=1, heads=1, int8=1, narrow=1)


def plan_placement(source: Source, *, max_depth: int, gradient: bool | None, dtypes: Sequence[str]) -> Plan:
    """Draw the plan: what is moved, at which level of the nest, and what surrounds it."""
    what = source.pick(_WHAT)
    depth = min(source.pick((1, 2, 2, 2, 3)), max_depth)
    x = Type(draw_dtype(source, dtypes), draw_shape(source))
    mesh, sharded = draw_mesh(source, one_in=10)
    # Nothing differentiable passes through a carry on the host, so a gradient is rarer there.
    unlikely = gradient is None and what == "carry" and source.chance(2)
    fields = draw_gradient(source, False if unlikely else gradient, HALF)
    node, loops = _nest(source, _body(source, x, what, differentiated=fields["gradient"] != "none"), what, depth)
    stages: tuple[Node, ...] = (node,)
    if what == "pair" or (what in _STACKING and fields["gradient"] != "none"):
        # A gradient depends on results that stay on the device only: something has to read the others.
        stages = (node, _backward(source, loops))
    slots: tuple[Slot, ...] = ("buffer",) if what == "buffer" else ("aux",) if source.chance(8, "slots") else ()
    donated, total = source.chance(3, "extras"), source.chance(6)
    return Plan(stages, x, slots, mesh=mesh, sharded=sharded, donated=donated, total=total, **fields)


def _nest(source: Source, node: Node, what: str, depth: int) -> tuple[Node, list[Loop]]:
    """Loops around a body, the innermost first, with the transfer around or inside one of them."""
    at = source.pick((*range(depth, -1, -1), depth, depth))
    single = depth > 1 and source.chance(5)
    loops: list[Loop] = []
    for level in range(depth, 0, -1):
        if level == at:
            node = _moved(source, node, what)
        if source.chance(8):
            node = draw_remat(source, node, offload=source.chance(2))
        node = maybe_jit(source, node)
        node = Loop(node, 1, barrier=True) if single and level == depth else draw_loop(source, node)
        loops.append(node)
    return (_moved(source, node, what) if at == 0 else node), loops


def _body(source: Source, x: Type, what: str, *, differentiated: bool) -> Node:
    act = source.pick(("tanh", "sin") if source.allows("act") else ("sin",))
    match what:
        case "optimizer":
            # Half of the time with an activation offload beside it, by a policy or by hand.
            beside = draw_leaf(source, x, layers=_LAYERS)
            return (
                Leaf("optimizer", act)
                if source.chance(2)
                else Seq((_offloaded(source, beside, differentiated), Leaf("optimizer", act)))
            )
        case "table":
            return Leaf("sliced", act)
        case "weights":
            return draw_leaf(source, x, layers=WEIGHTED)
        case "buffer":
            reads = (Update("read", source.chance(6)),) if differentiated or source.chance(3) else ()
            return Seq((draw_leaf(source, x), Update("buffer", source.chance(4)), *reads))
    leaf = draw_leaf(source, x, layers=_LAYERS)
    if what in _STACKING:
        leaf = replace(leaf, emit=("in",))
    elif source.chance(12, "branch"):
        return Branch(leaf, draw_leaf(source, x))
    return leaf


def _offloaded(source: Source, leaf: Leaf, differentiated: bool) -> Node:
    if differentiated:
        return draw_remat(source, leaf, offload=True)
    return Move(replace(leaf, emit=("in",)), "extras")


def _moved(source: Source, node: Node, what: str) -> Node:
    match what:
        case "extras" | "pair":
            return Move(node, "extras")
        case "twice":
            return Seq((Move(node, "extras"), Leaf("pointwise", "sin", (), ("in",))))
        case "carry":
            return Move(node, "carry")
        case "weights":
            how: Moved = source.pick(("weights", "weights", "cast-after", "cast-before"))
            return Move(node, how)
        case "both":
            return Move(Move(node, "extras"), source.pick(("carry", "weights")))
        case _:
            return node


def _backward(source: Source, loops: Sequence[Loop]) -> Node:
    """The mirror of a nest: reversed loops of the same lengths, reading what the first nest stacked."""
    node: Node = Leaf("consume", source.pick(("tanh", "sin") if source.allows("act") else ("sin",)))
    for loop in loops:
        node = Loop(node, loop.length, reverse=not source.chance(4, "reverse"), barrier=loop.barrier)
    return node


def placements(
    *,
    max_depth: int = 3,
    gradient: bool | None = None,
    dtypes: Sequence[str] = ("float32", "bfloat16"),
) -> st.SearchStrategy[Program]:
    """Programs with explicit transfers: stacked outputs on the host, carries and buffers that live there, weights
    streamed in, forward and backward pairs, optimizer state; with and without a gradient.

    Args:
        max_depth: at most this many loops inside one another, 1 to 3.
        gradient: always, never, or (None) half of the time.
        dtypes: of the values that flow through; inexact ones, the simplest first.
    """

    @st.composite
    def placed(draw: Draw) -> Program:
        source = Source(draw, FEATURES)
        return assemble(plan_placement(source, max_depth=max_depth, gradient=gradient, dtypes=dtypes))

    return placed()
