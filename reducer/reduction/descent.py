"""From one tier to the next: derivatives taken, then lowered to a module."""

from __future__ import annotations

from typing import Any

from reducer.corpus.case import Tier
from reducer.errors import InputError, ProgramError
from reducer.ir.equations import Program
from reducer.ir.tiers import tier_of
from reducer.lowering.apart import differentiate_apart
from reducer.reduction.levels import ProgramLevel


class NoTier(Exception):
    """A tier cannot be had; the text says why."""


def level_of(candidate: Any) -> Any:
    """How a candidate is handled: by the tier it is written at."""
    assert isinstance(candidate, Program)
    return ProgramLevel(tier_of(candidate))


def level_at(tier: Tier) -> Any:
    """How candidates of a tier are handled."""
    assert tier != "stablehlo"
    return ProgramLevel(tier)


def placement_of(program: Program) -> Program:
    """The program with its derivatives taken and its policies applied.

    Raises:
        NoTier: it has nothing to differentiate, or JAX or the IR cannot.
    """
    try:
        found = differentiate_apart(program)
    except ProgramError as error:
        raise NoTier(error.message) from None
    return found


def module_of(text: str) -> Any:
    """The module of a lowered program.

    Raises:
        NoTier: it cannot be had.
    """
    raise NoTier("modules cannot be reduced yet")
    if not text:
        raise NoTier("its module is not known: the compiler took it along when it died")
    from reducer.stablehlo import read_module

    try:
        return read_module(text.encode("utf-8", "surrogatepass"))
    except InputError as error:
        raise NoTier(error.message) from None
