"""Programs somebody could run: loops that end, and no division by a constant zero.

A compiler team dismisses a reproducer that is nonsense, and reduction makes nonsense easily: a counter's increment
deleted, a divisor replaced by zeros. The checker does not care about this; whoever shrinks programs does.
"""

from __future__ import annotations

from reducer.ir.equations import Arg, Block, Equation, Fill, Lit, Op, Program, While
from reducer.ir.walk import blocks

_ZEROS = frozenset({"0.0", "-0.0", "0", "False", "0j"})
_COMPARE = {"lt": 1, "le": 1, "gt": -1, "ge": -1, "ne": 0}


def nonsense(program: Program) -> str | None:
    """What is senseless about a program in normal form, in a few words; None if nothing is."""
    for place in blocks(program):
        zeros = {eqn.outs[0].id for eqn in place.block.eqns if isinstance(eqn, Fill) and eqn.value in _ZEROS}
        for eqn in place.block.eqns:
            if isinstance(eqn, While) and not _ends(eqn):
                return "a while loop without a counter"
            if isinstance(eqn, Op) and eqn.primitive in ("div", "rem"):
                by = eqn.args[1]
                if by in zeros or (isinstance(by, Lit) and by.value in _ZEROS):
                    return "a division by zero"
    return None


def _ends(loop: While) -> bool:
    """True if the condition compares a carry with something fixed, and the body moves that carry towards it."""
    cond = loop.cond
    test = _defining(cond, cond.results[0])
    if not isinstance(test, Op) or test.primitive not in _COMPARE or len(test.args) != 2:
        return False
    fixed = {p.id for p in cond.params[: len(loop.cond_consts)]}
    towards = _COMPARE[test.primitive]
    for counter, bound, sign in ((test.args[0], test.args[1], towards), (test.args[1], test.args[0], -towards)):
        if not (isinstance(bound, Lit) or bound in fixed) or counter in fixed:
            continue
        k = next((i for i, p in enumerate(cond.params) if p.id == counter), None)
        if k is None:
            continue
        step = _step(loop, k - len(loop.cond_consts))
        if step * sign > 0 or (sign == 0 and step):
            return True
    return False


def _step(loop: While, k: int) -> int:
    """By how much one turn raises carry `k`: 1 up, -1 down, 0 if that cannot be seen."""
    body = loop.body
    carry = body.params[len(loop.body_consts) + k].id
    update = _defining(body, body.results[k])
    if not isinstance(update, Op) or update.primitive not in ("add", "sub") or carry not in update.args:
        return 0
    other = update.args[1] if update.args[0] == carry else update.args[0]
    if not isinstance(other, Lit) or other.value in _ZEROS or (update.primitive == "sub" and update.args[0] != carry):
        return 0
    up = not other.value.startswith("-")
    return 1 if up is (update.primitive == "add") else -1


def _defining(block: Block, value: Arg) -> Equation | None:
    return next((eqn for eqn in block.eqns if any(var.id == value for var in eqn.outs)), None)
