"""Edits of regions: what is in one put in its place, a carry of a loop made a constant.

As in `edit`: well-typed results, positions of the given block, nothing normalised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from reducer.errors import ProgramError
from reducer.ir.edit import replace_value, stand_in, zeros
from reducer.ir.equations import (
    Arg,
    Block,
    Call,
    Checkpoint,
    Cond,
    CustomJvp,
    CustomVjp,
    Equation,
    Scan,
    ShardMap,
    Var,
    While,
)
from reducer.ir.types import Type
from reducer.ir.walk import arg_type, args_of, children, fresh, inlined, substitute, types_of, with_args


def unwrap(block: Block, chosen: Mapping[int, str]) -> Block:
    """Replace regions by what is in them: the equation at each position by its block of that field.

    A scan becomes one turn of its body: an x's slice becomes an earlier value of its type or zeros, and a stacked y
    an earlier value or zeros too. A while loop becomes one turn likewise; a custom rule its primal.

    Raises:
        ProgramError: types do not allow it (a shard_map whose body has other shapes), or zeros do not exist.
    """
    types = types_of(block)
    ids = fresh(block)
    earlier = [var.id for var in block.params]
    renamed: dict[int, Arg] = {}
    eqns: list[Equation] = []

    def sub(arg: Arg) -> Arg:
        return renamed.get(arg, arg) if isinstance(arg, int) else arg

    def value(type_: Type) -> Arg:
        new = stand_in(type_, (), types, earlier)
        if new is None:
            new, fills = zeros(type_, ids)
            add(fills)
        return new

    def add(more: Sequence[Equation]) -> None:
        for new in more:
            eqns.append(new)
            for var in new.outs:
                types[var.id] = var.type
                earlier.append(var.id)

    for i, eqn in enumerate(block.eqns):
        eqn = with_args(eqn, tuple(map(sub, args_of(eqn))))
        if i not in chosen:
            add((eqn,))
            continue
        body = dict(children(eqn))[chosen[i]]
        inner, results = inlined(body, _arguments(eqn, body, value), ids)
        add(inner)
        for var, result in zip(eqn.outs, results, strict=True):
            same = arg_type(result, types) == var.type
            renamed[var.id] = result if same else value(var.type)
    return Block(block.params, tuple(eqns), tuple(map(sub, block.results)))


def _arguments(eqn: Equation, body: Block, value: Callable[[Type], Arg]) -> tuple[Arg, ...]:
    match eqn:
        case Scan(consts=consts, carry=carry):
            n = len(consts) + len(carry)
            return (*consts, *carry, *(value(p.type) for p in body.params[n:]))
        case While(body_consts=consts, carry=carry):
            return consts + carry
        case Cond(args=args) | Checkpoint(args=args) | Call(args=args) | CustomVjp(args=args) | CustomJvp(args=args):
            return args
        case ShardMap(args=args):
            return tuple(value(p.type) for p in body.params) if len(args) != len(body.params) else args
        case _:
            raise ProgramError(f"{type(eqn).__name__} has no body to unwrap")


def main_fields(eqn: Equation) -> tuple[str, ...]:
    """Fields of the blocks `unwrap` can put in the place of an equation."""
    match eqn:
        case Scan() | While() | Checkpoint() | Call() | ShardMap():
            return ("body",)
        case CustomVjp() | CustomJvp():
            return ("primal",)
        case Cond(branches=branches):
            return tuple(f"branches[{i}]" for i in range(len(branches)))
        case _:
            return ()


def freeze_carry(block: Block, i: int, k: int) -> Block:
    """Turn carry `k` of the scan or while at `i` into a constant: its result is its initial value."""
    eqn = block.eqns[i]
    assert isinstance(eqn, Scan | While)
    out, init = eqn.outs[k], eqn.carry[k]
    carry = eqn.carry[:k] + eqn.carry[k + 1 :]
    outs = eqn.outs[:k] + eqn.outs[k + 1 :]
    new: Equation
    if isinstance(eqn, Scan):
        n = len(eqn.consts)
        body = _moved(eqn.body, n + k, n)
        body = Block(body.params, body.eqns, body.results[:k] + body.results[k + 1 :])
        new = msgspec.structs.replace(eqn, outs=outs, consts=(*eqn.consts, init), carry=carry, body=body)
    else:
        n, m = len(eqn.cond_consts), len(eqn.body_consts)
        cond, body = _moved(eqn.cond, n + k, n), _moved(eqn.body, m + k, m)
        new = msgspec.structs.replace(
            eqn,
            outs=outs,
            cond=cond,
            body=Block(body.params, body.eqns, body.results[:k] + body.results[k + 1 :]),
            carry=carry,
            cond_consts=(*eqn.cond_consts, init),
            body_consts=(*eqn.body_consts, init),
        )
    eqns = (*block.eqns[:i], new, *block.eqns[i + 1 :])
    return substitute(Block(block.params, eqns, block.results), {out.id: init})


def stack_carry(block: Block, i: int, k: int) -> Block:
    """Turn carry `k` of the scan at `i` into zeros, and its last value into what every turn makes of it, stacked.

    Raises:
        ProgramError: an equation uses the last value, which has another type then; there are no zeros of its type.
    """
    eqn = block.eqns[i]
    assert isinstance(eqn, Scan)
    out, value = eqn.outs[k], eqn.body.results[k]
    if any(out.id in args_of(other) for other in block.eqns):
        raise ProgramError(f"the last value of carry {k} is used")
    outs = (*eqn.outs[:k], *eqn.outs[k + 1 :], Var(out.id, out.type.stacked(eqn.length)))
    p = len(eqn.consts) + k
    params, results = eqn.body.params, eqn.body.results
    body = Block(params, eqn.body.eqns, (*results[:k], *results[k + 1 :], value))
    body = replace_value(body, params[p].id, None)
    body = Block((*params[:p], *params[p + 1 :]), body.eqns, body.results)
    new = msgspec.structs.replace(eqn, outs=outs, carry=eqn.carry[:k] + eqn.carry[k + 1 :], body=body)
    return Block(block.params, (*block.eqns[:i], new, *block.eqns[i + 1 :]), block.results)


def _moved(block: Block, source: int, target: int) -> Block:
    params = list(block.params)
    params.insert(target, params.pop(source))
    return Block(tuple(params), block.eqns, block.results)
