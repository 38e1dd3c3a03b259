"""From tier to tier: the highest one that is possible is reduced, then what its minimum becomes one tier below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reducer.corpus.case import TIERS, Tier
from reducer.errors import InputError
from reducer.reduction.context import Run
from reducer.reduction.descent import NoTier, level_at, level_of, module_of, placement_of
from reducer.reduction.model import Stage
from reducer.reduction.start import Confirmer, Refused, said_of_start


def go_down(run: Run) -> None:
    """Reduce at every tier that was asked for and can be had. A step down is taken if the failure stays the same.

    Raises:
        Refused: the start does not fail as asked for.
        InputError: it does not reach the compiler, or there is nothing at the tiers asked for.
        Stopped: the run is to end.
    """
    above: Any = None
    lowest = max(map(TIERS.index, run.request.tiers))
    for tier in TIERS[: lowest + 1]:
        run.stop_if_asked()
        try:
            start = _start_at(run, tier, above)
        except NoTier as error:
            run.cannot(tier, str(error))
            continue
        if start is None:
            continue
        if tier not in run.request.tiers:
            above = start
            continue
        stage = _confirmed(run, tier, start)
        if stage is not None:
            run.shrink(stage)
            above = run.stages[stage.tier].best
    if not run.stages:
        why = "; ".join(run.unreached.values()) or f"it is of the {level_of(run.request.start).name} tier"
        raise InputError(f"the start cannot be reduced at the tier asked for: {why}", hint="leave out --tier")


def _start_at(run: Run, tier: Tier, above: Any) -> Any | None:
    """What is reduced at a tier: the start itself, what its case has there, or what follows from the tier above.

    None: the tier is above the start, or adds nothing to the one above.

    Raises:
        NoTier: it cannot be had.
    """
    request = run.request
    if above is None:
        return request.start if tier == level_of(request.start).name else None
    stored = request.case.tiers.get(tier) if request.case is not None else None
    if stored is not None and stored.program is not None:
        return stored.program
    if tier == "placement":
        found = placement_of(above)
        return None if level_at(tier).key(found) == level_at(tier).key(above) else found
    return module_of(run.final_of(level_of(above), above).module)


def _confirmed(run: Run, tier: Tier, start: Any) -> Stage | None:
    """The stage of a start that fails as wanted. None, with a word why, if what a lower tier begins with does not."""
    level = level_at(tier)
    first = not run.stages
    named = "the start" if first else f"what the minimum becomes at the {tier} tier"
    run.watcher.say(f"checking {named}: {level.size(start)} {level.unit}, on {run.target}")
    confirmer = Confirmer(
        run.pool,
        level,
        run.journal,
        judge=run.script,
        text=lambda candidate, result: run.judged(level, candidate, result),
        timeout=run.request.timeout,
    )
    try:
        confirmed = confirmer.confirm(start, run.wanted, named=named)
    except (Refused, InputError) as error:
        if first:
            run.journal.discard()
            raise
        run.cannot(tier, error.reason if isinstance(error, Refused) else error.message)
        return None
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


def _keeps(run: Run, level: Any, start: Any) -> Callable[[Any], bool]:
    """What the user wants to keep, as far as it is there at this tier: a placement has no policies."""
    checks = []
    for pattern in run.request.keep:
        try:
            checks.append(level.keeps((pattern,), start))
        except InputError:
            run.watcher.say(f"--keep {pattern} names nothing at the {level.name} tier")
    return lambda candidate: all(check(candidate) for check in checks)
