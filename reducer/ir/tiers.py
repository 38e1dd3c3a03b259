"""At which tier a program is written: who places its values in host memory."""

from __future__ import annotations

from typing import Literal

from reducer.ir.equations import Checkpoint, Program, Transfer
from reducer.ir.policies import offloads
from reducer.ir.walk import equations

ProgramTier = Literal["program", "placement"]
#: As a tier, but with programs apart that have both a policy (or a gradient) and explicit transfers. Most of these
#: shrink to placements, and until then it is not known.
Sort = Literal["program", "mixed", "placement"]


def tier_of(program: Program) -> ProgramTier:
    """Who places values in host memory: a checkpoint policy (`program`), or the program itself (`placement`).

    A program that does both is of the program tier as long as its policy offloads something. A gradient may be taken
    at either: what counts is the level at which the failure is written down.
    """
    policy = any(
        isinstance(eqn, Checkpoint) and not eqn.differentiated and offloads(eqn.policy)
        for _, _, eqn in equations(program)
    )
    return "placement" if _explicit(program) and not policy else "program"


def sort_of(program: Program) -> Sort:
    """The tier, or "mixed" for a program of the program tier that also places values explicitly."""
    tier = tier_of(program)
    return "mixed" if tier == "program" and _explicit(program) else tier


def _explicit(program: Program) -> bool:
    on_host = any(var.type.on_host for var in program.block.params)
    return on_host or any(isinstance(eqn, Transfer) for _, _, eqn in equations(program))
