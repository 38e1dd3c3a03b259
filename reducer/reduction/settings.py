"""Compiler options and topology, minimised like the rest: each option dropped, then the default topology tried.

It is the last step, since every minimum has to fail on the target that is left. Where something was dropped they are
reduced once more: what is minimal is so on one target.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import ExitStack

import msgspec

from reducer.errors import TargetError
from reducer.oracle.pool import Pool, require_compatible
from reducer.oracle.target import DEFAULT_TOPOLOGY, Target
from reducer.reduction.context import Run
from reducer.shrink import StartError


def minimise_settings(run: Run) -> None:
    """Take away what of the target the failure does not need.

    Raises:
        Stopped: the run is to end.
    """
    before, dropped = run.target, len(run.dropped)
    for smaller, name in _smaller(run):
        run.stop_if_asked()
        if _survives(run, smaller):
            run.target = smaller
            run.dropped.append(name)
            run.watcher.say(f"{name} is not needed")
    if run.target == before:
        return
    stages = {tier: dataclasses.replace(stage) for tier, stage in run.stages.items()}
    run.move_to(run.target)
    try:
        for stage in list(run.stages.values()):
            run.shrink(stage)
    except StartError as error:
        # It failed once, which is no more than luck: what was found on the whole target stays.
        compiles = {tier: stage.compiles for tier, stage in run.stages.items()}
        run.stages = stages
        for tier, stage in stages.items():
            stage.compiles = max(stage.compiles, compiles.get(tier, 0))
        run.watcher.say(f"{', '.join(run.dropped[dropped:])}: needed after all ({error.message})")
        del run.dropped[dropped:]
        run.move_to(before)


def _smaller(run: Run) -> Iterator[tuple[Target, str]]:
    """Targets that need less than the one of now, and what they do without."""
    replace = msgspec.structs.replace
    for option in run.request.target.options:
        left = tuple(one for one in run.target.options if one != option)
        yield replace(run.target, options=left), f"{option[0]}={option[1]}"
    if run.target.topology != DEFAULT_TOPOLOGY:
        yield replace(run.target, topology=DEFAULT_TOPOLOGY), f"topology {run.target.topology}"


def _survives(run: Run, target: Target) -> bool:
    """Whether every minimum fails as wanted on another target."""
    with ExitStack() as stack:
        pool: Pool | None = None
        for stage in run.stages.values():
            key = f"settings {dict(target.options)} {target.topology} {stage.tier} {stage.level.key(stage.best)}"
            known = run.journal.get(key)
            if known is None:
                try:
                    if pool is None:
                        flaky = any(one.confirmed.votes.flaky for one in run.stages.values())
                        pool = stack.enter_context(run.open_pool(target, 1, use_cache=not flaky))
                        require_compatible(pool)
                except TargetError:
                    return False
                # As any candidate: with votes if it is flaky. Those of the target tried are no candidates' of now.
                known = run.asking(stage, placed=False, pool=pool, target=target).submit(stage.best).result()
                run.journal.put(key, known)
            run.confirmations += known.compiles
            if not run.wanted(known):
                return False
    return True
