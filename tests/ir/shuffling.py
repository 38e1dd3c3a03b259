"""The same program written down in another order: what `canonical` has to undo."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from reducer.ir.equations import (
    Block,
    Call,
    Checkpoint,
    Cond,
    Equation,
    Grad,
    Name,
    Program,
    Scan,
    ShardMap,
    Var,
    While,
)
from reducer.ir.policies import names_of, rename
from reducer.ir.walk import args_of, children, equations, map_block, with_args, with_children

_replace = msgspec.structs.replace


def shuffled(program: Program, seed: int) -> Program:
    """Independent equations, inputs, results, arguments of regions, variables and names in another order."""
    rng = random.Random(seed)
    block = _renamed(program, rng)
    block = map_block(
        block, lambda b: _shuffled_equations(Block(b.params, tuple(_ports(e, rng) for e in b.eqns), b.results), rng)
    )
    inputs, results = _order(rng, len(block.params)), _order(rng, len(block.results))
    grad = program.gradient
    if grad is not None:
        grad = Grad(tuple(i for i, k in enumerate(inputs) if k in grad.argnums), grad.with_value)
    return _replace(
        program,
        block=_permuted(block, inputs, results),
        gradient=grad,
        inputs=_pick(program.inputs, inputs) if program.inputs else (),
        result_specs=_pick(program.result_specs, results) if program.result_specs else (),
    )


def _order(rng: random.Random, n: int) -> list[int]:
    return rng.sample(range(n), n)


def _pick(items: Sequence, positions: Sequence[int]) -> tuple:
    return tuple(items[k] for k in positions)


def _permuted(block: Block, params: Sequence[int], results: Sequence[int]) -> Block:
    return Block(_pick(block.params, params), block.eqns, _pick(block.results, results))


def _renamed(program: Program, rng: random.Random) -> Block:
    met = {name for _, _, e in equations(program) for name in ([e.name] if isinstance(e, Name) else _mentioned(e))}
    new = [f"name_{i}" for i in _order(rng, len(met))]
    renaming = dict(zip(sorted(met), new, strict=True))

    def edit(eqn: Equation) -> Equation:
        match eqn:
            case Name():
                return _replace(eqn, name=renaming[eqn.name])
            case Checkpoint():
                return _replace(eqn, policy=rename(eqn.policy, renaming))
            case Call():
                return _replace(eqn, name=rng.choice(("inner", "f", "step")))
            case _:
                return eqn

    return map_block(program.block, lambda b: Block(b.params, tuple(map(edit, b.eqns)), b.results))


def _mentioned(eqn: Equation) -> tuple[str, ...]:
    return names_of(eqn.policy) if isinstance(eqn, Checkpoint) else ()


def _shuffled_equations(block: Block, rng: random.Random) -> Block:
    """A random topological order, and random numbers for the variables."""
    bound = {v.id for v in block.params}
    left, eqns = [_ports(eqn, rng) for eqn in block.eqns], []
    while left:
        ready = [e for e in left if all(not isinstance(a, int) or a in bound for a in args_of(e))]
        eqn = rng.choice(ready)
        left.remove(eqn)
        eqns.append(eqn)
        bound |= {v.id for v in eqn.outs}
    ids = dict(zip(sorted(bound), rng.sample(range(1000), len(bound)), strict=True))

    def new(variables: tuple[Var, ...]) -> tuple[Var, ...]:
        return tuple(Var(ids[v.id], v.type) for v in variables)

    def sub(args: tuple) -> tuple:
        return tuple(ids[a] if isinstance(a, int) else a for a in args)

    eqns = [_replace(with_args(e, sub(args_of(e))), outs=new(e.outs)) for e in eqns]
    return Block(new(block.params), tuple(eqns), sub(block.results))


def _ports(eqn: Equation, rng: random.Random) -> Equation:
    match eqn:
        case Scan(consts=consts, carry=carry, xs=xs, outs=outs, body=body):
            c, k, x = _order(rng, len(consts)), _order(rng, len(carry)), _order(rng, len(xs))
            ys = [len(k) + i for i in _order(rng, len(outs) - len(carry))]
            params = [*c, *(len(c) + i for i in k), *(len(c) + len(k) + i for i in x)]
            return _replace(
                eqn, consts=_pick(consts, c), carry=_pick(carry, k), xs=_pick(xs, x), outs=_pick(outs, [*k, *ys]),
                body=_permuted(body, params, [*k, *ys]),
            )  # fmt: skip
        case While(cond_consts=cc, body_consts=bc, carry=carry, outs=outs):
            c, b, k = _order(rng, len(cc)), _order(rng, len(bc)), _order(rng, len(carry))
            return _replace(
                eqn, cond_consts=_pick(cc, c), body_consts=_pick(bc, b), carry=_pick(carry, k), outs=_pick(outs, k),
                cond=_permuted(eqn.cond, [*c, *(len(c) + i for i in k)], [0]),
                body=_permuted(eqn.body, [*b, *(len(b) + i for i in k)], k),
            )  # fmt: skip
        case Cond() | Checkpoint() | Call() | ShardMap():
            a, o = _order(rng, len(eqn.args)), _order(rng, len(eqn.outs))
            eqn = _replace(eqn, args=_pick(eqn.args, a), outs=_pick(eqn.outs, o))
            if isinstance(eqn, ShardMap):
                eqn = _replace(eqn, in_specs=_pick(eqn.in_specs, a), out_specs=_pick(eqn.out_specs, o))
            return with_children(eqn, {f: _permuted(b, a, o) for f, b in children(eqn)})
        case _:
            return eqn
