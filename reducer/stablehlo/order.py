"""The one order of modules: what "smaller" means.

As the order of programs: a tuple of natural numbers, the most visible first, and then the text. No endless descent, and
two modules are equal in it only if they are equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from reducer.stablehlo.loops import scalar
from reducer.stablehlo.model import TERMINATORS, Attributes, Block, Module, Operation, Value, operations_of
from reducer.stablehlo.text import to_text
from reducer.stablehlo.types import is_filled, tensor

_NOT_COUNTED: Final = TERMINATORS | {"stablehlo.constant", "sdy.mesh"}
_ELEMENTS: Final = {"f32": 0, "i32": 1, "i1": 1, "bf16": 2, "f16": 3, "ui32": 3}
_OTHER: Final = 4

OrderKey = tuple[int | str, ...]


def size(module: Module) -> int:
    """Operations, nested ones included; without constants, terminators, functions and meshes."""
    count = sum(operation.name not in _NOT_COUNTED for operation in operations_of(module))
    return count + sum(operation.name not in _NOT_COUNTED for operation in module.symbols)


def identity(module: Module) -> str:
    """The sha256 of the module's text, in hex."""
    return hashlib.sha256(to_text(module).encode("utf-8", "surrogatepass")).hexdigest()


def order_key(module: Module) -> OrderKey:
    """The place of a module in the order.

    In this order: size; functions; nesting; parameters and results of the function that is compiled and of all
    regions; constants; devices; what is sharded, donated or placed; attributes of operations; scalars; elements and
    dimensions of all values; their element types; the length of the text and the text.
    """
    operations = list(operations_of(module))
    values = [value for operation in operations for value in _values(operation)]
    values.extend(value for function in module.functions for value in function.body.params)
    text = to_text(module)
    main = module.main
    constants = [operation for operation in operations if operation.name == "stablehlo.constant"]
    return (
        size(module),
        len(module.functions),
        sum(_depth(function.body, 1) for function in module.functions),
        sum(map(_ports, operations)) + sum(len(f.body.params) + len(f.result_attributes) for f in module.functions),
        len(constants),
        _number(module.attributes, "mhlo.num_partitions") * _number(module.attributes, "mhlo.num_replicas"),
        len(module.symbols),
        sum(len(each) for each in (*main.param_attributes, *main.result_attributes)),
        sum(len(operation.attributes) for operation in operations) + len(module.attributes),
        sum(min(abs(number), 1 << 40) for one in constants if (number := scalar(one)) is not None),
        sum(not is_filled(text) for one in constants for key, text in one.attributes if key == "value"),
        sum(found.elements for value in values if (found := tensor(value.type)) is not None),
        sum(len(found.shape) + sum(found.shape) for value in values if (found := tensor(value.type)) is not None),
        sum(_ELEMENTS.get(f.element, _OTHER) if (f := tensor(value.type)) else _OTHER for value in values),
        len(text),
        text,
    )


def _values(operation: Operation) -> Iterator[Value]:
    yield from operation.results
    for region in operation.regions:
        yield from region.params


def _ports(operation: Operation) -> int:
    if not operation.regions:
        return 0
    return len(operation.results) + sum(len(region.params) + 1 for region in operation.regions)


def _depth(block: Block, depth: int) -> int:
    return sum(depth + sum(_depth(region, depth + 1) for region in operation.regions) for operation in block.operations)


def _number(attributes: Attributes, name: str) -> int:
    text = next((text for key, text in attributes if key == name), "1")
    head = text.split(" ")[0]
    return int(head) if head.isdigit() else 1
