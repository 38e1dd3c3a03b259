"""From one tier to another: derivatives taken, lowered to a module, raised from one."""

from __future__ import annotations

from typing import Any

from reducer.corpus.case import Tier
from reducer.errors import InputError, ProgramError
from reducer.ir.equations import Program
from reducer.ir.tiers import tier_of
from reducer.oracle.differentiated import differentiate_aside
from reducer.raising import raise_module
from reducer.reduction.levels import ProgramLevel
from reducer.reduction.modules import ModuleLevel
from reducer.stablehlo import Module, read_module


class NoTier(Exception):
    """A tier cannot be had; the text says why."""


def level_of(candidate: Any) -> Any:
    """How a candidate is handled: by the tier it is written at."""
    return ProgramLevel(tier_of(candidate)) if isinstance(candidate, Program) else ModuleLevel()


def level_at(tier: Tier) -> Any:
    """How candidates of a tier are handled."""
    return ModuleLevel() if tier == "stablehlo" else ProgramLevel(tier)


def placement_of(program: Program) -> Program:
    """The program with its derivatives taken and its policies applied.

    Raises:
        NoTier: JAX does not differentiate it, or the IR cannot hold what comes out.
    """
    try:
        return differentiate_aside(program)
    except ProgramError as error:
        raise NoTier(error.message) from None


def module_of(text: str) -> Module:
    """The module of a lowered program.

    Raises:
        NoTier: it cannot be had.
    """
    if not text:
        raise NoTier("its module is not known: the compiler took it along when it died")
    try:
        return read_module(text.encode("utf-8", "surrogatepass"))
    except InputError as error:
        raise NoTier(error.message) from None


def raised(module: Module) -> Program:
    """The module as a program of the placement tier.

    Raises:
        NoTier: the IR cannot hold it.
    """
    try:
        return raise_module(module)
    except ProgramError as error:
        raise NoTier(error.message) from None
