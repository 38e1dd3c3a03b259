"""From tier to tier: the highest one that is possible is reduced, then what its minimum becomes one tier below.

A module goes the other way: reduced first, and then raised to a program. A step is taken if the failure stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from reducer.corpus.case import TIERS, Tier
from reducer.errors import InputError
from reducer.ir.equations import Program
from reducer.reduction.context import FRESH_SECONDS, Run
from reducer.reduction.descent import NoTier, level_at, level_of, module_of, placement_of, raised
from reducer.reduction.model import Candidate, Stage
from reducer.reduction.start import Confirmer, Refused, said_of_start
from reducer.shrink import StartError
from reducer.stablehlo import Module
from reducer.words import counted


def go_through(run: Run) -> None:
    """Reduce at every tier that was asked for and can be had.

    Raises:
        Refused: the start does not fail as asked for.
        InputError: it does not reach the compiler, or there is nothing at the tiers asked for.
        Stopped: the run is to end.
    """
    _down(run)
    start = run.request.starts[-1]
    if isinstance(start, Module) and "placement" in run.request.tiers and "placement" not in run.stages:
        _up(run, start)
    if not run.stages:
        why = "; ".join(run.unreached.values()) or f"it is of the {level_of(run.request.start).name} tier"
        raise InputError(f"the start cannot be reduced at the tier asked for: {why}", hint="leave out --tier")


def _down(run: Run) -> None:
    above: Any = None
    lowest = max(map(TIERS.index, run.request.tiers))
    for tier in TIERS[: lowest + 1]:
        run.stop_if_asked()
        try:
            start = _start_at(run, tier, above)
        except NoTier as error:
            run.stop_if_asked()
            run.cannot(tier, str(error))
            continue
        if start is None:
            continue
        if tier not in run.request.tiers:
            above = start
            continue
        try:
            stage = _reduced(run, tier, start, last=above is None and not _start_below(run, tier))
        except NoTier as error:
            run.cannot(tier, str(error))
            continue
        above = run.stages[stage.tier].best


def _start_below(run: Run, tier: Tier) -> bool:
    """Whether there is another start, at a lower tier that was asked for: a script's placement, if it is one."""
    lower = run.request.tiers.intersection(TIERS[TIERS.index(tier) + 1 :])
    return any(level_of(start).name in lower for start in run.request.starts)


def _start_at(run: Run, tier: Tier, above: Any) -> Any | None:
    """What is reduced at a tier: the start itself, what its case has there, or what follows from the tier above.

    None: the tier is above the start, or adds nothing to the one above.

    Raises:
        NoTier: it cannot be had.
    """
    request = run.request
    if above is None:
        return next((start for start in request.starts if level_of(start).name == tier), None)
    stored = run.request.stored.get(tier)
    if stored is not None:
        return stored
    if tier == "placement":
        found = placement_of(above)
        return None if level_at(tier).key(found) == level_at(tier).key(above) else found
    return _module(run, above)


def _module(run: Run, program: Program) -> Module:
    """What a program lowers to."""
    limit = run.current.confirmed.limit if run.current is not None else FRESH_SECONDS
    return module_of(run.final_of(level_of(program), program, limit=limit).module)


def _up(run: Run, start: Module) -> None:
    """Raise a module to the placement tier, and come down again.

    Its minimum, if that is possible. But a minimum may do what no program can say: leave a value in either of two
    memories, as a loop does whose carry is on the device only before its first turn. Then what came before it, the
    smallest first; the module itself in the end. Why the minimum has no placement is what is said if none has.
    """
    reduced = run.stages.get("stablehlo")
    before = [] if reduced is None else [reduced.best, *(m for m in reversed(reduced.milestones) if m != reduced.best)]
    why = ""
    for module in [*before, start]:
        run.stop_if_asked()
        try:
            stage = _reduced(run, "placement", raised(module), last=reduced is None and module is start)
        except NoTier as error:
            why = why or str(error)
            continue
        if reduced is not None:
            _once_more(run, reduced, run.stages[stage.tier].best)
        return
    run.cannot("placement", why)


def _once_more(run: Run, reduced: Stage, program: Program) -> None:
    """A program can be made smaller in ways that a module cannot: what it lowers to may be the smaller module."""
    try:
        module = _module(run, program)
    except NoTier:
        return
    if not tuple(reduced.level.order(module)) < tuple(reduced.level.order(reduced.best)):
        return
    before = reduced.best
    if run.wanted(run.asking(reduced, placed=False).submit(module).result()):
        run.watcher.say("what the placement lowers to is the smaller module")
        reduced.best = module
        try:
            run.shrink(reduced)
        except StartError as error:
            reduced.best = before
            run.watcher.say(f"it is not: {error.message}")
        assert tuple(reduced.level.order(reduced.best)) <= tuple(reduced.level.order(before))


def _reduced(run: Run, tier: Tier, start: Candidate, *, last: bool) -> Stage:
    """The stage of a start, reduced.

    Raises:
        NoTier: it does not fail as wanted.
        Refused: the same of the `last` resort.
    """
    stage = _confirmed(run, tier, start, last=last)
    try:
        run.shrink(stage)
    except StartError as error:
        # As it is it fails, but not without what nobody reads, which no candidate has.
        why = f"without dead code it does not fail any more ({error.message})"
        if last and not run.stages:
            raise Refused(why) from None
        raise NoTier(why) from None
    return stage


def _confirmed(run: Run, tier: Tier, start: Candidate, *, last: bool) -> Stage:
    """The stage of a start that fails as wanted.

    Raises:
        NoTier: it does not.
        Refused, InputError: the same of the `last` resort; it does not reach the compiler.
    """
    level = level_at(tier)
    first = not run.stages
    named = "the start" if first else f"what the minimum becomes at the {tier} tier"
    run.watcher.say(f"checking {named}: {counted(level.size(start), level.unit)}, on {run.target}")
    confirmer = Confirmer(
        run.pool,
        level,
        run.journal,
        judge=run.script,
        text=lambda candidate, result: run.judged(level, candidate, result),
        timeout=run.request.timeout,
        comparison=run.wanted.comparison,
    )
    try:
        confirmed = confirmer.confirm(start, run.wanted, named=named)
    except (Refused, InputError) as error:
        if first and last:
            run.journal.discard()
            raise
        raise NoTier(error.reason if isinstance(error, Refused) else error.message) from None
    run.confirmations += confirmed.compiles
    if first:
        run.wanted = confirmed.wanted
        run.watcher.begun()
    said = said_of_start(confirmed)
    if said:
        run.watcher.say(said)
    return Stage(
        level=level,
        start=start,
        best=start,
        confirmed=confirmed,
        keeps=_keeps(run, level, start),
        result=confirmed.result,
    )


def _keeps(run: Run, level: Any, start: Candidate) -> Callable[[Any], bool]:
    """What the user wants to keep, as far as it is there at this tier: a placement has no policies."""
    checks = list(_checks(run, level, start))
    return lambda candidate: all(check(candidate) for check in checks)


def _checks(run: Run, level: Any, start: Candidate) -> Iterator[Callable[[Any], bool]]:
    for pattern in run.request.keep:
        try:
            yield level.keeps((pattern,), start)
        except InputError:
            run.watcher.say(f"--keep {pattern} names nothing at the {level.name} tier")
