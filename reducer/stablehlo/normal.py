"""Normal forms of a module: what cannot matter to anybody taken out, everything else kept.

Three of them, the strongest first. `inlined` has no calls and no duplicates; `tidied` keeps the calls; `numbered` only
numbers values, names functions and forgets what is for people (locations, the names of results). A reduction begins in
the strongest one in which its start still fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from reducer.stablehlo.dead_code import has_effect, remove_dead_code
from reducer.stablehlo.inline import callee, inline_calls
from reducer.stablehlo.model import (
    TERMINATORS,
    Attributes,
    Block,
    Function,
    Module,
    Operation,
    Value,
    all_operations,
    attribute,
    operations_of,
    without,
)
from reducer.stablehlo.text import symbol

_REFERENCE = re.compile(r'@(?:"((?:[^"\\]|\\.)*)"|([A-Za-z_][\w$.]*))')
_FOR_PEOPLE = ("jax.result_info", "jax.arg_info")


def inlined(module: Module) -> Module:
    """Without calls, dead code, duplicates, arguments nobody uses.

    Raises:
        ProgramError: the calls cannot be inlined.
    """
    return tidied(inline_calls(module))


def tidied(module: Module) -> Module:
    """Without dead code, duplicates in a block, functions and meshes nobody refers to, arguments nobody uses."""
    module = _referred(module)
    module = remove_dead_code(module)
    functions = tuple(msgspec.structs.replace(function, body=_shared(function.body)) for function in module.functions)
    module = msgspec.structs.replace(module, functions=functions)
    return numbered(_used_params(_referred(module)))


def numbered(module: Module) -> Module:
    """The values numbered in order of definition, functions in order of first call."""
    main = module.main
    called = {main.name: "main"}
    for operation in all_operations(main.body):
        if (name := callee(operation)) is not None:
            called.setdefault(name, f"f{len(called) - 1}")
    for function in module.functions:
        for operation in all_operations(function.body):
            if (name := callee(operation)) is not None:
                called.setdefault(name, f"f{len(called) - 1}")
    order = list(called)
    functions = sorted(module.functions, key=lambda f: order.index(f.name) if f.name in called else len(order))
    referred = {name for op in operations_of(module) if op.name != "func.call" for name in references(op.attributes)}
    renamed = {old: new for old, new in called.items() if not referred}
    numbers: dict[int, Value] = {}
    return Module(
        tuple(_numbered_function(function, numbers, renamed) for function in functions),
        module.symbols,
        module.attributes,
        "module",
    )


def references(attributes: Attributes) -> Iterator[str]:
    """The symbols that attributes refer to."""
    for _, text in attributes:
        if "@" in text:
            for match in _REFERENCE.finditer(text):
                yield match[1] or match[2]


def _numbered_function(function: Function, numbers: dict[int, Value], renamed: dict[str, str]) -> Function:
    def new(value: Value) -> Value:
        found = numbers[value.number] = Value(len(numbers), value.type)
        return found

    def block(one: Block) -> Block:
        params = tuple(new(value) for value in one.params)
        return Block(params, tuple(operation(each) for each in one.operations))

    def operation(one: Operation) -> Operation:
        operands = tuple(numbers[value.number] for value in one.operands)
        regions = tuple(block(region) for region in one.regions)
        attributes = one.attributes
        if (name := callee(one)) in renamed and name is not None:
            attributes = tuple((key, symbol(renamed[name]) if key == "callee" else text) for key, text in attributes)
        return Operation(one.name, operands, tuple(new(value) for value in one.results), attributes, regions)

    return Function(
        renamed.get(function.name, function.name),
        block(function.body),
        tuple(without(each, *_FOR_PEOPLE) for each in function.param_attributes),
        tuple(without(each, *_FOR_PEOPLE) for each in function.result_attributes),
        function.attributes,
    )


def _referred(module: Module) -> Module:
    """Without functions and symbols that nothing refers to, directly or not."""
    by_name = {function.name: function for function in module.functions}
    found: set[str] = set()
    open_ = [module.main.name]
    while open_:
        name = open_.pop()
        if name in found:
            continue
        found.add(name)
        if name in by_name:
            function = by_name[name]
            for attributes in (function.attributes, *function.param_attributes, *function.result_attributes):
                open_.extend(references(attributes))
            for operation in all_operations(function.body):
                open_.extend(references(operation.attributes))
    functions = tuple(function for function in module.functions if function.name in found)
    symbols = tuple(
        one
        for one in module.symbols
        if (target := attribute(one.attributes, "sym_name")) is None or target.strip('"') in found
    )
    return msgspec.structs.replace(module, functions=functions, symbols=symbols)


def _shared(block: Block) -> Block:
    """Of equal operations without regions, in one block, only the first."""
    names: dict[int, Value] = {}

    def walk(one: Block) -> Block:
        known: dict[tuple[object, ...], tuple[Value, ...]] = {}
        kept: list[Operation] = []
        for operation in one.operations:
            operands = tuple(names.get(value.number, value) for value in operation.operands)
            if operation.regions or has_effect(operation) or operation.name in TERMINATORS or not operation.results:
                regions = tuple(walk(region) for region in operation.regions)
                kept.append(Operation(operation.name, operands, operation.results, operation.attributes, regions))
                continue
            types = tuple(value.type for value in operation.results)
            key = (operation.name, tuple(value.number for value in operands), operation.attributes, types)
            if key in known:
                names.update(zip((value.number for value in operation.results), known[key], strict=True))
                continue
            known[key] = operation.results
            kept.append(msgspec.structs.replace(operation, operands=operands))
        return Block(one.params, tuple(kept))

    return walk(block)


def _used_params(module: Module) -> Module:
    """The function that is compiled without parameters that nobody uses."""
    main = module.main
    if any(callee(operation) == main.name for operation in operations_of(module)):
        return module
    used = {value.number for operation in all_operations(main.body) for value in operation.operands}
    keep = [value.number in used for value in main.body.params]
    if all(keep):
        return module
    params = tuple(value for value, stays in zip(main.body.params, keep, strict=True) if stays)
    attributes = tuple(each for each, stays in zip(main.param_attributes, keep, strict=True) if stays)
    slim = msgspec.structs.replace(main, body=Block(params, main.body.operations), param_attributes=attributes)
    functions = tuple(slim if function is main else function for function in module.functions)
    return msgspec.structs.replace(module, functions=functions)
