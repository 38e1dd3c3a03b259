"""What stands around a function and not in it: shardings, memories and donation of inputs and results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reducer.ir.equations import Entry, Spec
from reducer.lowering.capture import versions
from reducer.lowering.capture.convert import Converter
from reducer.lowering.capture.shardings import named_spec


@dataclass(frozen=True)
class Boundary:
    """How the inputs enter and the results leave; results at these positions are moved to host memory at the end."""

    entries: tuple[Entry, ...]
    specs: tuple[Spec | None, ...] = ()
    results_to_host: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Call:
    """The one jitted call a function consists of: its variables, with what `jit` was told about them."""

    inputs: dict[Any, tuple[Any, bool]]
    results: dict[Any, Any]


def _call(jaxpr: Any) -> _Call | None:
    if len(jaxpr.eqns) != 1 or jaxpr.eqns[0].primitive.name not in versions.CALLS:
        return None
    (eqn,) = jaxpr.eqns
    ins = eqn.params.get("in_shardings") or (None,) * len(eqn.invars)
    donated = eqn.params.get("donated_invars") or (False,) * len(eqn.invars)
    outs = eqn.params.get("out_shardings") or (None,) * len(eqn.outvars)
    inputs = {
        v: (sharding, bool(given))
        for v, sharding, given in zip(eqn.invars, ins, donated, strict=True)
        if not versions.is_literal(v)
    }
    return _Call(inputs, dict(zip(eqn.outvars, outs, strict=True)))


def _host(sharding: Any) -> bool:
    return "host" in str(getattr(sharding, "memory_kind", None))


def inputs_on_host(jaxpr: Any, leaves: Sequence[Any]) -> list[Any] | None:
    """The arguments again, with abstract host values for those that lie on the host but are not typed so.

    None if there are none: the types of the jaxpr are right as they are. JAX types an input by a `NamedSharding` of
    its argument only, not by what `jit` was told, nor by the one device an array lies on.
    """
    call = _call(jaxpr)
    out = list(leaves)
    for i, v in enumerate(jaxpr.invars):
        told, _ = call.inputs.get(v, (None, False)) if call else (None, False)
        lies = getattr(leaves[i], "sharding", None)
        if (_host(told) or _host(lies)) and not versions.on_host(v.aval):
            out[i] = versions.abstract(v.aval.shape, v.aval.dtype, host=True, like=told if _host(told) else lies)
    return None if all(a is b for a, b in zip(out, leaves, strict=True)) else out


def boundary(converter: Converter, jaxpr: Any, values: Sequence[Any]) -> Boundary:
    """The shardings and donation of a function that is one jitted call, or else the shardings of its arguments.

    Raises:
        ProgramError: shardings over two meshes.
    """
    own = [named_spec(converter, getattr(value, "sharding", None)) for value in values]
    call = _call(jaxpr)
    if call is None:
        return Boundary(tuple(Entry(spec=spec) for spec in own))
    entries = []
    for v, spec in zip(jaxpr.invars, own, strict=True):
        sharding, donated = call.inputs.get(v, (None, False))
        given = named_spec(converter, sharding)
        entries.append(Entry(spec=spec if given is None else given, donated=donated))
    shardings = [None if versions.is_literal(v) else call.results.get(v) for v in jaxpr.outvars]
    moved = [
        i
        for i, (v, sharding) in enumerate(zip(jaxpr.outvars, shardings, strict=True))
        if _host(sharding) and not versions.on_host(v.aval)
    ]
    return Boundary(tuple(entries), tuple(named_spec(converter, s) for s in shardings), tuple(moved))
