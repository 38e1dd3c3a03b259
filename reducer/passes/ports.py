"""Passes on what goes in and out: results, inputs, gradients, carries, stacked values, constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from reducer.errors import ProgramError
from reducer.ir.edit import BlockEdit, rewrite, uses
from reducer.ir.equations import Block, Grad, Program, Scan, While
from reducer.ir.order import size
from reducer.ir.unwrap import freeze_carry, stack_carry
from reducer.ir.walk import Path, bindings, equations
from reducer.ir.whole import drop_inputs, keep_results, slice_to_constant, with_result
from reducer.passes.base import Candidate, Edits
from reducer.passes.relevance import LARGE


def drop_results(program: Program) -> Edits[Program]:
    """Any set of results, with everything only they need."""
    n = len(program.block.results)

    def apply(positions: Sequence[int]) -> Program:
        kept = [k for k in range(n) if k not in positions]
        if not kept:
            raise ProgramError("a program without results computes nothing")
        return keep_results(program, kept)

    return Edits(n, apply)


def other_results(program: Program) -> Iterator[Candidate[Program]]:
    """One result replaced by another value of the program's block, of whatever type; for small programs only.

    A result may have any type, so what only turns a value into the type of the result can go.
    """
    if size(program) >= LARGE:
        return
    results = program.block.results
    for k in range(len(results)):
        for var in bindings(program.block):
            if var.id not in results:
                yield partial(with_result, program, k, var.id)


def drop_program_inputs(program: Program) -> Edits[Program]:
    """Any set of inputs; their uses become another input of that type, or zeros. Those without a use first."""
    used = uses(program.block)
    order = sorted(range(len(program.block.params)), key=lambda k: used[program.block.params[k].id] > 0)
    idle = sum(not used[var.id] for var in program.block.params)

    def apply(positions: Sequence[int]) -> Program:
        return drop_inputs(program, frozenset(order[k] for k in positions))

    return Edits(len(order), apply, (idle,) if 0 < idle < len(order) else ())


def simplify_gradient(program: Program) -> Iterator[Candidate[Program]]:
    """No gradient; one for one input, without the value or with it; one for one input fewer; without the value."""
    grad = program.gradient
    if grad is None:
        return
    choices: list[Grad | None] = [None]
    if len(grad.argnums) > 1:
        values = (False, True) if grad.with_value else (False,)
        choices += [Grad((n,), with_value) for with_value in values for n in grad.argnums]
    if len(grad.argnums) > 2:
        choices += [Grad(tuple(m for m in grad.argnums if m != n), grad.with_value) for n in grad.argnums]
    if grad.with_value:
        choices.append(Grad(grad.argnums, with_value=False))
    for choice in choices:
        yield partial(with_gradient, program, choice)


def slices_to_constants(program: Program) -> Iterator[Candidate[Program]]:
    """One x of an outermost scan given as a constant."""
    for i, eqn in enumerate(program.block.eqns):
        if isinstance(eqn, Scan):
            for k in range(len(eqn.xs)):
                yield partial(slice_to_constant, program, i, k)


def with_gradient(program: Program, gradient: Grad | None) -> Program:
    """The program differentiated otherwise, or not at all."""
    return msgspec.structs.replace(program, gradient=gradient)


def freeze_carries(program: Program) -> Edits[Program]:
    """Any set of carries turned into constants: the update goes with everything only it needs."""
    places = [
        (path, i, k)
        for path, i, eqn in equations(program)
        if isinstance(eqn, Scan | While)
        for k in range(len(eqn.carry))
    ]

    def editor(carries: list[tuple[int, int]]) -> BlockEdit:
        def edit(block: Block) -> Block:
            # From the last one down, so that the numbers of the others stay right.
            for i, k in sorted(carries, reverse=True):
                block = freeze_carry(block, i, k)
            return block

        return edit

    def apply(positions: Sequence[int]) -> Program:
        chosen: dict[Path, list[tuple[int, int]]] = {}
        for p in positions:
            path, i, k = places[p]
            chosen.setdefault(path, []).append((i, k))
        return rewrite(program, {path: editor(carries) for path, carries in chosen.items()})

    return Edits(len(places), apply)


def stack_carries(program: Program) -> Iterator[Candidate[Program]]:
    """One carry of an outermost scan turned into zeros, and its last value into all of them, stacked.

    The values of the turns stay results then, but no longer depend on each other.
    """
    for i, eqn in enumerate(program.block.eqns):
        if isinstance(eqn, Scan):
            for k in range(len(eqn.carry)):
                yield partial(rewrite, program, {(): partial(stack_carry, i=i, k=k)})
