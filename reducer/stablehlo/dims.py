"""Which sizes of a module belong together, and the module with some of them changed.

An operation without a rule pins all sizes that it touches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from reducer.errors import ProgramError
from reducer.stablehlo.atoms import Atoms
from reducer.stablehlo.dim_rules import RULES, Shapes, ints
from reducer.stablehlo.inline import callee
from reducer.stablehlo.model import Attributes, Block, Function, Module, Operation, Value, attribute, with_attribute
from reducer.stablehlo.types import Tensor, tensor


class Dims:
    """The sizes of all values of a module.

    `local`: what is split over devices may have another size inside a manual computation than outside; else both are
    pinned.
    """

    def __init__(self, module: Module, *, local: bool = False) -> None:
        self.module = module
        self._local_sizes = local
        self.atoms = Atoms()
        self._shapes: dict[int, tuple[int, ...]] = {}
        self._functions = {function.name: function for function in module.functions}
        for function in module.functions:
            self._declare(function.body)
        for function in module.functions:
            self._link(function.body)

    def shape(self, value: Value) -> tuple[int, ...]:
        """The atoms of a value's dimensions."""
        return self._shapes[value.number]

    def _declare(self, block: Block) -> None:
        for value in block.params:
            self._new(value)
        for operation in block.operations:
            for value in operation.results:
                self._new(value)
            for region in operation.regions:
                self._declare(region)

    def _new(self, value: Value) -> None:
        found = tensor(value.type)
        self._shapes[value.number] = tuple(self.atoms.new(size) for size in found.shape) if found else ()

    def _link(self, block: Block) -> None:
        for operation in block.operations:
            for region in operation.regions:
                self._link(region)
            self._rule(operation)

    def _rule(self, operation: Operation) -> None:
        shapes = Shapes(
            self.atoms,
            tuple(map(self.shape, operation.operands)),
            tuple(map(self.shape, operation.results)),
        )
        if operation.name == "stablehlo.while":
            cond, body = operation.regions
            for values in (operation.results, cond.params, body.params, body.operations[-1].operands):
                self._all_same(operation.operands, values)
        elif operation.name in ("stablehlo.case", "stablehlo.if"):
            for region in operation.regions:
                self._all_same(operation.results, region.operations[-1].operands)
        elif operation.name == "sdy.manual_computation":
            body = operation.regions[0]
            for outer, inner in ((operation.operands, body.params), (operation.results, body.operations[-1].operands)):
                for a, b in zip(outer, inner, strict=True):
                    self._local(self.shape(a), self.shape(b))
        elif (name := callee(operation)) is not None:
            called = self._functions[name].body
            self._all_same(operation.operands, called.params)
            self._all_same(operation.results, called.operations[-1].operands)
        elif operation.name in RULES:
            RULES[operation.name](operation, shapes)
        else:
            shapes.pin_all()

    def _all_same(self, one: tuple[Value, ...], other: tuple[Value, ...]) -> None:
        for a, b in zip(one, other, strict=True):
            self.atoms.same(self.shape(a), self.shape(b))

    def _local(self, outer: tuple[int, ...], inner: tuple[int, ...]) -> None:
        for a, b in zip(outer, inner, strict=True):
            if self.atoms.sizes[a] == self.atoms.sizes[b]:
                self.atoms.equal((a,), (b,))
            elif not self._local_sizes:
                self.atoms.pin(a, b)

    def free(self) -> list[int]:
        """The leaves that may change, in order of first appearance."""
        found: dict[int, None] = {}
        for shape in self._shapes.values():
            for leaf in self.atoms.leaves(*shape):
                if not self.atoms.pinned(leaf):
                    found[leaf] = None
        return list(found)

    def resized(self, chosen: dict[int, int]) -> Module:
        """The module with other sizes for some leaves.

        Raises:
            ProgramError: one of them is pinned.
        """
        if any(self.atoms.pinned(leaf) for leaf in chosen):
            raise ProgramError("a size that cannot change")
        return _Resizer(self, chosen).module()


class _Resizer:
    def __init__(self, dims: Dims, chosen: dict[int, int]) -> None:
        self._dims = dims
        self._chosen = chosen

    def _size(self, atom: int) -> int:
        return self._dims.atoms.product(atom, self._chosen)

    def _value(self, value: Value) -> Value:
        found = tensor(value.type)
        if found is None or not found.shape:
            return value
        shape = tuple(self._size(atom) for atom in self._dims.shape(value))
        return value if shape == found.shape else Value(value.number, str(Tensor(shape, found.element)))

    def module(self) -> Module:
        functions = tuple(self._function(function) for function in self._dims.module.functions)
        return msgspec.structs.replace(self._dims.module, functions=functions)

    def _function(self, function: Function) -> Function:
        return msgspec.structs.replace(function, body=self._block(function.body))

    def _block(self, block: Block) -> Block:
        return Block(tuple(map(self._value, block.params)), tuple(map(self._operation, block.operations)))

    def _operation(self, operation: Operation) -> Operation:
        operands = tuple(map(self._value, operation.operands))
        results = tuple(map(self._value, operation.results))
        attributes = operation.attributes
        if (operands, results) != (operation.operands, operation.results) and operation.name in _SIZED:
            attributes = _SIZED[operation.name](operation, operands, results)
        regions = tuple(map(self._block, operation.regions))
        return Operation(operation.name, operands, results, attributes, regions)


def _shape(value: Value) -> tuple[int, ...]:
    found = tensor(value.type)
    return found.shape if found else ()


def _array(numbers: Iterator[int]) -> str:
    return f"array<i64: {', '.join(map(str, numbers))}>"


def _constant(operation: Operation, _: tuple[Value, ...], results: tuple[Value, ...]) -> Attributes:
    text = attribute(operation.attributes, "value") or ""
    return with_attribute(operation.attributes, "value", re.sub(r"tensor<.*$", lambda _: results[0].type, text))


def _slice(operation: Operation, operands: tuple[Value, ...], _: tuple[Value, ...]) -> Attributes:
    old, new = _shape(operation.operands[0]), _shape(operands[0])
    limits = ints(attribute(operation.attributes, "limit_indices"))
    changed = (n if n != o else limit for o, n, limit in zip(old, new, limits, strict=True))
    return with_attribute(operation.attributes, "limit_indices", _array(changed))


def _sizes_of_slice(operation: Operation, _: tuple[Value, ...], results: tuple[Value, ...]) -> Attributes:
    return with_attribute(operation.attributes, "slice_sizes", _array(iter(_shape(results[0]))))


def _gather(operation: Operation, operands: tuple[Value, ...], _: tuple[Value, ...]) -> Attributes:
    old, new = _shape(operation.operands[0]), _shape(operands[0])
    sizes = ints(attribute(operation.attributes, "slice_sizes"))
    changed = (n if size == o else size for o, n, size in zip(old, new, sizes, strict=True))
    return with_attribute(operation.attributes, "slice_sizes", _array(changed))


#: Operations whose attributes hold sizes of their operands or results.
_SIZED: dict[str, Callable[[Operation, tuple[Value, ...], tuple[Value, ...]], Attributes]] = {
    "stablehlo.constant": _constant,
    "stablehlo.slice": _slice,
    "stablehlo.dynamic_slice": _sizes_of_slice,
    "stablehlo.gather": _gather,
}
