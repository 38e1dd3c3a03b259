"""Calls replaced by what they call."""

from __future__ import annotations

import msgspec

from reducer.errors import ProgramError
from reducer.stablehlo.edit import Copier, last_number
from reducer.stablehlo.model import Block, Function, Module, Operation, Value, all_operations, attribute, operations_of

#: Operations of a module after inlining, at most: calls of calls of calls grow without end.
_LIMIT = 200_000
#: Regions inside each other, at most: whatever walks a module does so by recursion.
_DEEPEST = 100


def callee(operation: Operation) -> str | None:
    """The name of the function that an operation calls."""
    if operation.name != "func.call":
        return None
    text = attribute(operation.attributes, "callee") or ""
    return text.removeprefix("@").strip('"')


def inline_calls(module: Module) -> Module:
    """The module with every call of a function replaced by the function's body.

    Raises:
        ProgramError: functions call each other in a circle, or the result would be huge.
    """
    if all(callee(operation) is None for operation in operations_of(module)):
        return module
    inliner = _Inliner(module)
    functions = tuple(inliner.function(function.name) for function in module.functions)
    return msgspec.structs.replace(module, functions=functions)


class _Inliner:
    def __init__(self, module: Module) -> None:
        self._functions = {function.name: function for function in module.functions}
        self._done: dict[str, Function] = {}
        self._under_way: set[str] = set()
        self._copier = Copier(last_number(module))
        self._count = 0

    def function(self, name: str) -> Function:
        """A function without calls."""
        if name in self._done:
            return self._done[name]
        if name in self._under_way or name not in self._functions:
            raise ProgramError(f"the function {name} calls itself, or is missing")
        self._under_way.add(name)
        function = self._functions[name]
        body = self._block(function.body, {})
        if _depth(body) > _DEEPEST:
            raise ProgramError("too many regions inside each other after inlining")
        self._done[name] = done = msgspec.structs.replace(function, body=body)
        return done

    def _block(self, block: Block, names: dict[int, Value]) -> Block:
        found: list[Operation] = []
        for operation in block.operations:
            self._count += 1
            operands = tuple(names.get(value.number, value) for value in operation.operands)
            called = callee(operation)
            if called is None:
                regions = tuple(self._block(region, names) for region in operation.regions)
                found.append(Operation(operation.name, operands, operation.results, operation.attributes, regions))
                continue
            body = self.function(called).body
            inner = {param.number: value for param, value in zip(body.params, operands, strict=True)}
            self._count += sum(1 for _ in all_operations(body))
            if self._count > _LIMIT:
                raise ProgramError("too many operations after inlining")
            copies = self._copier.operations(body.operations, inner)
            found.extend(copies[:-1])
            names.update(
                {result.number: value for result, value in zip(operation.results, copies[-1].operands, strict=True)}
            )
        return Block(block.params, tuple(found))


def _depth(block: Block) -> int:
    return 1 + max((_depth(region) for operation in block.operations for region in operation.regions), default=0)
