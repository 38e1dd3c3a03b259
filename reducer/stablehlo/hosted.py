"""Where values lie: which ones a module puts into host memory, and follows until they are brought back."""

from __future__ import annotations

from collections.abc import Iterator

from reducer.stablehlo.model import Attributes, Block, Module, Operation, attribute

_HOST = ("pinned_host", "unpinned_host")
_PLACEMENT = "annotate_device_placement"
#: What a value in host memory goes through on its way: nothing is computed there.
_CARRYING = frozenset(
    {
        "stablehlo.dynamic_update_slice",
        "stablehlo.dynamic_slice",
        "stablehlo.reshape",
        "stablehlo.broadcast_in_dim",
        "stablehlo.transpose",
        "stablehlo.slice",
        "stablehlo.concatenate",
        "stablehlo.optimization_barrier",
        "stablehlo.custom_call",
        "sdy.sharding_constraint",
    }
)


def placement(operation: Operation) -> str | None:
    """The memory that an operation moves its operand to; None if it moves nothing."""
    if operation.name != "stablehlo.custom_call":
        return None
    if attribute(operation.attributes, "call_target_name") != f'"{_PLACEMENT}"':
        return None
    text = attribute(operation.attributes, "mhlo.frontend_attributes") or ""
    return next((memory for memory in (*_HOST, "device") if f'"{memory}"' in text), "")


def to_host(operation: Operation) -> bool:
    """True if the operation moves a value to host memory."""
    return placement(operation) in _HOST


def on_host(attributes: Attributes) -> bool:
    """True if a parameter or result with these attributes lies in host memory."""
    return (attribute(attributes, "mhlo.memory_kind") or "").strip('"') in _HOST


def hosted(module: Module) -> frozenset[int]:
    """The numbers of the values that lie in host memory, as far as the module says."""
    found: set[int] = set()
    for function in module.functions:
        params = zip(function.body.params, function.param_attributes, strict=True)
        found.update(value.number for value, each in params if on_host(each))
    while True:
        before = len(found)
        for function in module.functions:
            _flow(function.body, found)
        if len(found) == before:
            return frozenset(found)


def _flow(block: Block, found: set[int]) -> None:
    for operation in block.operations:
        if operation.name == "stablehlo.while":
            body = operation.regions[1]
            for same in zip(
                operation.operands,
                operation.results,
                operation.regions[0].params,
                body.params,
                body.operations[-1].operands,
                strict=True,
            ):
                if any(value.number in found for value in same):
                    found.update(value.number for value in same[1:])
        for region in operation.regions:
            _flow(region, found)
        if _keeps_memory(operation, found):
            found.update(value.number for value in operation.results)


def _keeps_memory(operation: Operation, found: set[int]) -> bool:
    memory = placement(operation)
    if memory is not None:
        return memory in _HOST
    # The other operands of a slice are where it begins.
    count = 2 if operation.name.startswith("stablehlo.dynamic_") else None
    return operation.name in _CARRYING and any(value.number in found for value in operation.operands[:count])


def placements(block: Block) -> Iterator[Operation]:
    """Every operation in a block, nested ones included, that moves a value to another memory."""
    for operation in block.operations:
        if placement(operation) is not None:
            yield operation
        for region in operation.regions:
            yield from placements(region)
