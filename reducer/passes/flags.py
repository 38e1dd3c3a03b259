"""Passes that put flags, metadata, shardings and the mesh back to their defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import msgspec

from reducer.ir.equations import (
    Call,
    Checkpoint,
    Entry,
    Equation,
    Mesh,
    Op,
    Program,
    Scan,
    ShardMap,
    Spec,
)
from reducer.ir.walk import Path, equations
from reducer.passes.base import Candidate, Edits
from reducer.passes.tools import changed

#: (path, number of the equation, fields to set).
_Change: TypeAlias = tuple[Path, int, dict[str, object]]


def _flag_changes(eqn: Equation) -> Iterator[dict[str, object]]:
    for k in range(len(eqn.metadata)):
        yield {"metadata": eqn.metadata[:k] + eqn.metadata[k + 1 :]}
    match eqn:
        case Scan(reverse=reverse, unroll=unroll):
            if reverse:
                yield {"reverse": False}
            if unroll != 1:
                yield {"unroll": 1}
        case Checkpoint(prevent_cse=prevent_cse, differentiated=differentiated):
            if not prevent_cse:
                yield {"prevent_cse": True}
            if differentiated:
                yield {"differentiated": False}
        case Call(name=name) if name != "inner":
            yield {"name": "inner"}
        case ShardMap(check_vma=True):
            yield {"check_vma": False}
        case _:
            pass


def reset_flags(program: Program) -> Edits[Program]:
    """Any set of flags back to their defaults, then any metadata dropped."""
    places: list[_Change] = [(path, i, fields) for path, i, eqn in equations(program) for fields in _flag_changes(eqn)]
    places.sort(key=lambda place: "metadata" in place[2])
    flags = sum("metadata" not in fields for _, _, fields in places)

    def apply(positions: Sequence[int]) -> Program:
        # Two entries of one equation's metadata: the later change would undo the earlier one, so merge by hand.
        done = program
        for k in positions:
            path, i, fields = places[k]
            if "metadata" in fields:
                fields = {"metadata": _remaining(places, positions, path, i, program)}
            done = changed(done, path, i, **fields)
        return done

    return Edits(len(places), apply, (flags,) if 0 < flags < len(places) else ())


def _remaining(
    places: list[_Change], positions: Sequence[int], path: Path, i: int, program: Program
) -> tuple[tuple[str, str], ...]:
    kept = None
    for k in positions:
        other_path, j, fields = places[k]
        if (other_path, j) == (path, i) and "metadata" in fields:
            entries = fields["metadata"]
            assert isinstance(entries, tuple)
            kept = entries if kept is None else tuple(entry for entry in kept if entry in entries)
    assert kept is not None, program
    return kept


#: Attributes that have a default which JAX fills in, and so may go.
_OPTIONAL = frozenset(
    {"precision", "preferred_element_type", "mode", "unique_indices", "indices_are_sorted", "reverse"}
)


def drop_attributes(program: Program) -> Iterator[Candidate[Program]]:
    """One optional attribute of one operation dropped."""
    for path, i, eqn in equations(program):
        if isinstance(eqn, Op):
            for k, (name, _) in enumerate(eqn.attributes):
                if name in _OPTIONAL:
                    rest = eqn.attributes[:k] + eqn.attributes[k + 1 :]
                    yield partial(changed, program, path, i, attributes=rest)


def simplify_entries(program: Program) -> Iterator[Candidate[Program]]:
    """Inputs not donated and without a spec; all at once, then one by one. Results likewise."""
    replace: Callable[..., Program] = msgspec.structs.replace
    if program.inputs:
        yield lambda: replace(program, inputs=())
        yield lambda: replace(program, inputs=tuple(Entry(e.spec) for e in program.inputs))
        for k, entry in enumerate(program.inputs):
            for new in dict.fromkeys((Entry(), Entry(entry.spec), Entry((), entry.donated))):
                if new != entry:
                    inputs = (*program.inputs[:k], new, *program.inputs[k + 1 :])
                    yield partial(replace, program, inputs=inputs)
    if program.result_specs:
        yield lambda: replace(program, result_specs=())
        for k, spec in enumerate(program.result_specs):
            specs: tuple[Spec | None, ...] = (*program.result_specs[:k], None, *program.result_specs[k + 1 :])
            if spec is not None:
                yield partial(replace, program, result_specs=specs)


def simplify_mesh(program: Program) -> Iterator[Candidate[Program]]:
    """No mesh; a mesh without one of its axes; an axis of fewer devices."""
    mesh = program.mesh
    if mesh is None:
        return
    replace: Callable[..., Program] = msgspec.structs.replace
    bare = replace(program, inputs=(), result_specs=())
    yield lambda: replace(bare, mesh=None)
    for k, (name, n) in enumerate(mesh.axes):
        rest = mesh.axes[:k] + mesh.axes[k + 1 :]
        if rest:
            yield partial(replace, program, mesh=Mesh(rest))
            yield partial(replace, bare, mesh=Mesh(rest))
        for smaller in dict.fromkeys((1, n // 2)):
            if 1 <= smaller < n:
                axes = (*mesh.axes[:k], (name, smaller), *mesh.axes[k + 1 :])
                yield partial(replace, program, mesh=Mesh(axes))
