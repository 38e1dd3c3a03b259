"""Edits that change how regions lie in each other: swapped, or entered by a new input."""

from __future__ import annotations

import msgspec

from reducer.errors import ProgramError
from reducer.ir.edit import replace_value
from reducer.ir.equations import Arg, Block, Call, Checkpoint, Cond, Entry, Equation, Grad, Program, Scan, Var, While
from reducer.ir.types import Type
from reducer.ir.unwrap import unwrap
from reducer.ir.walk import Path, block_at, children, fresh, replace_block, types_of, with_children


def swap(block: Block, i: int) -> Block:
    """Exchange a scan whose body is one checkpoint and nothing else with that checkpoint, or the other way round.

    Raises:
        ProgramError: the equation is no such pair.
    """
    outer = block.eqns[i]
    inner = outer.body.eqns[0] if isinstance(outer, Scan | Checkpoint) and len(outer.body.eqns) == 1 else None
    if isinstance(outer, Scan) and isinstance(inner, Checkpoint):
        new = _checkpoint_outside(outer, inner)
    elif isinstance(outer, Checkpoint) and isinstance(inner, Scan):
        new = _scan_outside(outer, inner)
    else:
        raise ProgramError("not a scan around a checkpoint alone, nor a checkpoint around a scan alone")
    return Block(block.params, (*block.eqns[:i], new, *block.eqns[i + 1 :]), block.results)


def _checkpoint_outside(scan: Scan, inner: Checkpoint) -> Equation:
    args = scan.consts + scan.carry + scan.xs
    types = [*(p.type for p in scan.body.params)]
    n = len(scan.consts) + len(scan.carry)
    params = tuple(Var(k, t if k < n else t.stacked(scan.length)) for k, t in enumerate(types))
    outs = tuple(Var(len(params) + k, v.type) for k, v in enumerate(scan.outs))
    ids: tuple[Arg, ...] = tuple(p.id for p in params)
    moved = msgspec.structs.replace(
        scan,
        outs=outs,
        consts=ids[: len(scan.consts)],
        carry=ids[len(scan.consts) : n],
        xs=ids[n:],
        body=unwrap(scan.body, {0: "body"}),
    )
    body = Block(params, (moved,), tuple(v.id for v in outs))
    return msgspec.structs.replace(inner, outs=scan.outs, args=args, body=body)


def _scan_outside(outer: Checkpoint, scan: Scan) -> Equation:
    given: dict[Arg, Arg] = dict(zip((p.id for p in outer.body.params), outer.args, strict=True))
    # A result may also be a parameter of the checkpoint, which the scan has nothing to do with.
    if len(outer.outs) != len(scan.outs) or set(outer.body.results) != {v.id for v in scan.outs}:
        raise ProgramError("the checkpoint does not return the scan's results, each once")
    outs = dict(zip(outer.body.results, outer.outs, strict=True))
    params = tuple(Var(k, p.type) for k, p in enumerate(scan.body.params))
    inner_types = types_of(scan.body)
    results = tuple(
        Var(len(params) + k, inner_types[r] if isinstance(r, int) else Type(r.dtype))
        for k, r in enumerate(scan.body.results)
    )
    wrapped = msgspec.structs.replace(outer, outs=results, args=tuple(p.id for p in params), body=scan.body)
    return msgspec.structs.replace(
        scan,
        outs=tuple(outs[v.id] for v in scan.outs),
        consts=tuple(given.get(a, a) for a in scan.consts),
        carry=tuple(given.get(a, a) for a in scan.carry),
        xs=tuple(given.get(a, a) for a in scan.xs),
        body=Block(params, (wrapped,), tuple(v.id for v in results)),
    )


def value_to_input(program: Program, path: Path, var: int, *, differentiate: bool = False) -> Program:
    """Replace a value, at any depth, by a new input of its type, handed down through the regions around it.

    With `differentiate` the gradient is taken with respect to it too.

    Raises:
        ProgramError: a region on the way takes no further argument (custom rules, shard_map).
    """
    type_ = types_of(block_at(program, path))[var]
    for k in range(len(path), -1, -1):
        block = block_at(program, path[:k])
        new = next(fresh(block))
        if k == len(path):
            block = replace_value(block, var, new)
        else:
            i, field = path[k]
            block = _hand_down(block, i, field, new)
        params = _with_param(block.params, Var(new, type_), k, path, program)
        block = Block(params, block.eqns, block.results)
        program = replace_block(program, path[:k], block)
    if program.inputs:
        program = msgspec.structs.replace(program, inputs=(*program.inputs, Entry()))
    grad = program.gradient
    if differentiate and grad is not None:
        argnums = (*grad.argnums, len(program.block.params) - 1)
        program = msgspec.structs.replace(program, gradient=Grad(argnums, grad.with_value))
    return program


def _with_param(params: tuple[Var, ...], var: Var, k: int, path: Path, program: Program) -> tuple[Var, ...]:
    """The parameters with a new one where the equation around the block expects it: first for loops, else last."""
    around = block_at(program, path[: k - 1]).eqns[path[k - 1][0]] if k else None
    return (var, *params) if isinstance(around, Scan | While) else (*params, var)


def _hand_down(block: Block, i: int, field: str, arg: int) -> Block:
    """The block whose equation `i` takes `arg` as one more argument; only the block of `field` looks at it."""
    eqn = block.eqns[i]
    new: Equation
    match eqn:
        case Scan(consts=consts):
            new = msgspec.structs.replace(eqn, consts=(arg, *consts))
        case While(cond_consts=cond, body_consts=body):
            inner = {"cond_consts": (arg, *cond)} if field == "cond" else {"body_consts": (arg, *body)}
            new = msgspec.structs.replace(eqn, **inner)
        case Checkpoint(args=args) | Call(args=args):
            new = msgspec.structs.replace(eqn, args=(*args, arg))
        case Cond(args=args):
            added = dict(children(eqn))[field].params[-1]
            others = {}
            for name, branch in children(eqn):
                if name != field:
                    extra = Var(next(fresh(branch)), added.type)
                    others[name] = Block((*branch.params, extra), branch.eqns, branch.results)
            new = with_children(msgspec.structs.replace(eqn, args=(*args, arg)), others)
        case _:
            raise ProgramError(f"{type(eqn).__name__} takes no further argument")
    return Block(block.params, (*block.eqns[:i], new, *block.eqns[i + 1 :]), block.results)
