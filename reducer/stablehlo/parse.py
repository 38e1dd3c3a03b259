"""From MLIR to the mirror, by MLIR's own parser.

It runs in a process of its own because MLIR's parser may crash or take all memory on what it is given, and because
the process that a user starts does not load JAX.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from reducer.stablehlo.model import Attributes, Block, Function, Module, Operation, Value

#: Nested regions are walked by recursion, here and in every pass.
MAX_DEPTH = 60
_BYTECODE = b"ML\xefR"
_DERIVED = ("sym_name", "function_type", "arg_attrs", "res_attrs")


class Unreadable(Exception):
    """The module does not parse, or is none the reducer can hold."""


class Answer(msgspec.Struct):
    """What the process answers: a module, or in one line why there is none."""

    module: Module | None = None
    error: str = ""


def read(data: bytes) -> Module:
    """Parse a module: text, bytecode, or a portable artifact.

    Raises:
        Unreadable: with MLIR's first line about it.
    """
    from jax.extend.mlir import ir
    from jax.interpreters import mlir

    with mlir.make_ir_context() as context:
        try:
            parsed = ir.Module.parse(_portable(context, data) if data.startswith(_BYTECODE) else data)
        except (ir.MLIRError, ValueError) as error:
            raise Unreadable(_first_line(str(error))) from error
        return _Reader().module(parsed.operation)


def _portable(context: Any, data: bytes) -> bytes:
    """Bytecode of a portable artifact (of the versioned dialect) as ordinary bytecode; any other as it is."""
    import jax.extend.mlir

    try:
        return bytes(jax.extend.mlir.deserialize_portable_artifact(context, data))
    except Exception:  # several types, by version: it is no portable artifact, and is parsed as it is
        return data


def _first_line(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("error:")]
    line = (told or lines or ["no reason given"])[0]
    return line.removeprefix("error:").strip().replace('"-":', "line ")[:300]


class _Reader:
    """Numbers the values of one module while walking it."""

    def __init__(self) -> None:
        self._values: dict[Any, Value] = {}

    def _new(self, value: Any) -> Value:
        found = self._values[value] = Value(len(self._values), str(value.type))
        return found

    def module(self, operation: Any) -> Module:
        functions: list[Function] = []
        symbols: list[Operation] = []
        attributes = dict(_attributes(operation))
        name = operation.attributes["sym_name"].value if "sym_name" in attributes else "module"
        for child in operation.regions[0].blocks[0].operations:
            child = child.operation
            if child.name == "func.func":
                functions.append(self.function(child))
            else:
                symbols.append(self.operation(child, 0))
        if not functions:
            raise Unreadable("the module has no function")
        rest = tuple(item for item in attributes.items() if item[0] != "sym_name")
        return Module(tuple(functions), tuple(symbols), rest, name)

    def function(self, operation: Any) -> Function:
        name = operation.attributes["sym_name"].value
        body = self.region(operation.regions[0], 0)
        if not body.operations:
            raise Unreadable(f"the function {name} has no body")
        return Function(
            name=name,
            body=body,
            param_attributes=_each(operation, "arg_attrs", len(body.params)),
            result_attributes=_each(operation, "res_attrs", len(body.operations[-1].operands)),
            attributes=tuple(item for item in _attributes(operation) if item[0] not in _DERIVED),
        )

    def region(self, region: Any, depth: int) -> Block:
        if depth > MAX_DEPTH:
            raise Unreadable(f"regions are nested more than {MAX_DEPTH} deep")
        blocks = list(region.blocks)
        if not blocks:
            return Block()
        if len(blocks) > 1:
            raise Unreadable("a region has several blocks, which StableHLO has no use for")
        params = tuple(self._new(value) for value in blocks[0].arguments)
        return Block(params, tuple(self.operation(child.operation, depth) for child in blocks[0].operations))

    def operation(self, operation: Any, depth: int) -> Operation:
        operands = tuple(self._values[value] for value in operation.operands)
        regions = tuple(self.region(region, depth + 1) for region in operation.regions)
        results = tuple(self._new(value) for value in operation.results)
        return Operation(operation.name, operands, results, _attributes(operation), regions)


def _attributes(operation: Any) -> Attributes:
    names: Sequence[Any] = list(operation.attributes)
    # Iterating gives names, or in other versions of the bindings, pairs.
    return tuple(
        sorted(
            (name, _text(operation, name)) for name in (item if isinstance(item, str) else item.name for item in names)
        )
    )


def _text(operation: Any, name: str) -> str:
    try:
        return str(operation.attributes[name])
    except TypeError:
        # The bindings have no class for dense complex elements: what is printed has to do.
        printed = operation.get_asm(print_generic_op_form=True)
        found = re.search(rf"[<{{ ]{re.escape(name)} = (dense<[^\n]*?> : tensor<[\dx]*complex<\w+>>)", printed)
        if found is None:
            raise Unreadable(f"the attribute {name} of {operation.name} is of an unknown kind") from None
        return found[1]


def _each(operation: Any, name: str, count: int) -> tuple[Attributes, ...]:
    if name not in operation.attributes:
        return ((),) * count
    return tuple(_dictionary(one) for one in operation.attributes[name])


def _dictionary(attribute: Any) -> Attributes:
    from jax.extend.mlir import ir

    found = ir.DictAttr(attribute)
    entries = (found[i] for i in range(len(found)))
    return tuple(sorted((entry.name, str(entry.attr)) for entry in entries))


def main(data: bytes) -> bytes:
    """What the process does: the answer, as JSON."""
    try:
        answer = Answer(module=read(data))
    except Unreadable as error:
        answer = Answer(error=str(error))
    except (RecursionError, MemoryError) as error:
        answer = Answer(error=f"too large: {type(error).__name__}")
    return msgspec.json.encode(answer)
