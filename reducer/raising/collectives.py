"""Collectives of manual computations: groups of devices, read as the mesh axes they lie along."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from math import prod
from typing import Final

from reducer.errors import ProgramError
from reducer.ir.equations import Arg, Attr, Lit, Op
from reducer.ir.types import Type
from reducer.raising.arrays import body_operation
from reducer.raising.attributes import integer, text_of
from reducer.raising.convert import Raiser, handles, metadata, out_of, outs_of
from reducer.raising.elementwise import broadcasting
from reducer.raising.frame import Frame
from reducer.stablehlo.model import Operation

_DENSE: Final = re.compile(r"dense<(.*)> : tensor<(\d+)x(\d+)xi64>", re.DOTALL)
_REDUCTIONS: Final = {"add": "psum", "maximum": "pmax", "minimum": "pmin"}
_REMAINDER: Final = broadcasting("rem")
_INDEX: Final = Type("int32")
#: Meshes have fewer axes of several devices; all their subsets are tried.
_MAX_AXES: Final = 8


def _rows(operation: Operation, name: str) -> list[list[int]]:
    match = _DENSE.fullmatch(text_of(operation, name))
    if match is None:
        raise ProgramError(f"{name} is {text_of(operation, name):.80}")
    n, m = int(match[2]), int(match[3])
    found = json.loads(match[1]) if match[1] else []
    return [[found] * m] * n if isinstance(found, int) else [list(map(int, row)) for row in found]


def _axes(raiser: Raiser) -> tuple[tuple[str, int], ...]:
    if raiser.mesh is None or len(raiser.mesh.axes) > _MAX_AXES:
        raise ProgramError("a collective without a mesh, or over one of many axes")
    return raiser.mesh.axes


def _groupings(raiser: Raiser) -> Iterator[tuple[tuple[str, ...], list[list[int]]]]:
    """Every choice of mesh axes, with the groups of devices that differ along these only."""
    axes = _axes(raiser)
    strides = {name: prod(size for _, size in axes[k + 1 :]) for k, (name, _) in enumerate(axes)}
    for count in range(1, len(axes) + 1):
        for chosen in combinations(axes, count):
            rest = [axis for axis in axes if axis not in chosen]

            def places(some: Sequence[tuple[str, int]]) -> list[int]:
                ranges = [[strides[name] * i for i in range(size)] for name, size in some]
                return [sum(parts) for parts in product(*ranges)]

            yield tuple(name for name, _ in chosen), [[a + b for b in places(chosen)] for a in places(rest)]


def _along(raiser: Raiser, operation: Operation) -> tuple[str, ...]:
    """The mesh axes along which a collective works."""
    groups = _rows(operation, "replica_groups")
    for names, found in _groupings(raiser):
        if sorted(found) == sorted(groups):
            return names
    raise ProgramError(f"groups of devices that lie along no mesh axes: {groups!s:.80}")


def _name(axes: tuple[str, ...]) -> Attr:
    return axes[0] if len(axes) == 1 else axes


@handles("stablehlo.all_reduce")
def _all_reduce(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    primitive = _REDUCTIONS.get(body_operation(operation.regions[0]) or "")
    if primitive is None:
        raise ProgramError("with another body than one operation")
    args, axes = raiser.args(frame, operation), _along(raiser, operation)
    return frame.ops(primitive, args, outs_of(operation), metadata(operation), axes=axes)


@handles("stablehlo.all_gather")
def _all_gather(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    return (
        frame.op(
            "all_gather",
            raiser.args(frame, operation),
            out_of(operation),
            metadata(operation),
            axis_name=_name(_along(raiser, operation)),
            all_gather_dimension=integer(operation, "all_gather_dim"),
            tiled=True,
        ),
    )


@handles("stablehlo.reduce_scatter")
def _reduce_scatter(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    if body_operation(operation.regions[0]) != "add":
        raise ProgramError("with another body than an addition")
    return (
        frame.op(
            "reduce_scatter",
            raiser.args(frame, operation),
            out_of(operation),
            metadata(operation),
            axis_name=_name(_along(raiser, operation)),
            scatter_dimension=integer(operation, "scatter_dimension"),
            tiled=True,
        ),
    )


@handles("stablehlo.all_to_all")
def _all_to_all(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    return (
        frame.op(
            "all_to_all",
            raiser.args(frame, operation),
            out_of(operation),
            metadata(operation),
            axis_name=_name(_along(raiser, operation)),
            split_axis=integer(operation, "split_dimension"),
            concat_axis=integer(operation, "concat_dimension"),
            tiled=True,
        ),
    )


@handles("stablehlo.collective_permute")
def _permute(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    pairs = {(source, target) for source, target in _rows(operation, "source_target_pairs")}
    for names, groups in _groupings(raiser):
        # The same exchange in every group, and nothing between groups.
        steps = [{(i, j) for i, a in enumerate(g) for j, b in enumerate(g) if (a, b) in pairs} for g in groups]
        if all(found == steps[0] for found in steps) and sum(map(len, steps)) == len(pairs):
            perm = tuple(sorted(steps[0]))
            args = raiser.args(frame, operation)
            return (
                frame.op("ppermute", args, out_of(operation), metadata(operation), axis_name=_name(names), perm=perm),
            )
    raise ProgramError("an exchange along no mesh axes")


@handles("stablehlo.partition_id")
def _partition_id(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    names = tuple(name for name, _ in _axes(raiser))
    index = frame.op("axis_index", (), _INDEX, axis_name=_name(names))
    return (frame.op("convert_element_type", (index,), out_of(operation)),)


@handles("stablehlo.remainder")
def _axis_index(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    """JAX lowers an index along one axis to the partition's number, divided, and the remainder of that."""
    number, size = raiser.args(frame, operation)
    stride, whole = "1", _op(frame, number)
    if whole is not None and whole.primitive == "div" and isinstance(whole.args[1], Lit):
        stride, whole = whole.args[1].value, _op(frame, whole.args[0])
    index = _op(frame, whole.args[0]) if whole is not None and whole.primitive == "convert_element_type" else None
    if index is None or index.primitive != "axis_index" or raiser.mesh is None or not isinstance(size, Lit):
        return _REMAINDER(raiser, frame, operation)
    axes = raiser.mesh.axes
    for k, (name, length) in enumerate(axes):
        if (str(prod(n for _, n in axes[k + 1 :])), str(length)) == (stride, size.value):
            found = frame.op("axis_index", (), _INDEX, axis_name=name)
            return (frame.op("convert_element_type", (found,), out_of(operation)),)
    return _REMAINDER(raiser, frame, operation)


def _op(frame: Frame, arg: Arg) -> Op | None:
    made = frame.made_by.get(arg) if isinstance(arg, int) else None
    return made if isinstance(made, Op) else None
