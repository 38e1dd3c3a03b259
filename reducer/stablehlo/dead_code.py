"""Removing what nothing needs: operations, carries of loops, results of branches, whole regions."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from reducer.stablehlo.lists import per_value, shardings
from reducer.stablehlo.model import (
    TERMINATORS,
    Attributes,
    Block,
    Function,
    Module,
    Operation,
    Value,
    attribute,
    with_attribute,
)

#: Calls that are marked as having an effect so that nobody moves them, and that mean nothing where nobody looks.
_ANNOTATIONS = ('"annotate_device_placement"', '"Sharding"', '"SPMDFullToShardShape"', '"SPMDShardToFullShape"')
#: Operations whose results can be dropped one by one, with what their regions return for them.
_BRANCHING = frozenset({"stablehlo.case", "stablehlo.if"})


def has_effect(operation: Operation) -> bool:
    """True if the operation matters although nobody uses its results."""
    if not operation.results:
        return operation.name not in TERMINATORS
    effect = attribute(operation.attributes, "has_side_effect") == "true"
    return effect and attribute(operation.attributes, "call_target_name") not in _ANNOTATIONS


def remove_dead_code(module: Module) -> Module:
    """Drop what neither a function's results nor an effect depends on. Functions keep their parameters and results."""
    functions = tuple(_Liveness(function).swept() for function in module.functions)
    return msgspec.structs.replace(module, functions=functions)


class _Liveness:
    """What is needed in one function."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._results: dict[int, tuple[Operation, int]] = {}
        self._params: dict[int, tuple[Operation, int]] = {}
        self._live: set[int] = set()
        self._entered: set[int] = set()
        self._open: list[Value] = []
        self._index(function.body, ())
        self._need(*function.body.operations[-1].operands)
        self._run()

    def _index(self, block: Block, around: tuple[Operation, ...]) -> None:
        for operation in block.operations:
            for i, value in enumerate(operation.results):
                self._results[value.number] = operation, i
            for region in operation.regions:
                for i, value in enumerate(region.params):
                    self._params[value.number] = operation, i
                self._index(region, (*around, operation))
            if has_effect(operation):
                self._enter(operation)
                for outer in around:
                    self._enter(outer)

    def _need(self, *values: Value) -> None:
        self._open.extend(value for value in values if value.number not in self._live)

    def _run(self) -> None:
        while self._open:
            value = self._open.pop()
            if value.number in self._live:
                continue
            self._live.add(value.number)
            if value.number in self._results:
                operation, at = self._results[value.number]
                self._enter(operation)
                self._need_at(operation, at)
            elif value.number in self._params:
                operation, at = self._params[value.number]
                if operation.name == "stablehlo.while":
                    self._need_at(operation, at)
                elif operation.name == "sdy.manual_computation":
                    self._need(operation.operands[at])

    def _enter(self, operation: Operation) -> None:
        """The operation stays: what it needs whichever of its results are used."""
        if id(operation) in self._entered:
            return
        self._entered.add(id(operation))
        if operation.name == "stablehlo.while":
            self._need(*operation.regions[0].operations[-1].operands)
        elif operation.name in _BRANCHING:
            self._need(*operation.operands)
        elif operation.name != "sdy.manual_computation":
            self._need(*operation.operands)
            for region in operation.regions:
                if region.operations:
                    self._need(*region.operations[-1].operands)

    def _need_at(self, operation: Operation, at: int) -> None:
        """What one result, or one carry, needs."""
        if operation.name == "stablehlo.while":
            cond, body = operation.regions
            self._need(operation.operands[at], operation.results[at], cond.params[at], body.params[at])
            self._need(body.operations[-1].operands[at])
        elif operation.name in _BRANCHING or operation.name == "sdy.manual_computation":
            for region in operation.regions:
                self._need(region.operations[-1].operands[at])

    def swept(self) -> Function:
        """The function without what is dead."""
        return msgspec.structs.replace(self._function, body=self._block(self._function.body))

    def _block(self, block: Block) -> Block:
        return Block(block.params, tuple(self._swept(block.operations)))

    def _swept(self, operations: tuple[Operation, ...]) -> Iterator[Operation]:
        for operation in operations:
            if operation.name in TERMINATORS:
                yield operation
            elif id(operation) in self._entered:
                yield self._slim(operation)

    def _slim(self, operation: Operation) -> Operation:
        if not operation.regions:
            return operation
        regions = tuple(self._block(region) for region in operation.regions)
        operation = msgspec.structs.replace(operation, regions=regions)
        keep = [value.number in self._live for value in operation.results]
        if operation.name == "stablehlo.while" and not all(keep):
            return keep_carries(operation, keep)
        if operation.name in _BRANCHING and not all(keep):
            return _keep_results(operation, keep)
        if operation.name == "sdy.manual_computation":
            used = [value.number in self._live for value in operation.regions[0].params]
            if not (all(keep) and all(used)):
                return keep_in_manual(operation, used, keep)
        return operation


def _kept(values: tuple[Value, ...], keep: list[bool]) -> tuple[Value, ...]:
    return tuple(value for value, stays in zip(values, keep, strict=True) if stays)


def _returning(block: Block, keep: list[bool]) -> Block:
    last = block.operations[-1]
    last = msgspec.structs.replace(last, operands=_kept(last.operands, keep))
    return Block(block.params, (*block.operations[:-1], last))


def keep_carries(loop: Operation, keep: list[bool]) -> Operation:
    """A while loop with only these carries."""
    cond, body = loop.regions
    cond = Block(_kept(cond.params, keep), cond.operations)
    body = _returning(Block(_kept(body.params, keep), body.operations), keep)
    return Operation(loop.name, _kept(loop.operands, keep), _kept(loop.results, keep), loop.attributes, (cond, body))


def _keep_results(operation: Operation, keep: list[bool]) -> Operation:
    regions = tuple(_returning(region, keep) for region in operation.regions)
    return msgspec.structs.replace(operation, results=_kept(operation.results, keep), regions=regions)


def keep_in_manual(operation: Operation, operands: list[bool], results: list[bool]) -> Operation:
    """A manual computation with only these operands and results."""
    body = _returning(Block(_kept(operation.regions[0].params, operands), operation.regions[0].operations), results)
    attributes: Attributes = operation.attributes
    for name, keep in (("in_shardings", operands), ("out_shardings", results)):
        items = shardings(attribute(attributes, name) or "")
        kept = [item for item, stays in zip(items, keep, strict=True) if stays]
        attributes = with_attribute(attributes, name, per_value(kept))
    return Operation(
        operation.name, _kept(operation.operands, operands), _kept(operation.results, results), attributes, (body,)
    )
