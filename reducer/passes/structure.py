"""Passes that take whole parts of a program away: one region kept, equations deleted, regions unwrapped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from reducer.ir.edit import BlockEdit, delete_all, rewrite
from reducer.ir.equations import Cond, Equation, Fill, Program
from reducer.ir.normal import normalise
from reducer.ir.order import size
from reducer.ir.skeleton import skeleton
from reducer.ir.types import Type
from reducer.ir.unwrap import main_fields, unwrap
from reducer.ir.walk import Path, arg_type, args_of, blocks, children, equations, types_of
from reducer.ir.whole import isolate, isolate_value
from reducer.passes.base import Candidate, Edits
from reducer.passes.relevance import LARGE, Relevance
from reducer.passes.tools import changed

#: Most candidates of `keep_one`: what a guess may cost, however large the program.
GUESSES = 24


def keep_one(program: Program) -> Iterator[Candidate[Program]]:
    """The program that is one region alone, the smallest first; for large programs only.

    Regions that place something in host memory, at most half as large as the program; of those with the same skeleton
    (the layers of a model are alike) one, since they would end alike.
    """
    total = size(program)
    if total < LARGE:
        return
    relevance = Relevance(program)
    regions = [(path, i) for path, i, eqn in equations(program) if children(eqn) and relevance.of(eqn)]
    alone = [(isolate(program, path, i), path, i) for path, i in regions]
    alone = [one for one in alone if 2 * size(one[0]) <= total]
    seen: set[str] = set()
    for small, path, i in sorted(alone, key=lambda one: size(one[0])):
        kind = skeleton(normalise(small))
        if kind not in seen:
            seen.add(kind)
            yield partial(isolate, program, path, i)
            if len(seen) == GUESSES:
                return


def host_values(program: Program) -> Iterator[Candidate[Program]]:
    """The program that computes one value in host memory alone, the smallest first.

    What a loop or a gradient does with such a value is often only one of several ways to make it matter. Whether the
    gradient is needed is found out first: where it is, nothing alone will do. Of values computed alike (by the
    skeleton) one is tried.
    """
    values = [
        (place.path, var.id)
        for place in blocks(program)
        for eqn in place.block.eqns
        for var in eqn.outs
        if var.type.on_host
    ]
    if program.gradient is not None:
        if values:
            yield lambda: msgspec.structs.replace(program, gradient=None)
        return
    alone = [(isolate_value(program, path, var), path, var) for path, var in values]
    seen: set[str] = set()
    for small, path, var in sorted(alone, key=lambda one: size(one[0])):
        kind = skeleton(normalise(small))
        if kind not in seen:
            seen.add(kind)
            yield partial(isolate_value, program, path, var)
            if len(seen) == GUESSES:
                return


def delete_equations(program: Program) -> Edits[Program]:
    """Any set of equations, at any depth, users before what they use.

    First what has nothing to do with relevant equations, then what only hands their results on and has an argument
    of its own type to be replaced by, then what hands them on otherwise, last what is relevant itself.
    """
    relevance = Relevance(program)
    fed = {place.path: relevance.fed(place.block) for place in blocks(program)}
    places: list[tuple[int, int, Path, int]] = []
    for place in blocks(program):
        types = types_of(place.block)
        for i, eqn in enumerate(place.block.eqns):
            if not isinstance(eqn, Fill):
                rank = _rank(eqn, types, fed[place.path], relevant=relevance.of(eqn))
                places.append((rank, -len(places), place.path, i))
    places.sort(key=lambda place: place[:2])

    def apply(positions: Sequence[int]) -> Program:
        doomed: dict[Path, set[int]] = {}
        for k in positions:
            _, _, path, i = places[k]
            doomed.setdefault(path, set()).add(i)
        return delete_all(program, doomed, fed)

    ranks = [rank for rank, *_ in places]
    return Edits(len(places), apply, tuple(k for k in range(1, len(ranks)) if ranks[k] != ranks[k - 1]))


def _rank(eqn: Equation, types: dict[int, Type], fed: frozenset[int], *, relevant: bool) -> int:
    if relevant:
        return 3
    args = [a for a in args_of(eqn) if a in fed]
    if not args:
        return 0
    return 1 if all(any(arg_type(a, types) == v.type for a in args) for v in eqn.outs) else 2


def unwrap_regions(program: Program) -> Edits[Program]:
    """Any set of regions replaced by what is in them; what looks irrelevant first, outer ones first."""
    relevance = Relevance(program)
    places: list[tuple[bool, Path, int, str]] = []
    for path, i, eqn in equations(program):
        inner = dict(children(eqn))
        places += [(relevance.inside(inner[f]) or relevance.of(eqn), path, i, f) for f in main_fields(eqn)]
    order = [place[1:] for place in sorted(places, key=lambda place: place[0])]

    def editor(fields: dict[int, str]) -> BlockEdit:
        return lambda block: unwrap(block, fields)

    def apply(positions: Sequence[int]) -> Program:
        chosen: dict[Path, dict[int, str]] = {}
        for k in positions:
            path, i, field = order[k]
            # Of two branches of one cond the first chosen is kept.
            chosen.setdefault(path, {}).setdefault(i, field)
        return rewrite(program, {path: editor(fields) for path, fields in chosen.items()})

    return Edits(len(order), apply)


def drop_branches(program: Program) -> Iterator[Candidate[Program]]:
    """A cond with one branch fewer."""
    for path, i, eqn in equations(program):
        if isinstance(eqn, Cond) and len(eqn.branches) > 1:
            for k in range(len(eqn.branches)):
                rest = eqn.branches[:k] + eqn.branches[k + 1 :]
                yield partial(changed, program, path, i, branches=rest)


__all__ = ["delete_equations", "drop_branches", "host_values", "keep_one", "unwrap_regions"]
