"""What nobody would run: a loop that never ends or never turns, a division by zero.

A compiler team dismisses a reproducer that is nonsense; so what is made of a sensible module stays sensible.
"""

from __future__ import annotations

from typing import Final

from reducer.stablehlo.loops import counter, scalar
from reducer.stablehlo.model import Block, Module, Operation, attribute, operations_of
from reducer.stablehlo.types import is_zero

_DIVIDING: Final = frozenset({"stablehlo.divide", "stablehlo.remainder"})
_SPREADING: Final = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.convert", "stablehlo.reshape"})


def nonsense(module: Module) -> str | None:
    """What is senseless about a module, and where; None if nothing is."""
    for function in module.functions:
        found = _in_block(function.body, function.name, {})
        if found is not None:
            return found
    return None


def divisors(module: Module) -> frozenset[int]:
    """The numbers of the values that something is divided by, as they are or spread out."""
    found: set[int] = set()
    for operation in reversed(list(operations_of(module))):
        if operation.name in _DIVIDING:
            found.add(operation.operands[1].number)
        elif operation.name in _SPREADING and operation.results[0].number in found:
            found.add(operation.operands[0].number)
    return frozenset(found)


def _in_block(block: Block, where: str, around: dict[int, Operation]) -> str | None:
    around = dict(around)
    for i, operation in enumerate(block.operations):
        place = f"{where}.{i}"
        if operation.name == "stablehlo.while" and (wrong := _loop(operation, around)) is not None:
            return f"{place}: {wrong}"
        if operation.name in _DIVIDING and _zero(around.get(operation.operands[1].number), around):
            return f"{place}: a division by zero"
        for region in operation.regions:
            found = _in_block(region, place, around)
            if found is not None:
                return found
        around.update((value.number, operation) for value in operation.results)
    return None


def _loop(loop: Operation, around: dict[int, Operation]) -> str | None:
    counts = counter(loop, around)
    if counts is None:
        return "a loop that may never end"
    start = scalar(around.get(loop.operands[counts.at].number))
    if start is not None and counts.bound is not None and counts.bound <= start:
        return "a loop that never turns"
    return None


def _zero(operation: Operation | None, around: dict[int, Operation]) -> bool:
    while operation is not None and operation.name in _SPREADING:
        operation = around.get(operation.operands[0].number)
    if operation is None or operation.name != "stablehlo.constant":
        return False
    return is_zero(attribute(operation.attributes, "value") or "")
