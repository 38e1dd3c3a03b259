"""Names that a policy offloads in vain: decided on the program as its author wrote it, before differentiation.

Below differentiation a name that moved nothing has left no trace, so this can be told of programs with checkpoint
policies only, not of captured training steps or modules.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from reducer.ir.equations import Checkpoint, Name, Program
from reducer.ir.policies import Both, OffloadDots, OffloadNames, Policy
from reducer.ir.walk import equations
from reducer.ledger.owed import Owed

DOTS = "matrix products"


class Unused(msgspec.Struct, frozen=True):
    """A name (or `DOTS`) that a policy offloads, and why nothing comes of it."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def unused(program: Program, owed: Owed) -> tuple[Unused, ...]:
    """What the policies of a program offload in vain, in the order they name it.

    Args:
        program: at the program tier; one without a policy that offloads has nothing unused.
        owed: what it owes after differentiation. Where that could not be read, only names that no equation carries
            are told.
    """
    offloaded = dict.fromkeys(name for policy in _policies(program) for name in _offloaded(policy))
    carried = {eqn.name for _, _, eqn in equations(program) if isinstance(eqn, Name)}
    kept = {name for stack in owed.stacks for name in (stack.name, *stack.also)}
    found = []
    for name in offloaded:
        reason = _reason(name, program, carried, kept, owed)
        if reason:
            found.append(Unused(name, reason))
    return tuple(found)


def _reason(name: str, program: Program, carried: set[str], kept: set[str], owed: Owed) -> str:
    if name != DOTS and name not in carried:
        return "no equation carries this name"
    if program.gradient is None:
        return "the program is not differentiated, so nothing is kept for a backward pass"
    if owed.reason:
        return ""
    if name == DOTS:
        return "" if owed.stacks else "no product without batch dimensions is needed by the backward pass"
    return "" if name in kept else "the backward pass does not need this value"


def _policies(program: Program) -> Iterator[Policy]:
    for _, _, eqn in equations(program):
        if isinstance(eqn, Checkpoint) and not eqn.differentiated and eqn.policy is not None:
            yield eqn.policy


def _offloaded(policy: Policy) -> tuple[str, ...]:
    match policy:
        case OffloadNames(offloaded=names):
            return names
        case OffloadDots():
            return (DOTS,)
        case Both(first=first, second=second):
            return _offloaded(first) + _offloaded(second)
        case _:
            return ()
