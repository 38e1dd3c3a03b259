"""Operations cut off, or passed by."""

from __future__ import annotations

from collections.abc import Sequence

from reducer.passes.base import Edits
from reducer.passes.modules.tools import Cutter, editable, keep_results
from reducer.stablehlo.distance import Distances
from reducer.stablehlo.edit import Rewriter
from reducer.stablehlo.hosted import hosted, placement, to_host
from reducer.stablehlo.model import Module, Operation, all_operations


def _farthest_first(module: Module) -> list[Operation]:
    """What could go, the farthest from host memory first, regions before what is in them."""
    distances = Distances(module)
    operations = editable(module)
    return sorted(operations, key=lambda operation: -distances.of(operation))


def cut_operations(module: Module) -> Edits[Module]:
    """Operations cut off with all that only they need; arguments in place of their results."""
    return _cuts(module, zeros=False)


def cut_to_zeros(module: Module) -> Edits[Module]:
    """Operations cut off with all that only they need; zeros in place of their results."""
    return _cuts(module, zeros=True)


def _cuts(module: Module, *, zeros: bool) -> Edits[Module]:
    operations = _farthest_first(module)
    cutter = Cutter(module)

    def apply(chosen: Sequence[int]) -> Module:
        change = Rewriter(module)
        for at in chosen:
            cutter.cut(change, operations[at], zeros=zeros)
        return change.finish()

    return Edits(len(operations), apply)


def bypass_operations(module: Module) -> Edits[Module]:
    """Operations passed by: an operand of the same type in place of their only result."""
    operations = [
        operation
        for operation in _farthest_first(module)
        if len(operation.results) == 1
        and operation.name != "stablehlo.while"
        and any(value.type == operation.results[0].type for value in operation.operands)
    ]

    def apply(chosen: Sequence[int]) -> Module:
        change = Rewriter(module)
        for at in chosen:
            result = operations[at].results[0]
            change.replace(result, next(v for v in operations[at].operands if v.type == result.type))
            change.swap(operations[at], ())
        return change.finish()

    return Edits(len(operations), apply)


def drop_placements(module: Module) -> Edits[Module]:
    """Transfers to host memory passed by, and the ones that then bring back what is not there."""
    found = [operation for operation in editable(module) if placement(operation) is not None]
    wanted = [operation for operation in found if to_host(operation)] or found

    def apply(chosen: Sequence[int]) -> Module:
        moved = _passed_by(module, [wanted[at] for at in chosen])
        there = hosted(moved)
        idle = [
            operation
            for operation in all_operations(moved.main.body)
            if placement(operation) == "device" and operation.operands[0].number not in there
        ]
        return _passed_by(moved, idle)

    return Edits(len(wanted), apply)


def _passed_by(module: Module, operations: Sequence[Operation]) -> Module:
    change = Rewriter(module)
    for operation in operations:
        change.replace(operation.results[0], operation.operands[0])
        change.swap(operation, ())
    return change.finish()


def drop_results(module: Module) -> Edits[Module]:
    """Results dropped, the last ones first."""
    count = len(module.main.result_attributes)

    def apply(chosen: Sequence[int]) -> Module:
        gone = {count - 1 - at for at in chosen}
        return keep_results(module, [at for at in range(count) if at not in gone])

    return Edits(count if count > 1 else 0, apply)
