"""What a loop's body closes over, in the order of first use.

That is the order JAX itself gives when the loop is traced from text; after differentiation it has another one.
Programs that differ in nothing else shall not differ.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from reducer.ir.equations import Arg, Block, Equation, Scan, While
from reducer.ir.walk import args_of, map_block


def in_order_of_use(block: Block) -> Block:
    """Sort the constants of every loop in the block, innermost first."""
    return map_block(block, lambda b: replace(b, eqns=tuple(map(_sorted, b.eqns))))


def _sorted(eqn: Equation) -> Equation:
    match eqn:
        case Scan(consts=consts, body=body):
            consts, body = _reordered(consts, body)
            return replace(eqn, consts=consts, body=body)
        case While():
            cond_consts, cond = _reordered(eqn.cond_consts, eqn.cond)
            body_consts, body = _reordered(eqn.body_consts, eqn.body)
            return replace(eqn, cond_consts=cond_consts, cond=cond, body_consts=body_consts, body=body)
        case _:
            return eqn


def _reordered(consts: Sequence[Arg], body: Block) -> tuple[tuple[Arg, ...], Block]:
    uses = [arg for eqn in body.eqns for arg in args_of(eqn)] + list(body.results)
    first = {arg: at for at, arg in reversed(list(enumerate(uses))) if isinstance(arg, int)}
    n = len(consts)
    order = sorted(range(n), key=lambda i: (first.get(body.params[i].id, len(uses)), i))
    params = (*(body.params[i] for i in order), *body.params[n:])
    return tuple(consts[i] for i in order), replace(body, params=params)
