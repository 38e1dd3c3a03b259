"""What every candidate has to satisfy: values defined before they are used, with equal types."""

from __future__ import annotations

from reducer.errors import ProgramError
from reducer.stablehlo.model import ISOLATED, TERMINATORS, Block, Function, Module, Operation, Value


def check(module: Module) -> None:
    """Raise `ProgramError` where a value is used before it is defined, or with another type, or a loop is ragged."""
    for function in module.functions:
        _Checker().function(function)


class _Checker:
    def __init__(self) -> None:
        self._types: dict[int, str] = {}

    def function(self, function: Function) -> None:
        for params, attributes in (
            (function.body.params, function.param_attributes),
            (function.body.operations[-1].operands, function.result_attributes),
        ):
            if len(params) != len(attributes):
                raise ProgramError("attributes for another number of values", where=function.name)
        self._block(function.body, function.name, {})

    def _block(self, block: Block, where: str, around: dict[int, str]) -> None:
        scope = dict(around)
        scope.update((value.number, value.type) for value in block.params)
        for i, operation in enumerate(block.operations):
            place = f"{where}.{i}"
            for value in operation.operands:
                if scope.get(value.number) != value.type:
                    raise ProgramError(f"%{value.number} is not defined as {value.type}", where=place)
            inner = {} if operation.name in ISOLATED else scope
            for region in operation.regions:
                self._block(region, place, inner)
            if operation.name == "stablehlo.while":
                _loop(operation, place)
            scope.update((value.number, value.type) for value in operation.results)
        if block.operations and block.operations[-1].name not in TERMINATORS:
            raise ProgramError("the block does not end", where=where)


def _types(values: tuple[Value, ...]) -> list[str]:
    return [value.type for value in values]


def _loop(loop: Operation, where: str) -> None:
    cond, body = loop.regions
    carried = _types(loop.operands)
    for values in (loop.results, cond.params, body.params, body.operations[-1].operands):
        if _types(values) != carried:
            raise ProgramError("carries of different types", where=where)
