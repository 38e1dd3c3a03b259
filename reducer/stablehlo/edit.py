"""Building a changed module: operations swapped, values replaced, arguments added, all at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from reducer.errors import ProgramError
from reducer.stablehlo.model import Attributes, Block, Function, Module, Operation, Value, all_operations
from reducer.stablehlo.types import fill


def last_number(module: Module) -> int:
    """The highest number of a value of the module."""
    numbers = [0]
    for function in module.functions:
        numbers.extend(value.number for value in function.body.params)
        for operation in all_operations(function.body):
            numbers.extend(value.number for value in operation.results)
            for region in operation.regions:
                numbers.extend(value.number for value in region.params)
    return max(numbers)


class Rewriter:
    """Changes that are made together. Operations are named by the number of their first result.

    Whoever plans a change sees to it that values are defined before they are used.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self._last = last_number(module)
        self._values: dict[int, Value] = {}
        self._swaps: dict[int, tuple[Operation, ...]] = {}
        self._params: list[tuple[Value, Attributes]] = []

    def new(self, type_text: str) -> Value:
        """A new value of a type."""
        self._last += 1
        return Value(self._last, type_text)

    def replace(self, old: Value, new: Value) -> None:
        """Use `new` wherever `old` is used.

        Raises:
            ProgramError: it has another type.
        """
        if old.type != new.type:
            raise ProgramError(f"{new.type} for {old.type}")
        if old.number != new.number:
            self._values[old.number] = new

    def swap(self, operation: Operation, by: Iterable[Operation]) -> None:
        """Put other operations in an operation's place. They may be its own, changed, or those of its regions."""
        self._swaps[operation.results[0].number] = tuple(by)

    def planned(self, operation: Operation) -> bool:
        """True if the operation is swapped already."""
        return operation.results[0].number in self._swaps

    def constant(self, value: Value, scalar: int = 0) -> Operation:
        """An operation that defines `value` as zeros (or ones).

        Raises:
            ProgramError: there is no such constant of its type.
        """
        return Operation("stablehlo.constant", (), (value,), (("value", fill(value.type, scalar)),))

    def argument(self, old: Value, attributes: Attributes = ()) -> None:
        """Make `old` a new argument of the function that is compiled."""
        param = self.new(old.type)
        self._params.append((param, attributes))
        self.replace(old, param)

    def resolve(self, value: Value) -> Value:
        """What a use of `value` becomes."""
        while value.number in self._values:
            value = self._values[value.number]
        return value

    def finish(self) -> Module:
        """The changed module."""
        main = self.module.main
        functions = []
        for function in self.module.functions:
            body = self._block(function.body)
            if function is main and self._params:
                body = msgspec.structs.replace(body, params=(*body.params, *(param for param, _ in self._params)))
                attributes = (*function.param_attributes, *(each for _, each in self._params))
                function = msgspec.structs.replace(function, param_attributes=attributes)
            functions.append(msgspec.structs.replace(function, body=body))
        return msgspec.structs.replace(self.module, functions=tuple(functions))

    def _block(self, block: Block) -> Block:
        return Block(block.params, tuple(self._operations(block.operations)))

    def _operations(self, operations: Sequence[Operation], swapped: int = -1) -> Iterable[Operation]:
        for operation in operations:
            key = operation.results[0].number if operation.results else -1
            if key >= 0 and key != swapped and key in self._swaps:
                yield from self._operations(self._swaps[key], key)
                continue
            operands = tuple(self.resolve(value) for value in operation.operands)
            regions = tuple(self._block(region) for region in operation.regions)
            yield Operation(operation.name, operands, operation.results, operation.attributes, regions)


class Copier:
    """Copies of blocks with new numbers: what is put in a second place needs values of its own."""

    def __init__(self, last: int) -> None:
        self.last = last

    def value(self, value: Value, names: dict[int, Value]) -> Value:
        """A new value in place of `value`, noted in `names`."""
        self.last += 1
        names[value.number] = found = Value(self.last, value.type)
        return found

    def operations(self, operations: Iterable[Operation], names: dict[int, Value]) -> tuple[Operation, ...]:
        """Copies; operands are read through `names`, and results added to it."""
        copies = []
        for operation in operations:
            operands = tuple(names.get(value.number, value) for value in operation.operands)
            regions = tuple(self.block(region, names) for region in operation.regions)
            results = tuple(self.value(value, names) for value in operation.results)
            copies.append(Operation(operation.name, operands, results, operation.attributes, regions))
        return tuple(copies)

    def block(self, block: Block, names: dict[int, Value]) -> Block:
        """A copy of a block."""
        params = tuple(self.value(value, names) for value in block.params)
        return Block(params, self.operations(block.operations, names))


def with_main(module: Module, main: Function) -> Module:
    """The module with another function in place of the one that is compiled."""
    old = module.main
    functions = tuple(main if function is old else function for function in module.functions)
    return msgspec.structs.replace(module, functions=functions)
