"""Where each operation of a module stands: what it sees, and how it counts."""

from __future__ import annotations

from dataclasses import dataclass

from reducer.stablehlo.distance import ENTERED
from reducer.stablehlo.loops import Counter, counter
from reducer.stablehlo.model import ISOLATED, TERMINATORS, Block, Module, Operation, Value


@dataclass(frozen=True, slots=True)
class Scope:
    """One operation in its place.

    Attributes:
        operation: not a terminator.
        seen: values defined before it that it may use, in order of definition.
        around: the operations that define them, where operations do.
        sees_arguments: a new argument of the function that is compiled would be seen here.
        counts: how it counts, if it is a loop.
        first: it is the first operation of the function that is compiled.
    """

    operation: Operation
    seen: tuple[Value, ...]
    around: dict[int, Operation]
    sees_arguments: bool
    counts: Counter | None
    first: bool


def scopes(module: Module) -> list[Scope]:
    """All operations, in order, inner ones before the one they are in."""
    found: list[Scope] = []

    def walk(block: Block, seen: tuple[Value, ...], around: dict[int, Operation], free: bool) -> None:
        around = dict(around)
        seen = (*seen, *block.params)
        for operation in block.operations:
            if operation.name in TERMINATORS:
                continue
            # Regions of reductions and their like cannot be translated if they use anything from around them.
            closed = operation.name in ISOLATED or operation.name not in ENTERED
            for region in operation.regions:
                walk(region, () if closed else seen, {} if closed else around, free and not closed)
            counts = counter(operation, around) if operation.name == "stablehlo.while" else None
            found.append(Scope(operation, seen, dict(around), free, counts, not found))
            seen = (*seen, *operation.results)
            around.update((value.number, operation) for value in operation.results)

    for function in module.functions:
        walk(function.body, (), {}, function is module.main)
    return found
