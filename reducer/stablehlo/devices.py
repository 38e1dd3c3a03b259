"""Fewer devices: shardings taken off, and the module of one device with the sizes that one device sees."""

from __future__ import annotations

import re

import msgspec

from reducer.errors import ProgramError
from reducer.stablehlo.dims import Dims
from reducer.stablehlo.edit import Rewriter
from reducer.stablehlo.lists import split
from reducer.stablehlo.model import Module, Operation, attribute, operations_of, without

_SHARDED = ("sdy.sharding", "mhlo.sharding")
_ONE_DEVICE = ("mhlo.num_partitions", "mhlo.num_replicas")


def is_sharded(module: Module) -> bool:
    """True if the module is for several devices, or says anything of shardings."""
    main = module.main
    return (
        any(attribute(module.attributes, name) not in (None, "1 : i32") for name in _ONE_DEVICE)
        or bool(module.symbols)
        or any(name in _SHARDED for each in (*main.param_attributes, *main.result_attributes) for name, _ in each)
    )


def on_one_device(module: Module, *, local: bool) -> Module:
    """The module for one device, without meshes and shardings.

    With `local` what was split over devices by a constraint has the size that one device saw.

    Raises:
        ProgramError: sizes do not fit: something was split that cannot be smaller, or a manual computation was given
            parts.
    """
    if local:
        module = _localised(module)
    change = Rewriter(module)
    for operation in operations_of(module):
        if operation.name == "sdy.sharding_constraint":
            change.replace(operation.results[0], operation.operands[0])
            change.swap(operation, ())
        elif operation.name == "sdy.manual_computation":
            body = operation.regions[0]
            for param, value in zip(body.params, operation.operands, strict=True):
                change.replace(param, value)
            for result, value in zip(operation.results, body.operations[-1].operands, strict=True):
                change.replace(result, value)
            change.swap(operation, body.operations[:-1])
    return _plain(change.finish())


def _plain(module: Module) -> Module:
    functions = tuple(
        msgspec.structs.replace(
            function,
            param_attributes=tuple(without(each, *_SHARDED) for each in function.param_attributes),
            result_attributes=tuple(without(each, *_SHARDED) for each in function.result_attributes),
        )
        for function in module.functions
    )
    symbols = tuple(one for one in module.symbols if one.name != "sdy.mesh")
    return Module(functions, symbols, without(module.attributes, *_ONE_DEVICE), module.name)


def _localised(module: Module) -> Module:
    dims = Dims(module, local=True)
    axes = _axes(module)
    chosen: dict[int, int] = {}

    def smaller(atom: int, parts: int) -> None:
        leaves = dims.atoms.leaves(atom)
        if parts == 1 or not leaves:
            return
        leaf = leaves[0]
        size = dims.atoms.sizes[leaf]
        if dims.atoms.pinned(leaf) or size % parts or chosen.get(leaf, size // parts) != size // parts:
            raise ProgramError("what is split over devices cannot be smaller")
        chosen[leaf] = size // parts

    for operation in operations_of(module):
        if operation.name == "sdy.sharding_constraint":
            text = attribute(operation.attributes, "sharding") or ""
            for atom, parts in zip(dims.shape(operation.results[0]), _parts(text, axes), strict=False):
                smaller(atom, parts)
        elif operation.name == "sdy.manual_computation":
            body = operation.regions[0]
            inner = (*body.params, *body.operations[-1].operands)
            for one, other in zip((*operation.operands, *operation.results), inner, strict=True):
                for a, b in zip(dims.shape(one), dims.shape(other), strict=True):
                    smaller(a, dims.atoms.product(a, {}) // max(dims.atoms.product(b, {}), 1))
    return dims.resized(chosen)


def _axes(module: Module) -> dict[str, int]:
    """The sizes of the axes of all meshes."""
    found: dict[str, int] = {}
    for operation in module.symbols:
        for name, number in re.findall(r'"([^"]*)"=(\d+)', attribute(operation.attributes, "mesh") or ""):
            found[name] = int(number)
    return found


def _parts(sharding: str, axes: dict[str, int]) -> list[int]:
    """Into how many parts a sharding splits each dimension."""
    match = re.search(r"\[(.*)\]", sharding)
    counts = []
    for item in split(match[1] if match else ""):
        count = 1
        for name in re.findall(r'"([^"]*)"', item):
            count *= axes.get(name, 1)
        counts.append(count)
    return counts


__all__ = ["Operation", "is_sharded", "on_one_device"]
