"""The skeleton of a program: its structure without sizes, dtypes, names and constants.

A hunt counts skeletons to say how many different kinds of programs it has seen. Kept are: equations and how values
flow between them, regions and the roles of what enters and leaves them, policies without their names (but which values
carry a name that they mention), memory spaces, flags, XLA metadata, whether a loop runs once or more often, whether
inputs are differentiated, donated or sharded. The order of independent equations, inputs and results does not matter.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from reducer.ir.colours import Graph, bare_policy, equation_label
from reducer.ir.equations import Checkpoint, Entry, Equation, Fill, Lit, Op, Program, Scan, ShardingConstraint, ShardMap
from reducer.ir.types import Type

#: Neighbourhoods this wide are told apart. Fixed, so that hashes of different programs can be compared.
_ROUNDS: Final = 12


class _Skeleton(Graph):
    def value_label(self, type_: Type) -> object:
        return type_.memory

    def scalar_label(self, lit: Lit) -> object:  # noqa: ARG002 - all scalars look the same
        return "scalar"

    def port_label(self, own: object) -> object:
        if isinstance(own, Entry):
            return own.spec is not None, own.donated
        return own is not None

    def equation_label(self, eqn: Equation) -> object:
        start = (type(eqn).__name__, eqn.metadata)
        match eqn:
            case Op(primitive=primitive):
                return (*start, primitive)  # attributes are mostly sizes and axes
            case Fill() | ShardingConstraint():
                return start
            case Scan(length=length, reverse=reverse, unroll=unroll):
                return (*start, min(length, 2), reverse, unroll > 1)
            case Checkpoint(policy=policy, prevent_cse=prevent_cse, differentiated=differentiated):
                return (*start, bare_policy(policy), prevent_cse, differentiated)
            case ShardMap(check_vma=check_vma):
                return (*start, check_vma)
            case _:
                return equation_label(eqn)


def skeleton(program: Program) -> str:
    """16 hex digits that two programs share if, to all appearances, their structure is the same.

    Appearances: a colour refinement of fixed depth, so programs that differ only in how far apart like things stand
    may share them too. Give it normal forms; dead code would count.
    """
    graph = _Skeleton(program)
    colours = [_digest(label) for label in graph.labels]
    for _ in range(_ROUNDS):
        near = [sorted(f"{label} {colours[n]}" for label, n in out) for out in graph.edges]
        colours = [_digest("\n".join([own, *around])) for own, around in zip(colours, near, strict=True)]
    grad = "-" if program.gradient is None else str(program.gradient.with_value)
    mesh = len(program.mesh.axes) if program.mesh else 0
    return _digest("\n".join([grad, str(mesh), *sorted(colours)]))


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


__all__ = ["skeleton"]
