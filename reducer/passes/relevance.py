"""Which equations a failure about host memory can depend on: a guess that orders proposals, never decides anything."""

from __future__ import annotations

from reducer.ir.equations import Block, Checkpoint, Equation, Name, Program, Scan, Transfer
from reducer.ir.policies import Both, OffloadDots, OffloadNames, Policy, offloads
from reducer.ir.walk import args_of, children, equations

#: From so many equations on a program is large: one region kept is a good guess there, one value cut a poor one.
LARGE = 48


def offloaded_names(program: Program) -> frozenset[str]:
    """Names that some policy of the program moves to host memory."""

    def names(policy: Policy | None) -> tuple[str, ...]:
        match policy:
            case OffloadNames(offloaded=offloaded):
                return offloaded
            case Both(first=first, second=second):
                return names(first) + names(second)
            case _:
                return ()

    found: set[str] = set()
    for _, _, eqn in equations(program):
        if isinstance(eqn, Checkpoint):
            found.update(names(eqn.policy))
    return frozenset(found)


def offloads_dots(program: Program) -> bool:
    """True if some policy moves matrix products to host memory."""

    def found(policy: Policy | None) -> bool:
        match policy:
            case OffloadDots():
                return True
            case Both(first=first, second=second):
                return found(first) or found(second)
            case _:
                return False

    return any(isinstance(eqn, Checkpoint) and found(eqn.policy) for _, _, eqn in equations(program))


class Relevance:
    """Answers for one program; blocks are looked at once."""

    def __init__(self, program: Program) -> None:
        self._names = offloaded_names(program)
        self._dots = offloads_dots(program)
        self._blocks: dict[int, bool] = {}

    def of(self, eqn: Equation) -> bool:
        """True for a transfer, an offloaded name, an offloading checkpoint, a tagged loop, and what contains one."""
        match eqn:
            case Transfer():
                return True
            case Name(name=name):
                return name in self._names
            case Checkpoint(policy=policy) if offloads(policy):
                return True
            case Scan(metadata=metadata) if metadata:
                return True
            case _:
                if self._dots and getattr(eqn, "primitive", "") == "dot_general":
                    return True
                return any(var.type.on_host for var in eqn.outs) or any(self.inside(b) for _, b in children(eqn))

    def fed(self, block: Block) -> frozenset[int]:
        """Variables of a block that depend on a relevant equation of it."""
        found: set[int] = set()
        for eqn in block.eqns:
            if any(arg in found for arg in args_of(eqn)) or self.of(eqn):
                found.update(var.id for var in eqn.outs)
        return frozenset(found)

    def inside(self, block: Block) -> bool:
        """True if a block contains a relevant equation."""
        known = self._blocks.get(id(block))
        if known is None:
            known = self._blocks[id(block)] = any(map(self.of, block.eqns))
        return known
