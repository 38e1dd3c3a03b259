"""Printing a module in MLIR's generic form, which needs no knowledge of any operation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reducer.stablehlo.model import Attributes, Block, Function, Module, Operation, Value

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")
_PLAIN = re.compile(r"[ !#-\[\]-~]*")


def to_text(module: Module) -> str:
    """The module as MLIR reads it: one operation a line, values numbered as in the module."""
    # The module's own line is not generic: its attributes come first, where whoever counts partitions looks for them.
    lines = [f"module {symbol(module.name)} attributes {_dictionary(module.attributes)} {{"]
    for operation in module.symbols:
        lines.extend(_operation(operation, "  "))
    for function in module.functions:
        lines.extend(_function(function))
    return "\n".join([*lines, "}"]) + "\n"


def quoted(text: str) -> str:
    """A string attribute."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    encoded = text.encode("utf-8", "surrogateescape")
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in encoded) + '"'


def symbol(name: str) -> str:
    """A reference to a symbol."""
    return f"@{name}" if _BARE.fullmatch(name) else f"@{quoted(name)}"


def _function(function: Function) -> Iterator[str]:
    types = f"({', '.join(p.type for p in function.body.params)}) -> ({', '.join(_result_types(function.body))})"
    attributes: list[tuple[str, str]] = [("sym_name", quoted(function.name)), ("function_type", types)]
    for name, each in (("arg_attrs", function.param_attributes), ("res_attrs", function.result_attributes)):
        if any(each):
            attributes.append((name, f"[{', '.join(_dictionary(one) for one in each)}]"))
    attributes.extend(function.attributes)
    yield '  "func.func"() ({'
    yield from _block(function.body, "  ")
    yield f"  }}) {_dictionary(tuple(attributes))} : () -> ()"


def _result_types(block: Block) -> Iterator[str]:
    return (value.type for value in block.operations[-1].operands) if block.operations else iter(())


def _block(block: Block, indent: str) -> Iterator[str]:
    if not block.operations:
        return
    if block.params:
        yield f"{indent}^bb0({', '.join(f'%{p.number}: {p.type}' for p in block.params)}):"
    for operation in block.operations:
        yield from _operation(operation, indent + "  ")


def _operation(operation: Operation, indent: str) -> Iterator[str]:
    left = f"{_values(operation.results)} = " if operation.results else ""
    line = f'{indent}{left}"{operation.name}"({_values(operation.operands)})'
    for i, region in enumerate(operation.regions):
        yield f"{line}{', ' if i else ' ('}{{"
        yield from _block(region, indent)
        line = f"{indent}}}"
    if operation.regions:
        line += ")"
    if operation.attributes:
        line += f" {_dictionary(operation.attributes)}"
    types = (", ".join(value.type for value in values) for values in (operation.operands, operation.results))
    yield f"{line} : ({next(types)}) -> ({next(types)})"


def _values(values: tuple[Value, ...]) -> str:
    return ", ".join(f"%{value.number}" for value in values)


def _dictionary(attributes: Attributes) -> str:
    def entry(name: str, text: str) -> str:
        key = name if _BARE.fullmatch(name) else quoted(name)
        return key if text == "unit" else f"{key} = {text}"

    return f"{{{', '.join(entry(*item) for item in attributes)}}}"
