"""Passes that replace a value: by zeros, or by an earlier value of its type; all that only feeds it goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from reducer.ir.edit import BlockEdit, replace_value, rewrite, uses, with_equation
from reducer.ir.equations import Block, Fill, Lit, Program
from reducer.ir.walk import Path, arg_type, args_of, bindings, blocks, children, types_of, with_args
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
    """One value replaced by an earlier one of its type, the earliest first; of two parameters either by the other."""
    for place in blocks(program):
        types = types_of(place.block)
        order = list(types)
        n = len(place.block.params)
        for var in _cuttable(place.block):
            at = order.index(var)
            for other in order[: n if at < n else at]:
                if other != var and types[other] == types[var]:
                    yield partial(replaced, program, place.path, var, other)


def fill_arguments(program: Program) -> Iterator[Candidate[Program]]:
    """One floating scalar that a region is given replaced by an earlier value of its type, the earliest first.

    What goes into a loop or a checkpoint as a constant may be what keeps a gradient from reaching further out.
    """
    for place in blocks(program):
        types = types_of(place.block)
        bound = [var.id for var in place.block.params]
        for i, eqn in enumerate(place.block.eqns):
            args = args_of(eqn)
            for k, arg in enumerate(args):
                scalar = isinstance(arg, Lit) and arg_type(arg, types).inexact and children(eqn)
                for other in bound if scalar else ():
                    if types[other] == arg_type(arg, types):
                        new = with_args(eqn, (*args[:k], other, *args[k + 1 :]))
                        yield partial(with_equation, program, place.path, i, new)
            bound += [var.id for var in eqn.outs]
