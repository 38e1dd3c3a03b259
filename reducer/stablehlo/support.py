"""What the parts of a module that are kept cannot do without: index arithmetic and arrays of one number."""

from __future__ import annotations

from collections.abc import Iterable

from reducer.stablehlo.distance import ENTERED, is_index
from reducer.stablehlo.model import Module, Operation, all_operations


def with_support(module: Module, kept: Iterable[Operation]) -> set[int]:
    """The ids of the kept operations and of those that only compute indices, or fill arrays, for them."""
    defined = {value.number: one for one in all_operations(module.main.body) for value in one.results}
    found = {id(operation): operation for operation in kept}
    open_ = list(found.values())

    def filled(operation: Operation) -> bool:
        if operation.name == "stablehlo.constant":
            return True
        return operation.name in ("stablehlo.broadcast_in_dim", "stablehlo.iota") and all(
            value.number in defined and filled(defined[value.number]) for value in operation.operands
        )

    while open_:
        operation = open_.pop()
        for value in operation.operands:
            maker = defined.get(value.number)
            if maker is None or id(maker) in found or maker.name in ENTERED:
                continue
            if filled(maker) or (is_index(value) and not maker.regions):
                found[id(maker)] = maker
                open_.append(maker)
    return set(found)
