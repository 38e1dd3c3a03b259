"""Shardings of the sdy dialect: the mesh, and partition specs over it.

Mesh axes of one device are left out everywhere: nothing is divided along them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from reducer.errors import ProgramError
from reducer.ir.equations import Mesh, Spec
from reducer.raising.attributes import strings, unreadable
from reducer.stablehlo.model import Module, attribute, operations_of

_AXIS: Final = re.compile(r'"((?:[^"\\]|\\.)*)"=(\d+)')
_SHARDING: Final = re.compile(r"<@[^,]*, \[([^\]]*)\]((?:, \w+=\{[^}]*\})*)>")
_DIMENSION: Final = re.compile(r"\{([^}]*)\}")
_SUB_AXIS: Final = re.compile(r'":\(')


def mesh_of(module: Module) -> Mesh | None:
    """The module's mesh; None if it runs on one device. Partitions that are all the same get a mesh of one axis.

    Raises:
        ProgramError: two different meshes, or shardings that name no mesh.
    """
    found = {mesh for operation in module.symbols if (mesh := _mesh(operation.name, operation.attributes)) is not None}
    meshes = {mesh for mesh in found if mesh.axes}
    if len(meshes) > 1:
        raise ProgramError(f"not expressible: {len(meshes)} meshes in one module")
    if meshes:
        return meshes.pop()
    partitions = int((attribute(module.attributes, "mhlo.num_partitions") or "1").split(" ")[0])
    if partitions > 1 and _has_other_shardings(module):
        raise ProgramError(f"not expressible: shardings of {partitions} partitions without a mesh")
    return Mesh((("device", partitions),)) if partitions > 1 else None


def _has_other_shardings(module: Module) -> bool:
    sets = [s for f in module.functions for s in (*f.param_attributes, *f.result_attributes)]
    sets += [operation.attributes for operation in operations_of(module)]
    return any(attribute(each, "mhlo.sharding") is not None for each in sets)


def _mesh(name: str, attributes: Sequence[tuple[str, str]]) -> Mesh | None:
    if name != "sdy.mesh":
        return None
    text = dict(attributes).get("mesh", "")
    return Mesh(tuple((axis, int(size)) for axis, size in _AXIS.findall(text) if int(size) > 1))


def specs(text: str, mesh: Mesh | None) -> tuple[Spec, ...]:
    """The specs in the text of one or several shardings. A dimension that is left open counts as closed.

    Raises:
        ProgramError: a part of an axis, or the text has another form.
    """
    if _SUB_AXIS.search(text) or 'unreduced={"' in text:
        raise unreadable("a sharding over parts of mesh axes", text)
    return tuple(_spec(dims, mesh) for dims, _ in _SHARDING.findall(text))


def spec(text: str, mesh: Mesh | None) -> Spec:
    """The spec of one sharding."""
    found = specs(text, mesh)
    if len(found) != 1:
        raise unreadable("a sharding", text)
    return found[0]


def _spec(text: str, mesh: Mesh | None) -> Spec:
    sizes = dict(mesh.axes) if mesh else {}
    out: list[str | tuple[str, ...] | None] = []
    for inside in _DIMENSION.findall(text):
        axes = tuple(axis for axis in strings(inside) if axis in sizes)
        out.append(axes[0] if len(axes) == 1 else axes or None)
    while out and out[-1] is None:
        out.pop()
    return tuple(out)


def among(spec_: Spec, axes: Sequence[str]) -> Spec:
    """The part of a spec that is about some of the axes."""
    out: list[str | tuple[str, ...] | None] = []
    for entry in spec_:
        kept = tuple(a for a in ((entry,) if isinstance(entry, str) else entry or ()) if a in axes)
        out.append(kept[0] if len(kept) == 1 else kept or None)
    return tuple(out)
