"""Passes that bring a program to the shape a person would write: the smallest layer, checkpoints outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import msgspec

from reducer.errors import ProgramError
from reducer.ir.edit import rewrite, zeros
from reducer.ir.equations import Arg, Block, Call, Checkpoint, Equation, Fill, Grad, Name, Op, Program, Scan, Var
from reducer.ir.nest import swap, value_to_input
from reducer.ir.order import size
from reducer.ir.types import Type
from reducer.ir.walk import Path, arg_type, args_of, blocks, equations, fresh, types_of, with_args
from reducer.passes.base import Candidate
from reducer.passes.relevance import LARGE, Relevance
from reducer.passes.simplify import CANONICAL


def plain_layers(program: Program) -> Iterator[Candidate[Program]]:
    """What a block with an offloaded name computes, replaced by `sin(name(x))` of one of its parameters.

    Or by the first of its operations that can be `f(name(x), w)` with another parameter. All such blocks at once, then
    one at a time; with the gradient as it is, and with respect to all inputs, since the layer no longer depends on
    the same weights.
    """
    relevance = Relevance(program)
    grad = program.gradient
    inexact = tuple(k for k, var in enumerate(program.block.params) if var.type.inexact)
    found: list[tuple[Path, str]] = []
    for place in blocks(program):
        names = [e.name for e in place.block.eqns if isinstance(e, Name) and relevance.of(e)]
        if names and place.path:
            found.append((place.path, names[0]))
    choices = [found] if len(found) > 1 else []
    for chosen in (*choices, *([one] for one in found)):
        for layer in (_plain, _weighted):
            edits = {path: partial(_layer, name=name, layer=layer) for path, name in chosen}
            yield partial(rewrite, program, edits)
            if grad is not None and grad.argnums != inexact:
                yield partial(rewrite, msgspec.structs.replace(program, gradient=Grad(inexact, grad.with_value)), edits)


#: Makes the operation of a layer: (block, x, variable that is `name(x)`, variable to bind).
_Operation: TypeAlias = Callable[[Block, Var, Var, Var], Equation]


def _plain(block: Block, x: Var, named: Var, out: Var) -> Equation:  # noqa: ARG001 - every operation is given these
    return Op(outs=(out,), primitive=CANONICAL, args=(named.id,))


def _weighted(block: Block, x: Var, named: Var, out: Var) -> Equation:
    """The first operation (or call) that takes a value like x and another one, for which there is a parameter."""
    types = types_of(block)
    for eqn in block.eqns:
        args = args_of(eqn)
        if not isinstance(eqn, Op | Call) or len(args) != 2 or [v.type for v in eqn.outs] != [x.type]:
            continue
        for k, arg in enumerate(args):
            other = args[1 - k]
            if arg_type(arg, types) == x.type and isinstance(other, int):
                weights = [p.id for p in block.params if p.type == types[other] and p.id != x.id]
                if weights:
                    weight = other if other in weights else weights[0]
                    new = with_args(eqn, (named.id, weight) if k == 0 else (weight, named.id))
                    return msgspec.structs.replace(new, outs=(out,))
    raise ProgramError("no operation takes x and a weight")


def _layer(block: Block, name: str, layer: _Operation) -> Block:
    types = types_of(block)
    wanted = [arg_type(r, types) for r in block.results]
    candidates = [p for p in block.params if p.type.inexact and not p.type.on_host]
    x = next((p for p in candidates if p.type in wanted), None)
    if x is None:
        return block
    ids = fresh(block)
    named, out = Var(next(ids), x.type), Var(next(ids), x.type)
    eqns: list[Equation] = [Name(outs=(named,), arg=x.id, name=name), layer(block, x, named, out)]
    results: list[Arg] = []
    for type_ in wanted:
        if type_ == x.type:
            results.append(out.id)
        else:
            results.append(_other(type_, block.params, ids, eqns))
    return Block(block.params, tuple(eqns), tuple(results))


def _other(type_: Type, params: tuple[Var, ...], ids: Iterator[int], eqns: list[Equation]) -> Arg:
    same = next((p.id for p in params if p.type == type_), None)
    if same is not None:
        return same
    value, fills = zeros(type_, ids)
    eqns.extend(fills)
    return value


def swap_regions(program: Program) -> Iterator[Candidate[Program]]:
    """A scan around a checkpoint exchanged with it, or the other way round: whichever is smaller is kept.

    A checkpoint inside a scan often prevents CSE where the one outside did not, and the other way round, so the
    exchange is tried with its flag at the default first.
    """
    for path, i, eqn in equations(program):
        if not isinstance(eqn, Scan | Checkpoint) or len(eqn.body.eqns) != 1:
            continue
        pair = (eqn, eqn.body.eqns[0])
        if any(isinstance(one, Checkpoint) and not one.prevent_cse for one in pair):
            yield partial(rewrite, program, {path: partial(_swap_and_reset, i=i)})
        yield partial(rewrite, program, {path: partial(swap, i=i)})
        yield partial(_further, program, path, i)


def _further(program: Program, path: Path, i: int) -> Program:
    """The pair exchanged, and what has come inside exchanged with what is in it: two steps of one region."""
    program = rewrite(program, {path: partial(swap, i=i)})
    return rewrite(program, {(*path, (i, "body")): partial(swap, i=0)})


def _swap_and_reset(block: Block, i: int) -> Block:
    block = swap(block, i)

    def reset(eqn: Equation) -> Equation:
        return msgspec.structs.replace(eqn, prevent_cse=True) if isinstance(eqn, Checkpoint) else eqn

    outer = reset(block.eqns[i])
    if isinstance(outer, Scan):
        body = Block(outer.body.params, tuple(map(reset, outer.body.eqns)), outer.body.results)
        outer = msgspec.structs.replace(outer, body=body)
    return Block(block.params, (*block.eqns[:i], outer, *block.eqns[i + 1 :]), block.results)


def inputs_for_values(program: Program) -> Iterator[Candidate[Program]]:
    """One value replaced by a new input, with or without its gradient; all that only feeds it goes.

    For small programs only: in large ones deleting gets further for less.
    """
    if size(program) >= LARGE:
        return
    for place in blocks(program):
        for eqn in reversed(place.block.eqns):
            if isinstance(eqn, Fill | Name):
                continue
            for var in eqn.outs:
                yield partial(value_to_input, program, place.path, var.id)
                if program.gradient is not None and var.type.inexact:
                    yield partial(value_to_input, program, place.path, var.id, differentiate=True)
