"""Sizes lowered wherever they flow, and operations on shapes merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reducer.passes.base import Candidate, Edits, Numbers
from reducer.stablehlo.dims import Dims
from reducer.stablehlo.edit import Rewriter
from reducer.stablehlo.model import Module, Operation, all_operations

_SHAPING = frozenset({"stablehlo.reshape", "stablehlo.broadcast_in_dim", "stablehlo.transpose", "stablehlo.slice"})


def shrink_all_sizes(module: Module) -> Edits[Module]:
    """Sizes made 1."""
    dims = Dims(module)
    leaves = dims.free()
    return Edits(len(leaves), lambda chosen: dims.resized({leaves[at]: 1 for at in chosen}))


def shrink_sizes(module: Module) -> Numbers[Module]:
    """Sizes lowered, one after the other."""
    dims = Dims(module)
    leaves = dims.free()
    sizes = tuple(dims.atoms.sizes[leaf] for leaf in leaves)

    def apply(values: Sequence[int]) -> Module:
        return dims.resized(
            {leaf: value for leaf, value, size in zip(leaves, values, sizes, strict=True) if value != size}
        )

    return Numbers(sizes, (1,) * len(sizes), apply)


def merge_shaping(module: Module) -> Iterator[Candidate[Module]]:
    """Two operations on the shape of a value made one reshape."""
    for function in module.functions:
        defined = {value.number: one for one in all_operations(function.body) for value in one.results}
        for operation in all_operations(function.body):
            if operation.name in _SHAPING:
                inner = defined.get(operation.operands[0].number)
                if inner is not None and inner.name in _SHAPING:
                    yield lambda operation=operation, inner=inner: _merged(module, operation, inner)  # type: ignore[misc]


def _merged(module: Module, operation: Operation, inner: Operation) -> Module:
    from reducer.errors import ProgramError
    from reducer.stablehlo.types import tensor

    source = inner.operands[0]
    old, new = tensor(source.type), tensor(operation.results[0].type)
    if old is None or new is None or old.elements != new.elements or old.element != new.element:
        raise ProgramError("not a reshape")
    change = Rewriter(module)
    if old == new:
        change.replace(operation.results[0], source)
        change.swap(operation, ())
    else:
        change.swap(operation, [Operation("stablehlo.reshape", (source,), operation.results)])
    return change.finish()
