"""A frozen mirror of an MLIR module in StableHLO: what the reducer's passes work on, without MLIR.

Values are numbered uniquely within a module, and a use carries its type, so an operation can be read by itself. What
the reducer does not look into (attributes, properties, unknown types) is kept as the text MLIR prints for it.
Unlike the IR of programs, regions are not closed: an operation in the body of a loop may use any value of the blocks
around it, up to the function (or another operation that is isolated, see `ISOLATED`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import msgspec

#: Name and text of each attribute (properties included), sorted by name. A unit attribute's text is "unit".
Attributes: TypeAlias = tuple[tuple[str, str], ...]

#: Operations whose regions see nothing of what is around them.
ISOLATED: Final = frozenset({"sdy.manual_computation"})
#: What ends a block.
TERMINATORS: Final = frozenset({"stablehlo.return", "func.return", "sdy.return"})


class Value(msgspec.Struct, frozen=True, array_like=True):
    """A value: its number, and its type as MLIR prints it, as ``tensor<2x3xf32>``."""

    number: int
    type: str


class Operation(msgspec.Struct, frozen=True, array_like=True):
    """One operation. `name` with its dialect, as "stablehlo.add"; `regions` of one block each."""

    name: str
    operands: tuple[Value, ...] = ()
    results: tuple[Value, ...] = ()
    attributes: Attributes = ()
    regions: tuple[Block, ...] = ()


class Block(msgspec.Struct, frozen=True, array_like=True):
    """A region's only block: `operations` ends with a terminator. No operations at all: a region without a block."""

    params: tuple[Value, ...] = ()
    operations: tuple[Operation, ...] = ()


class Function(msgspec.Struct, frozen=True, array_like=True):
    """A ``func.func`` with a body.

    Attributes:
        name: the symbol.
        body: its parameters are the function's.
        param_attributes, result_attributes: one set for each parameter and result (`mhlo.memory_kind`, `sdy.sharding`,
            `tf.aliasing_output`, ...).
        attributes: all others; `sym_visibility` is among them.
    """

    name: str
    body: Block
    param_attributes: tuple[Attributes, ...]
    result_attributes: tuple[Attributes, ...]
    attributes: Attributes = ()


class Module(msgspec.Struct, frozen=True, array_like=True):
    """A module: its functions, and `symbols`, everything else at its top level (meshes)."""

    functions: tuple[Function, ...]
    symbols: tuple[Operation, ...] = ()
    attributes: Attributes = ()
    name: str = "module"

    @property
    def main(self) -> Function:
        """The function that is compiled: the one named main, else the first."""
        return next((f for f in self.functions if f.name == "main"), self.functions[0])


def attribute(attributes: Attributes, name: str) -> str | None:
    """The text of one attribute."""
    return next((text for key, text in attributes if key == name), None)


def without(attributes: Attributes, *names: str) -> Attributes:
    """All attributes but these."""
    return tuple(item for item in attributes if item[0] not in names)


def with_attribute(attributes: Attributes, name: str, text: str) -> Attributes:
    """The attributes with one set."""
    return tuple(sorted((*without(attributes, name), (name, text))))


def all_operations(block: Block) -> Iterator[Operation]:
    """Every operation of a block and of the regions in it, outer ones first."""
    for operation in block.operations:
        yield operation
        for region in operation.regions:
            yield from all_operations(region)


def operations_of(module: Module) -> Iterator[Operation]:
    """Every operation of all functions."""
    for function in module.functions:
        yield from all_operations(function.body)
