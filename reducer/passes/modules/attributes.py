"""Devices, shardings, donation, attributes and element types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from reducer.passes.base import Candidate, Edits
from reducer.stablehlo.devices import is_sharded, on_one_device
from reducer.stablehlo.edit import with_main
from reducer.stablehlo.hosted import placement
from reducer.stablehlo.model import Attributes, Block, Module, Operation, without
from reducer.stablehlo.retype import retyped


def one_device(module: Module) -> Iterator[Candidate[Module]]:
    """One device instead of several: with the sizes it sees, or with all of them."""
    if is_sharded(module):
        yield lambda: on_one_device(module, local=True)
        yield lambda: on_one_device(module, local=False)


def _mapped(module: Module, change: Callable[[Operation], Operation]) -> Module:
    def block(one: Block) -> Block:
        return Block(one.params, tuple(map(operation, one.operations)))

    def operation(one: Operation) -> Operation:
        return change(msgspec.structs.replace(one, regions=tuple(map(block, one.regions))))

    functions = tuple(msgspec.structs.replace(f, body=block(f.body)) for f in module.functions)
    return msgspec.structs.replace(module, functions=functions)


def optional_attributes(operation: Operation) -> list[str]:
    """Names of attributes that an operation can do without: those that other dialects put on it."""
    names = [name for name, _ in operation.attributes if "." in name or name == "precision_config"]
    return [] if placement(operation) is not None else names


def drop_attributes(module: Module) -> Edits[Module]:
    """Attributes dropped by name: from all operations, from all arguments and results, one by one from arguments."""
    names: dict[str, None] = {}

    def note(operation: Operation) -> Operation:
        names.update(dict.fromkeys(optional_attributes(operation)))
        return operation

    _mapped(module, note)
    main = module.main
    ports = [
        (kind, at, name)
        for kind, each in (("param", main.param_attributes), ("result", main.result_attributes))
        for at, attributes in enumerate(each)
        for name, _ in attributes
    ]
    wholes = list(names)

    def apply(chosen: Sequence[int]) -> Module:
        gone = {wholes[at] for at in chosen if at < len(wholes)}
        slim = _mapped(
            module,
            lambda one: msgspec.structs.replace(
                one, attributes=without(one.attributes, *gone.intersection(optional_attributes(one)))
            ),
        )
        ends = {ports[at - len(wholes)] for at in chosen if at >= len(wholes)}

        def rest(kind: str, each: tuple[Attributes, ...]) -> tuple[Attributes, ...]:
            return tuple(
                tuple(item for item in attributes if (kind, at, item[0]) not in ends)
                for at, attributes in enumerate(each)
            )

        return with_main(
            slim,
            msgspec.structs.replace(
                slim.main,
                param_attributes=rest("param", slim.main.param_attributes),
                result_attributes=rest("result", slim.main.result_attributes),
            ),
        )

    return Edits(len(wholes) + len(ports), apply, (len(wholes),))


def simplify_mesh(module: Module) -> Iterator[Candidate[Module]]:
    """Axes of meshes that nothing is split along, gone from the mesh; what else a mesh says as well."""
    if module.symbols:
        yield lambda: _plain_meshes(module)


def _plain_meshes(module: Module) -> Module:
    used: set[str] = set()

    def note(operation: Operation) -> Operation:
        for _, text in operation.attributes:
            if "#sdy" in text:
                used.update(re.findall(r'"([^"]*)"', text))
        return operation

    _mapped(module, note)
    for function in module.functions:
        for each in (*function.param_attributes, *function.result_attributes):
            for name, text in each:
                if name == "sdy.sharding":
                    used.update(re.findall(r'"([^"]*)"', text))

    def mesh(operation: Operation) -> Operation:
        if operation.name != "sdy.mesh":
            return operation
        text = next((text for name, text in operation.attributes if name == "mesh"), "")
        axes = re.findall(r'"([^"]*)"=(\d+)', text)
        kept = [(name, number) for name, number in axes if name in used or number != "1"]
        new = f"#sdy.mesh<[{', '.join(f'{chr(34)}{name}{chr(34)}={number}' for name, number in kept)}]>"
        name = next(item for item in operation.attributes if item[0] == "sym_name")
        return msgspec.structs.replace(operation, attributes=(("mesh", new), name))

    return msgspec.structs.replace(module, symbols=tuple(map(mesh, module.symbols)))


def unify_dtypes(module: Module) -> Iterator[Candidate[Module]]:
    """All floating types f32."""
    yield lambda: retyped(module)
