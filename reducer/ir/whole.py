"""Edits of a whole program: what goes in and out of it, one part of it alone, one dtype or name everywhere.

As in `edit`, the result is well-typed wherever the edit is possible, and not normalised.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import msgspec

from reducer.errors import ProgramError
from reducer.ir.dead_code import without_dead_code
from reducer.ir.edit import uses, zeros
from reducer.ir.equations import Arg, Block, Checkpoint, Equation, Fill, Grad, Lit, Name, Program, Scan, Var
from reducer.ir.policies import rename
from reducer.ir.scalars import convert_scalar
from reducer.ir.walk import Path, args_of, block_at, fresh, map_blocks, substitute, types_of, with_args


def keep_results(program: Program, kept: Sequence[int]) -> Program:
    """The program with only these results, in this order."""
    specs = program.result_specs
    block = program.block
    return msgspec.structs.replace(
        program,
        block=Block(block.params, block.eqns, tuple(block.results[i] for i in kept)),
        result_specs=tuple(specs[i] for i in kept) if specs else (),
    )


def with_result(program: Program, k: int, var: int) -> Program:
    """The program with another of its values, of whatever type, for result `k`."""
    results, specs = program.block.results, program.result_specs
    return msgspec.structs.replace(
        program,
        block=msgspec.structs.replace(program.block, results=(*results[:k], var, *results[k + 1 :])),
        result_specs=(*specs[:k], None, *specs[k + 1 :]) if specs else (),
    )


def drop_inputs(program: Program, dropped: Container[int]) -> Program:
    """The program without these inputs: their uses become another input of that type, or zeros.

    A gradient loses the dropped positions; one that loses all of them is no gradient any more.

    Raises:
        ProgramError: an input that is used has no stand-in.
    """
    block = program.block
    kept = [i for i in range(len(block.params)) if i not in dropped]
    used = uses(block)
    ids = fresh(block)
    fills: list[Equation] = []
    renamed: dict[int, Arg] = {}
    for i, var in enumerate(block.params):
        if i in kept or var.id not in used:
            continue
        other = next((block.params[k].id for k in kept if block.params[k].type == var.type), None)
        if other is None:
            renamed[var.id], more = zeros(var.type, ids)
            fills.extend(more)
        else:
            renamed[var.id] = other
    body = substitute(block, renamed)
    grad = program.gradient
    if grad is not None:
        argnums = tuple(kept.index(n) for n in grad.argnums if n in kept)
        grad = Grad(argnums, grad.with_value) if argnums else None
    return msgspec.structs.replace(
        program,
        block=Block(tuple(block.params[i] for i in kept), (*fills, *body.eqns), body.results),
        gradient=grad,
        inputs=tuple(program.inputs[i] for i in kept) if program.inputs else (),
    )


def isolate(program: Program, path: Path, i: int) -> Program:
    """The program that consists of one equation: what it uses becomes inputs, what it binds results.

    A gradient stays one, with respect to every inexact input.
    """
    block = block_at(program, path)
    types = types_of(block)
    eqn = block.eqns[i]
    used = tuple(dict.fromkeys(a for a in args_of(eqn) if isinstance(a, int)))
    params = tuple(Var(a, types[a]) for a in used)
    return _standalone(program, Block(params, (eqn,), tuple(var.id for var in eqn.outs)))


def isolate_value(program: Program, path: Path, var: int) -> Program:
    """The program that computes one value of one block from that block's parameters, without a gradient.

    Everything around the block goes, and what the value does not need.
    """
    block = block_at(program, path)
    block = without_dead_code(Block(block.params, block.eqns, (var,)))
    used = uses(block)
    block = Block(tuple(p for p in block.params if used[p.id]), block.eqns, block.results)
    return _standalone(msgspec.structs.replace(program, gradient=None), block)


def _standalone(program: Program, block: Block) -> Program:
    grad = program.gradient
    if grad is not None:
        argnums = tuple(n for n, var in enumerate(block.params) if var.type.inexact)
        grad = Grad(argnums, grad.with_value) if argnums else None
    return msgspec.structs.replace(program, block=block, gradient=grad, inputs=(), result_specs=())


def slice_to_constant(program: Program, i: int, k: int) -> Program:
    """Give x `k` of the scan at `i` as a constant: the input it is loses its leading axis.

    Raises:
        ProgramError: the x is no input, is sharded, or is used elsewhere too.
    """
    block = program.block
    eqn = block.eqns[i]
    assert isinstance(eqn, Scan)
    x = eqn.xs[k]
    position = next((p for p, var in enumerate(block.params) if var.id == x), None)
    if position is None or not isinstance(x, int) or uses(block)[x] != 1:
        raise ProgramError(f"x {k} is no input that only this scan uses")
    if program.inputs and program.inputs[position].spec:
        raise ProgramError(f"input {position} is sharded")
    n, m = len(eqn.consts), len(eqn.consts) + len(eqn.carry)
    inner = list(eqn.body.params)
    inner.insert(n, inner.pop(m + k))
    body = Block(tuple(inner), eqn.body.eqns, eqn.body.results)
    xs = eqn.xs[:k] + eqn.xs[k + 1 :]
    new = msgspec.structs.replace(eqn, consts=(*eqn.consts, x), xs=xs, body=body)
    params = tuple(Var(v.id, v.type.element) if v.id == x else v for v in block.params)
    eqns = (*block.eqns[:i], new, *block.eqns[i + 1 :])
    return msgspec.structs.replace(program, block=Block(params, eqns, block.results))


def _converted(value: Lit, dtype: str) -> Lit:
    new = convert_scalar(value, dtype)
    if new is None:
        raise ProgramError(f"{value.value} has no counterpart in {dtype}")
    return new


def with_dtype(program: Program, old: frozenset[str], new: str) -> Program:
    """The program with everything of the dtypes `old` made `new`: variables, scalars, constants.

    Raises:
        ProgramError: a scalar has no counterpart.
    """

    def variables(found: tuple[Var, ...]) -> tuple[Var, ...]:
        return tuple(Var(v.id, v.type.with_dtype(new)) if v.type.dtype in old else v for v in found)

    def arg(value: Arg) -> Arg:
        return _converted(value, new) if isinstance(value, Lit) and value.dtype in old else value

    def equation(eqn: Equation) -> Equation:
        if isinstance(eqn, Fill) and eqn.outs[0].type.dtype in old:
            value = _converted(Lit(eqn.outs[0].type.dtype, eqn.value), new).value
            eqn = msgspec.structs.replace(eqn, value=value)
        return msgspec.structs.replace(with_args(eqn, tuple(map(arg, args_of(eqn)))), outs=variables(eqn.outs))

    def edit(block: Block) -> Block:
        eqns = tuple(map(equation, block.eqns))
        return Block(variables(block.params), eqns, tuple(map(arg, block.results)))

    return map_blocks(program, edit)


def with_names(program: Program, renaming: dict[str, str]) -> Program:
    """The program with names replaced, in policies and where they are attached."""

    def edit(block: Block) -> Block:
        eqns = []
        for eqn in block.eqns:
            if isinstance(eqn, Name) and eqn.name in renaming:
                eqn = msgspec.structs.replace(eqn, name=renaming[eqn.name])
            elif isinstance(eqn, Checkpoint) and eqn.policy is not None:
                eqn = msgspec.structs.replace(eqn, policy=rename(eqn.policy, renaming))
            eqns.append(eqn)
        return Block(block.params, tuple(eqns), block.results)

    return map_blocks(program, edit)
