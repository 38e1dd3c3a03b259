"""What the planners have in common: types, leaves, loops, rematerialization, gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from reducer.ir.equations import Mesh
from reducer.ir.types import Type
from strategies._motifs import ACTS, MOTIFS
from strategies._policies import keeping, offloading
from strategies._source import Source, often
from strategies._trees import Jit, Leaf, Loop, Node, Remat, Seq, motifs_in, names_in
from strategies._types import ALIGNED, ODD, Shape

#: Optional features, banned half of the time each (swarm testing): a program with few of them at once shows more.
FEATURES: Final = (
    "odd-shape", "half", "reverse", "unroll", "jit", "branch", "while", "slots", "second-layer", "act", "extras",
    "map", "prevent-cse", "some-layers", "barriers", "mesh",
)  # fmt: skip

_LENGTHS: Final = (1, 2, 2, 3, 3, 4, 5)
_NAMES: Final = ("h", "g", "k")
_LAYERS: Final = often(
    pointwise=3, dense=4, mlp=3, damped=2, scaled=2, gated=1, normed=1, pooled=1, attention=1, heads=1, halves=1,
    int8=1, fp8=1, fp8_wide=1, narrow=1, batched=1, row_pooled=1,
)  # fmt: skip
_POINTS: Final = (("first",),) * 5 + (("second",),) * 2 + (("last",), ("first", "second"), ("first", "last"), ())


def draw_shape(source: Source, *, min_rank: int = 0) -> Shape:
    """A tile more often than not; the odd shapes whose slices the compiler refuses stand twice."""
    odd = (*ODD, (), (1,), (128,), (256,)) if source.allows("odd-shape") else ()
    table = (ALIGNED[0],) * 4 + ALIGNED[1:] + odd
    return source.pick([shape for shape in table if len(shape) >= min_rank])


def draw_dtype(source: Source, dtypes: Sequence[str]) -> str:
    """float32 mostly, if it is asked for at all."""
    return source.pick((dtypes[0], dtypes[0], *dtypes) if source.allows("half") else dtypes[:1])


def draw_leaf(source: Source, x: Type, *, layers: Sequence[str] = _LAYERS, names: Sequence[str] = _NAMES) -> Leaf:
    """A layer that fits x, with names on points that are residuals more often than not."""
    motif = source.pick([name for name in layers if MOTIFS[name].fits(x)])
    act = source.pick(ACTS if source.allows("act") else ("sin",))
    points = MOTIFS[motif].points
    kept = MOTIFS[motif].residuals
    where = {"first": kept[0], "second": kept[1 % len(kept)], "last": points[-1]}
    chosen = dict.fromkeys(where[w] for w in source.pick(_POINTS))
    if act == "vjp" and source.chance(2):
        chosen = dict.fromkeys(["res", *list(chosen)[1:]])
    emit = (source.pick(points),) if source.chance(4, "extras") else ()
    named = tuple((point, names[i % len(names)]) for i, point in enumerate(chosen))
    return Leaf(motif, act, named, emit)


def draw_layers(source: Source, x: Type, *, layers: Sequence[str] = _LAYERS) -> Node:
    """One or two layers; the second has a name of its own, or the same one."""
    first = draw_leaf(source, x, layers=layers)
    if not source.chance(4, "second-layer"):
        return first
    names = source.pick((_NAMES[1:], _NAMES))
    second: Node = draw_leaf(source, x, layers=layers, names=names)
    if source.chance(3, "some-layers"):
        # Only one of the layers is rematerialized by itself.
        return Seq((draw_remat(source, first, offload=True), second))
    return Seq((first, second))


def draw_remat(source: Source, node: Node, *, offload: bool) -> Remat:
    """A checkpoint whose policy speaks of the names inside, or once in a while of one that is nowhere."""
    names = names_in(node)
    dots = any(MOTIFS[motif].dots for motif in motifs_in(node))
    if not dots and not names:
        names = ("absent",)
    policy = offloading(source, names, dots=dots or source.chance(16)) if offload else keeping(source, names)
    return Remat(node, policy, prevent_cse=not source.chance(2, "prevent-cse"))


def draw_loop(
    source: Source,
    node: Node,
    *,
    maps: bool = False,
) -> Loop:
    """A loop; unrolled, reversed, with shared weights or a barrier now and then; `maps`: maybe over rows of x."""
    length = source.pick(_LENGTHS)
    kind: Literal["scan", "map"] = "map" if maps and source.chance(10, "map") else "scan"
    unroll = source.pick((2, length, 3)) if source.chance(8, "unroll") else 1
    return Loop(
        node,
        length,
        kind,
        reverse=source.chance(5, "reverse"),
        unroll=max(1, min(unroll, length)),
        barrier=source.chance(6, "barriers"),
        shared=source.chance(5, "extras"),
    )


def maybe_jit(source: Source, node: Node) -> Node:
    """The node, behind a jit boundary now and then."""
    return Jit(node) if source.chance(8, "jit") else node


#: What to differentiate by: nearly always something, or half of the time.
MOSTLY: Final = ("all", "weights", "all", "first", "x") * 8 + ("none",)
THREE_IN_FOUR: Final = often(all=6, weights=3, none=4, first=2, x=1)
HALF: Final = often(none=5, all=2, weights=1, first=1, x=1)


def draw_gradient(source: Source, gradient: bool | None, usual: Sequence[str]) -> dict[str, Any]:
    """Fields of a plan: what to differentiate by, from the `usual` table unless there is a wish."""
    table = ("none",) if gradient is False else [kind for kind in usual if kind != "none" or gradient is None]
    return {"gradient": source.pick(table), "with_value": not source.chance(4)}


def draw_mesh(source: Source, *, one_in: int) -> tuple[Mesh | None, tuple[str, ...]]:
    """A mesh of two or four devices, once in `one_in`, and the axes inputs are sharded over."""
    if not source.chance(one_in, "mesh"):
        return None, ()
    mesh, sharded = source.pick(
        (
            (Mesh((("d", 2),)), ("d",)),
            (Mesh((("d", 4),)), ("d",)),
            (Mesh((("d", 2), ("m", 2))), ("d", "m")),
            (Mesh((("d", 2),)), ()),
        )
    )
    return mesh, sharded


def offload_places(depth: int) -> Iterable[tuple[int, ...]]:
    """Where offloading checkpoints stand in a nest: 0 is around all of it, k inside the k-th loop."""
    inner = depth
    table: list[tuple[int, ...]] = [(depth,)] * 4
    if depth > 1:
        table += [(depth - 1,)] * 3 + [(0,), (0,), (depth - 1, inner), (0, inner), (1, inner)]
    else:
        table += [(0,), (0, 1)]
    if depth > 2:
        table += [(1,), (0, 1, inner)]
    return table


__all__ = [
    "FEATURES",
    "HALF",
    "MOSTLY",
    "THREE_IN_FOUR",
    "draw_dtype",
    "draw_gradient",
    "draw_layers",
    "draw_leaf",
    "draw_loop",
    "draw_mesh",
    "draw_remat",
    "draw_shape",
    "maybe_jit",
    "offload_places",
]
