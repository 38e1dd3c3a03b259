"""Whether a program can place anything in host memory, as far as that can be seen without lowering it."""

from __future__ import annotations

from reducer.ir.equations import Block, Checkpoint, Name, Op, Program, Transfer
from reducer.ir.policies import Both, OffloadDots, OffloadNames, Policy
from reducer.ir.walk import children

#: Stands for matrix products among offloaded names; no name is empty.
_DOTS = ""


def may_place(program: Program) -> bool:
    """False if lowering the program surely gives a module that places nothing in host memory.

    It can place something if an input is in another memory than the device's, a value is moved, or the program is
    differentiated and a policy offloads a name that is there, or a matrix product.
    """
    if any(param.type.memory != "device" for param in program.block.params):
        return True
    return _places(program.block, frozenset(), differentiated=program.gradient is not None)


def _places(block: Block, offloaded: frozenset[str], *, differentiated: bool) -> bool:
    for eqn in block.eqns:
        within = offloaded
        match eqn:
            case Transfer():
                return True
            case Name(name=name) if name in offloaded:
                return True
            case Op(primitive="dot_general") if _DOTS in offloaded:
                return True
            case Checkpoint(policy=policy) if differentiated:
                within = offloaded | _offloaded(policy)
            case _:
                pass
        if any(_places(inner, within, differentiated=differentiated) for _, inner in children(eqn)):
            return True
    return False


def _offloaded(policy: Policy | None) -> frozenset[str]:
    """The names a policy offloads, and `_DOTS` if it offloads matrix products."""
    match policy:
        case OffloadNames(offloaded=names):
            return frozenset(names)
        case OffloadDots():
            return frozenset({_DOTS})
        case Both(first=first, second=second):
            return _offloaded(first) | _offloaded(second)
        case _:
            return frozenset()
