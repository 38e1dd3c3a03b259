"""Coupled edits: a step that takes something away together with one that gives the rest what it needs then.

A failure can need *some* input, a second turn, or a certain dtype, and find it in a part of the program that is there
for no other reason. Taken away alone the failure goes with it. Here each structural step is tried with each of a few
changes of the whole program; the step must gain more than the change costs, which the order decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import msgspec

from reducer.errors import ProgramError
from reducer.ir.check import check
from reducer.ir.dims import dimensions, resized, without_axis
from reducer.ir.edit import delete_all, rewrite, uses
from reducer.ir.equations import Arg, Block, Equation, Fill, Grad, Lit, Name, Program, Scan, Var, While
from reducer.ir.nest import value_to_input
from reducer.ir.normal import normalise
from reducer.ir.order import size
from reducer.ir.types import DTYPES, Type
from reducer.ir.unwrap import freeze_carry, main_fields, unwrap
from reducer.ir.walk import args_of, bindings, blocks, children, equations, fresh, map_blocks, with_args
from reducer.ir.whole import drop_inputs, keep_results, with_dtype
from reducer.passes.base import Candidate
from reducer.passes.layers import plain_layers
from reducer.passes.tools import changed

#: Above this many equations there are too many pairs.
LARGEST: Final = 9


def coupled_edits(program: Program) -> Iterator[Candidate[Program]]:
    """Every structural step with every change that may make up for it; for small programs only."""
    if size(program) > LARGEST:
        return
    steps = list(_steps(program))
    for change in (inputs_for_constants, with_gradient, one_turn_more, one_element_more, other_floats, ordinary):
        for step in steps:
            yield partial(_both, step, change)
    for step in _small_steps(program):
        yield partial(_both, step, stacks)


def _both(step: Candidate[Program], change: Callable[[Program], Program]) -> Program:
    # In normal form first: what the step has left without use is not to be changed. And a change expects a program.
    program = normalise(step())
    check(program)
    program = change(program)
    used = uses(program.block)
    return drop_inputs(program, {k for k, var in enumerate(program.block.params) if not used[var.id]})


def _steps(program: Program) -> Iterator[Candidate[Program]]:
    """Steps that take something away."""
    yield from plain_layers(program)
    for path, i, eqn in equations(program):
        if not isinstance(eqn, Fill):
            yield partial(delete_all, program, {path: {i}})
        for field in main_fields(eqn):
            yield partial(rewrite, program, {path: partial(_unwrapped, i=i, field=field)})
        if isinstance(eqn, Scan | While):
            for k in range(len(eqn.carry)):
                yield partial(rewrite, program, {path: partial(freeze_carry, i=i, k=k)})
    for k in range(len(program.block.params)):
        yield partial(drop_inputs, program, {k})
    n = len(program.block.results)
    for k in range(n if n > 1 else 0):
        yield partial(keep_results, program, [j for j in range(n) if j != k])
    for d in dimensions(program):
        if d.size == 1:
            yield partial(without_axis, program, d)


def _small_steps(program: Program) -> Iterator[Candidate[Program]]:
    """Steps that take little away: what a value is computed by, a loop unrolled by the compiler."""
    for path, i, eqn in equations(program):
        if isinstance(eqn, Scan) and eqn.unroll != 1:
            yield partial(changed, program, path, i, unroll=1)
        if not isinstance(eqn, Fill | Name):
            for var in eqn.outs:
                yield partial(value_to_input, program, path, var.id, differentiate=var.type.inexact)


def _unwrapped(block: Block, i: int, field: str) -> Block:
    return unwrap(block, {i: field})


def inputs_for_constants(program: Program) -> Program:
    """New inputs, differentiated if anything is, for all floating constants that regions are given from outside."""
    program = map_blocks(program, _filled)
    made = [
        (place.path, eqn.outs[0].id)
        for place in blocks(program)
        for given in [{arg for eqn in place.block.eqns if children(eqn) for arg in args_of(eqn)}]
        for eqn in place.block.eqns
        if isinstance(eqn, Fill) and eqn.outs[0].id in given and eqn.outs[0].type.inexact
    ]
    if not made:
        raise ProgramError("no region is given a constant")
    for path, var in made:
        program = value_to_input(program, path, var, differentiate=True)
    return program


def _filled(block: Block) -> Block:
    """The block with a variable in the place of each floating scalar that a region is given."""
    ids = fresh(block)
    eqns: list[Equation] = []
    for eqn in block.eqns:
        args: list[Arg] = []
        for arg in args_of(eqn):
            if children(eqn) and isinstance(arg, Lit) and DTYPES[arg.dtype][2] == "f":
                var = Var(next(ids), Type(arg.dtype))
                eqns.append(Fill(outs=(var,), value=arg.value))
                arg = var.id
            args.append(arg)
        eqns.append(with_args(eqn, tuple(args)))
    return Block(block.params, tuple(eqns), block.results)


def with_gradient(program: Program) -> Program:
    """Differentiated with respect to everything that can be."""
    inexact = tuple(n for n, var in enumerate(program.block.params) if var.type.inexact)
    if program.gradient is not None or not inexact:
        raise ProgramError("it is differentiated, or cannot be")
    return msgspec.structs.replace(program, gradient=Grad(inexact, with_value=False))


def one_turn_more(program: Program) -> Program:
    """Every loop one turn longer."""
    return resized(program, [(d, d.size + 1) for d in dimensions(program) if d.is_length and not d.pinned])


def one_element_more(program: Program) -> Program:
    """Every dimension that is no length one larger."""
    return resized(program, [(d, d.size + 1) for d in dimensions(program) if not d.is_length and not d.pinned])


def stacks(program: Program) -> Program:
    """Every loop two turns, and every floating value a stack of stacks of it: where sizes are what remains of loops."""
    program = resized(program, [(d, 2) for d in dimensions(program) if d.is_length and not d.pinned])

    def larger(variables: tuple[Var, ...]) -> tuple[Var, ...]:
        return tuple(
            Var(v.id, v.type.with_shape((*v.type.shape, 2, 2, 1))) if DTYPES[v.type.dtype][2] == "f" else v
            for v in variables
        )

    def edit(block: Block) -> Block:
        eqns = tuple(msgspec.structs.replace(eqn, outs=larger(eqn.outs)) for eqn in block.eqns)
        return Block(larger(block.params), eqns, block.results)

    return map_blocks(program, edit)


def other_floats(program: Program) -> Program:
    """All floats float32; bfloat16 where they are."""
    floats = {v.type.dtype for place in blocks(program) for v in bindings(place.block)}
    floats = {dtype for dtype in floats if DTYPES[dtype][2] == "f"}
    return with_dtype(program, frozenset(floats), "bfloat16" if floats == {"float32"} else "float32")


def ordinary(program: Program) -> Program:
    """All floats float32, and every loop three turns: what people write first."""
    floats = {v.type.dtype for place in blocks(program) for v in bindings(place.block)}
    floats = {dtype for dtype in floats if DTYPES[dtype][2] == "f"}
    program = with_dtype(program, frozenset(floats), "float32")
    return resized(program, [(d, 3) for d in dimensions(program) if d.is_length and not d.pinned])
