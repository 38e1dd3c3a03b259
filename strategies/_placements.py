"""`placements()`: explicit transfers to and from host memory inside nested loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from hypothesis import strategies as st

from reducer.ir.equations import Program
from reducer.ir.types import Type
from strategies._assemble import assemble
from strategies._draws import (
    FEATURES,
    draw_dtype,
    draw_gradient,
    draw_leaf,
    draw_loop,
    draw_mesh,
    draw_remat,
    draw_shape,
    maybe_jit,
)
from strategies._source import Draw, Source, often
from strategies._trees import Branch, Leaf, Loop, Move, Node, Plan, Seq, Update

_WHAT: Final = often(extras=5, carry=3, weights=3, both=2, buffer=2, pair=3, optimizer=2, table=1, twice=1)


def plan_placement(
    source: Source, *, max_depth: int, gradient: bool | None, dtypes: Sequence[str], single: int = 5
) -> Plan:
    """Draw the plan: what is moved, at which level of the nest, and what surrounds it."""
    what = source.pick(_WHAT)
    depth = min(source.pick((1, 2, 2, 2, 3)), max_depth)
    x = Type(draw_dtype(source, dtypes), draw_shape(source))
    mesh, sharded = draw_mesh(source, x, one_in=10)
    node = _body(source, x, what)
    # Where the transfer stands: 0 around the nest, k inside the k-th loop.
    at = source.pick(tuple(range(depth, -1, -1)) + (depth,) * 2)
    trip_one = depth > 1 and source.chance(single)
    lengths = []
    for level in range(depth, -1, -1):
        if level == at:
            node = _moved(source, node, what)
        if level == 0:
            break
        if source.chance(8):
            node = draw_remat(source, node, offload=source.chance(2))
        node = maybe_jit(source, node)
        node = Loop(node, 1, barrier=True) if trip_one and level == depth else draw_loop(source, node)
        lengths.append(node)
    stages: tuple[Node, ...] = (node,)
    if what == "pair":
        stages = (node, _backward(source, lengths))
    slots = ("buffer",) if what == "buffer" else ("aux",) if source.chance(8, "slots") else ()
    fields: dict[str, Any] = draw_gradient(source, gradient, one_in=2)
    return Plan(
        stages, x, slots, mesh=mesh, sharded=sharded, donated=source.chance(3, "extras"), total=source.chance(6), **fields
    )


def _body(source: Source, x: Type, what: str) -> Node:
    if what in ("optimizer", "table"):
        motif = {"optimizer": "optimizer", "table": "sliced"}[what]
        return Leaf(motif, "sin" if not source.allows("act") else source.pick(("tanh", "sin")))
    leaf = draw_leaf(source, x)
    if what in ("extras", "both", "pair", "twice") and not leaf.emit:
        leaf = Leaf(leaf.motif, leaf.act, leaf.names, ("in" if leaf.motif not in ("halves",) else "act",))
    if what == "twice":
        # Two stacked outputs of one shape; `_moved` sends only one of them to the host.
        return leaf
    if what == "buffer":
        reads = (Update("read", source.chance(6)),) if source.chance(3) else ()
        return Seq((leaf, Update("buffer", source.chance(4)), *reads))
    if source.chance(12, "branch"):
        return Branch(leaf, draw_leaf(source, x))
    return leaf


def _moved(source: Source, node: Node, what: str) -> Node:
    match what:
        case "extras" | "pair":
            return Move(node, "extras")
        case "twice":
            return Seq((Move(node, "extras"), Leaf("pointwise", "sin", (), ("in",))))
        case "carry":
            return Move(node, "carry")
        case "weights":
            how: Literal["weights", "cast-after", "cast-before"] = source.pick(
                ("weights", "weights", "cast-after", "cast-before")
            )
            return Move(node, how)
        case "both":
            return Move(Move(node, "extras"), source.pick(("carry", "weights")))
        case _:
            return node


def _backward(source: Source, loops: Sequence[Node]) -> Node:
    """The mirror of a nest: reversed loops of the same lengths, reading what the first nest stacked."""
    node: Node = Leaf("consume", source.pick(("tanh", "sin")) if source.allows("act") else "sin")
    for loop in loops:
        assert isinstance(loop, Loop)
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
