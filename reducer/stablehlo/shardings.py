"""The sharding that a value has if the constraints around it say so: what is cut off keeps it as an argument."""

from __future__ import annotations

import re
from collections.abc import Callable

from reducer.stablehlo.dims import Dims
from reducer.stablehlo.lists import split
from reducer.stablehlo.model import Attributes, Module, Value, attribute, operations_of


def sharding_of(module: Module) -> Callable[[Value], Attributes]:
    """A function from a value to the `sdy.sharding` of an argument in its place; no attributes where nothing is split.

    A dimension is split as the dimensions are that belong to it (`reducer.stablehlo.dims`) where a constraint says how.
    """
    constraints = [one for one in operations_of(module) if one.name == "sdy.sharding_constraint"]
    if not constraints:
        return lambda _: ()
    dims = Dims(module, local=True)
    splits: dict[int, str] = {}
    mesh = ""
    for operation in constraints:
        match = re.fullmatch(r"#sdy\.sharding<(@\S+), \[(.*)\]>", attribute(operation.attributes, "sharding") or "")
        if match is None:
            continue
        mesh = mesh or match[1]
        for atom, item in zip(dims.shape(operation.results[0]), split(match[2]), strict=False):
            leaves = dims.atoms.leaves(atom)
            if item != "{}" and leaves and match[1] == mesh:
                splits[leaves[0]] = item

    def find(value: Value) -> Attributes:
        leaves = [dims.atoms.leaves(atom) for atom in dims.shape(value)]
        items = [splits.get(each[0], "{}") if each else "{}" for each in leaves]
        if all(item == "{}" for item in items):
            return ()
        return (("sdy.sharding", f"#sdy.sharding<{mesh}, [{', '.join(items)}]>"),)

    return find
