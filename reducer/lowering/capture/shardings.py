"""Shardings: partition specs over the program's one mesh, without devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reducer.errors import ProgramError
from reducer.ir.equations import Arg, ShardingConstraint, Spec
from reducer.ir.types import Type

if TYPE_CHECKING:
    from reducer.lowering.capture.convert import Converter
    from reducer.lowering.capture.frame import Frame


def spec_of(partition: Any) -> Spec:
    """A `PartitionSpec` as data, trailing None left out.

    Raises:
        ProgramError: it holds unconstrained dimensions or other markers.
    """
    out: list[str | tuple[str, ...] | None] = []
    for axes in tuple(partition):
        if axes is None or isinstance(axes, str):
            out.append(axes)
        elif isinstance(axes, tuple) and all(isinstance(a, str) for a in axes):
            out.append(axes[0] if len(axes) == 1 else axes or None)
        else:
            raise ProgramError(f"the partition spec {partition} has an entry that is no mesh axis: {axes!r}")
    while out and out[-1] is None:
        out.pop()
    return tuple(out)


def named_spec(converter: Converter, sharding: Any) -> Spec | None:
    """The spec of a `NamedSharding` over several devices, whose mesh becomes the program's; None for anything else."""
    mesh = getattr(sharding, "mesh", None)
    if mesh is None or mesh.size <= 1:
        return None
    converter.use_mesh(tuple(mesh.shape.items()))
    return spec_of(sharding.spec)


def constrain(frame: Frame, value: Arg, type_: Type, spec: Spec) -> Arg:
    """`with_sharding_constraint`."""
    out = frame.var(type_)
    frame.add(ShardingConstraint(outs=(out,), arg=value, spec=spec))
    return out.id
