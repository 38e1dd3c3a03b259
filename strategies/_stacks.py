"""`layer_stacks()`: model-shaped programs. Blocks of layers under one to three scans, rematerialized and offloaded."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from reducer.ir.equations import Mesh, Program
from reducer.ir.types import Type
from strategies._assemble import assemble
from strategies._draws import (
    FEATURES,
    MOSTLY,
    draw_dtype,
    draw_gradient,
    draw_layers,
    draw_loop,
    draw_mesh,
    draw_remat,
    draw_shape,
    maybe_jit,
    offload_places,
)
from strategies._source import Draw, Source
from strategies._trees import Branch, Constrain, Loop, Move, Node, Plan, Seq, Shard, Slot, Update


def plan_stack(source: Source, *, max_depth: int, gradient: bool | None, dtypes: Sequence[str]) -> Plan:
    """Draw the plan of one stack."""
    depth = min(source.pick((1, 2, 2, 2, 2, 3)), max_depth)
    x = Type(draw_dtype(source, dtypes), draw_shape(source))
    mesh, sharded = draw_mesh(source, one_in=5)
    slots: tuple[Slot, ...] = source.some(("aux", "y")) if source.chance(4, "slots") else ()
    node, x = _nest(source, _body(source, x, slots), x, depth, mesh, maps=mesh is None and "y" not in slots)
    if source.chance(12):
        node = Move(node, source.pick(("weights", "cast-after", "cast-before")))
    if mesh is not None and x.rank and source.chance(2):
        node = Constrain(node, ("d",))
    fields = draw_gradient(source, gradient, MOSTLY)
    total = source.chance(8, "extras")
    return Plan((node,), x, slots, mesh=mesh, sharded=sharded, total=total, **fields)


def _nest(source: Source, node: Node, x: Type, depth: int, mesh: Mesh | None, *, maps: bool) -> tuple[Node, Type]:
    """Loops around a body, from the inside out, checkpoints and at most one shard_map between them; the type of x."""
    offloaded = source.pick(tuple(offload_places(depth)))
    # The shape whose inner loop the compiler would delete, were it not for the barrier.
    single = depth > 1 and source.chance(7)
    divided = mesh is not None and _divides(x, mesh.size) and source.pick((False, True, True))
    sharded_at = source.pick((depth, 0, 1)) if divided else -1
    for level in range(depth, -1, -1):
        if mesh is not None and level == sharded_at:
            node = Shard(node, "d", dict(mesh.axes)["d"], reduced=source.chance(3))
        if level in offloaded:
            node = draw_remat(source, node, offload=True)
        elif source.chance(8):
            node = draw_remat(source, node, offload=False)
        if level == 0:
            break
        node = maybe_jit(source, node)
        node = Loop(node, 1, barrier=True) if single and level == depth else draw_loop(source, node, maps=maps)
        x = x.stacked(node.length) if node.kind == "map" else x
    return node, x


def _divides(x: Type, devices: int) -> bool:
    """True if the leading axis of x splits over that many devices and a matrix remains."""
    return x.rank > 1 and x.shape[0] % devices == 0


def _body(source: Source, x: Type, slots: Sequence[Slot]) -> Node:
    node = draw_layers(source, x)
    if source.chance(10, "branch"):
        node = Branch(node, draw_layers(source, x))
    elif source.chance(12, "while"):
        node = Seq((node, Loop(draw_layers(source, x), 2, "while")))
    if slots:
        node = Seq((node, *map(Update, slots)))
    return node


def layer_stacks(
    *,
    max_depth: int = 3,
    gradient: bool | None = None,
    dtypes: Sequence[str] = ("float32", "bfloat16"),
) -> st.SearchStrategy[Program]:
    """Model-shaped programs: layers under 1 to `max_depth` scans, checkpointed with offloading policies.

    Args:
        max_depth: at most this many loops inside one another, 1 to 3.
        gradient: always, never, or (None) nearly always; without one a policy has no effect.
        dtypes: of the values that flow through; inexact ones, the simplest first.
    """

    @st.composite
    def stacks(draw: Draw) -> Program:
        source = Source(draw, FEATURES)
        return assemble(plan_stack(source, max_depth=max_depth, gradient=gradient, dtypes=dtypes))

    return stacks()
