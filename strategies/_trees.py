"""Plans: a program before its types are known, as a tree of regions over layers.

Every node maps a *state* (named values that flow through: the main value `x`, maybe a second stream, an auxiliary
sum, a counter, a buffer on the host) to a state of the same types, so any node fits in any other. What a node needs
besides (weights) and what it gives besides (extra results) is collected from the leaves outwards: a loop stacks both.

Plans hold every choice; `_assemble` turns a plan into a program without drawing anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from reducer.ir.equations import Mesh, Spec
from reducer.ir.policies import Policy
from reducer.ir.types import Type

#: What moves between memory spaces around a node. `carry`: x lives on the host outside, on the device inside.
#: `weights`: they live on the host outside (`cast-after`/`cast-before`: stored as bf16 there). `extras`: stacked
#: outputs go to the host after the node; `extras-back`: they return to the device.
Moved = Literal["carry", "weights", "cast-after", "cast-before", "extras", "extras-back"]


#: Optional parts of the state (`read` is the buffer, read).
Slot = Literal["aux", "y", "buffer", "read"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """One layer. `names` puts `checkpoint_name` on points of the motif, `emit` makes points extra results."""

    motif: str
    act: str = "tanh"
    names: tuple[tuple[str, str], ...] = ()
    emit: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """Changes one optional slot of the state: `aux`, `y`, or the host `buffer` (`read` takes a slice back from it)."""

    slot: Slot
    index_on_host: bool = False


@dataclass(frozen=True, slots=True)
class Seq:
    """One after another."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A scan carrying the state (`scan`), a scan over the leading axis of x (`map`), or a counted while loop.

    `shared`: the weights are the same in every step instead of stacked.
    """

    node: Node
    length: int
    kind: Literal["scan", "map", "while"] = "scan"
    reverse: bool = False
    unroll: int = 1
    barrier: bool = False
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Remat:
    """`jax.checkpoint`."""

    node: Node
    policy: Policy | None
    prevent_cse: bool = True


@dataclass(frozen=True, slots=True)
class Jit:
    """A nested `jax.jit`."""

    node: Node


@dataclass(frozen=True, slots=True)
class Branch:
    """`lax.switch` on an integer input between two nodes."""

    first: Node
    second: Node


@dataclass(frozen=True, slots=True)
class Shard:
    """`jax.shard_map` over the leading axis of x; `reduced`: the parts are averaged first, by a `psum`."""

    node: Node
    axis: str
    devices: int
    reduced: bool = False


@dataclass(frozen=True, slots=True)
class Constrain:
    """A sharding constraint on x, before the node."""

    node: Node
    spec: Spec


@dataclass(frozen=True, slots=True)
class Move:
    """Explicit transfers around a node."""

    node: Node
    what: Moved


Node = Leaf | Update | Seq | Loop | Remat | Jit | Branch | Shard | Constrain | Move


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole program.

    `stages` run one after another at the top; a stage takes extra results of earlier ones as its weights where the
    types agree (a backward pass reading what a forward pass stacked). `slots` are the optional parts of the state.
    """

    stages: tuple[Node, ...]
    x: Type
    slots: tuple[Slot, ...] = ()
    gradient: Literal["none", "weights", "x", "all", "first"] = "none"
    with_value: bool = True
    mesh: Mesh | None = None
    sharded: tuple[str, ...] = ()
    donated: bool = False
    total: bool = False
    meta: tuple[tuple[str, str], ...] = field(default=())


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly inside."""
    match node:
        case Leaf() | Update():
            return ()
        case Seq(nodes=nodes):
            return nodes
        case Branch(first=first, second=second):
            return (first, second)
        case _:
            return (node.node,)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything inside it, outer before inner."""
    yield node
    for child in children(node):
        yield from walk(child)


def leaves(node: Node) -> Iterator[Leaf]:
    """The layers, in order."""
    return (inner for inner in walk(node) if isinstance(inner, Leaf))


def names_in(node: Node) -> tuple[str, ...]:
    """Every name attached inside, first use first."""
    return tuple(dict.fromkeys(name for leaf in leaves(node) for _, name in leaf.names))


def motifs_in(node: Node) -> frozenset[str]:
    """The motifs of the layers inside."""
    return frozenset(leaf.motif for leaf in leaves(node))


def gives_extras(node: Node) -> bool:
    """True if the node has results besides the state; a branch and a while loop keep theirs to themselves."""
    match node:
        case Leaf(motif=motif, emit=emit):
            return bool(emit) or motif == "optimizer"
        case Branch() | Loop(kind="while"):
            return False
        case _:
            return any(map(gives_extras, children(node)))


def keeps_x_on_host(node: Node) -> bool:
    """True if x lives on the host where this node begins and ends."""
    match node:
        case Leaf() | Update() | Shard():
            return False
        case Move(what="carry"):
            return True
        case _:
            return keeps_x_on_host(children(node)[0])


__all__ = [
    "Branch",
    "Constrain",
    "Jit",
    "Leaf",
    "Loop",
    "Moved",
    "Node",
    "Plan",
    "Remat",
    "Seq",
    "Shard",
    "Slot",
    "Update",
    "children",
    "gives_extras",
    "keeps_x_on_host",
    "leaves",
    "motifs_in",
    "names_in",
    "walk",
]
