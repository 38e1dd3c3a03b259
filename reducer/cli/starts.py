"""What a reduction begins with: the programs and modules behind an argument, at every tier they can be had."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reducer.cli.common import say
from reducer.cli.inputs import Item
from reducer.corpus.case import Case, Tier
from reducer.corpus.casefile import read_regular
from reducer.errors import InputError
from reducer.oracle.jobs import Job, ModuleJob, ScriptJob
from reducer.oracle.scripts import capture_script
from reducer.oracle.target import Target
from reducer.reduction.model import Candidate
from reducer.stablehlo import Module, read_module
from reducer.stablehlo.model import with_attribute


def starts_of(item: Item, target: Target, lower: Callable[[Job], str], *, module: bool) -> tuple[Candidate, ...]:
    """The programs or the module to begin with, the highest tier first.

    Args:
        item: what the user named.
        target: what it is compiled for.
        lower: gives the text of the module that a job lowers to.
        module: only a module is wanted, whatever else could be had.

    Raises:
        InputError: it does not parse, trace or lower.
    """
    if item.program is not None:
        return (item.program,)
    if isinstance(item.job, ModuleJob):
        return (_module(item.job, item.name),)
    assert isinstance(item.job, ScriptJob)
    if not module:
        found = _captured(item.job, target)
        if found:
            return found
    text = lower(item.job)
    if not text:
        raise InputError(f"{item.name}: does not lower", hint=f"scanshrink check {item.name} says why")
    return (read_module(text.encode("utf-8", "surrogatepass")),)


def stored_of(item: Item) -> dict[Tier, Candidate]:
    """The minima of a case.

    Raises:
        InputError: a module of it cannot be read.
    """
    if item.case is None:
        return {}
    path = Path(item.name)
    return _minima(item.case, path if path.is_dir() else path.parent)


def _minima(case: Case, folder: Path) -> dict[Tier, Candidate]:
    found: dict[Tier, Candidate] = {}
    for tier, minimum in case.tiers.items():
        if minimum.program is not None:
            found[tier] = minimum.program
        elif minimum.module:
            found[tier] = read_module(read_regular(folder / minimum.module))
    return found


def _captured(job: ScriptJob, target: Target) -> tuple[Candidate, ...]:
    programs = capture_script(job, target)
    if programs.reason:
        say(f"note: {programs.reason}")
    return tuple(program for program in (programs.program, programs.placement) if program is not None)


def _module(job: ModuleJob, name: str) -> Module:
    """The module of a job, which says itself for how many devices it is."""
    try:
        module = read_module(job.module)
    except InputError as error:
        raise InputError(f"{name}: {error.message}", hint=error.hint) from None
    attributes = module.attributes
    for attribute, number in (("mhlo.num_partitions", job.partitions), ("mhlo.num_replicas", job.replicas)):
        attributes = with_attribute(attributes, attribute, f"{number} : i32")
    return Module(functions=module.functions, symbols=module.symbols, attributes=attributes, name=module.name)
