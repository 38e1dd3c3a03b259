"""Passes that replace a value: by zeros, or by an earlier value of its type; all that only feeds it goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from reducer.ir.edit import BlockEdit, replace_value, rewrite, uses
from reducer.ir.equations import Block, Fill, Program
from reducer.ir.walk import Path, bindings, blocks, types_of
from reducer.passes.base import Candidate, Edits
from reducer.passes.tools import replaced


def _cuttable(block: Block) -> list[int]:
    """Used variables of a block that are not zeros already, last ones first."""
    counts = uses(block)
    constants = {eqn.outs[0].id for eqn in block.eqns if isinstance(eqn, Fill)}
    return [var.id for var in reversed(list(bindings(block))) if counts[var.id] and var.id not in constants]


def cut_values(program: Program) -> Edits[Program]:
    """Any set of values replaced by zeros."""
    places = [(place.path, var) for place in blocks(program) for var in _cuttable(place.block)]

    def editor(chosen: list[int]) -> BlockEdit:
        def edit(block: Block) -> Block:
            for var in chosen:
                block = replace_value(block, var, None)
            return block

        return edit

    def apply(positions: Sequence[int]) -> Program:
        chosen: dict[Path, list[int]] = {}
        for k in positions:
            path, var = places[k]
            chosen.setdefault(path, []).append(var)
        return rewrite(program, {path: editor(values) for path, values in chosen.items()})

    return Edits(len(places), apply)


def reuse_values(program: Program) -> Iterator[Candidate[Program]]:
    """One value replaced by an earlier one of its type, the earliest first."""
    for place in blocks(program):
        types = types_of(place.block)
        order = list(types)
        for var in _cuttable(place.block):
            for other in order[: order.index(var)]:
                if types[other] == types[var]:
                    yield partial(replaced, program, place.path, var, other)
