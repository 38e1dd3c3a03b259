"""Other element types everywhere at once."""

from __future__ import annotations

import re

import msgspec

from reducer.stablehlo.model import Block, Module, Operation, Value

_FLOATING = re.compile(r"\b(?:bf16|f16|f64)\b|(?<=x)(?:bf16|f16|f64)\b")


def retyped(module: Module) -> Module:
    """The module with f32 for every other floating type."""

    def new(text: str) -> str:
        return _FLOATING.sub("f32", text)

    def value(one: Value) -> Value:
        return Value(one.number, new(one.type))

    def block(one: Block) -> Block:
        return Block(tuple(map(value, one.params)), tuple(map(operation, one.operations)))

    def operation(one: Operation) -> Operation:
        attributes = tuple((name, new(text) if name == "value" else text) for name, text in one.attributes)
        regions = tuple(map(block, one.regions))
        return Operation(one.name, tuple(map(value, one.operands)), tuple(map(value, one.results)), attributes, regions)

    functions = tuple(msgspec.structs.replace(f, body=block(f.body)) for f in module.functions)
    return msgspec.structs.replace(module, functions=functions)
