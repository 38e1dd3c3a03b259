"""Compiler options and topology, minimised like the rest: each option dropped, then the default topology tried.

It is the last step, since every minimum has to fail on the target that is left. Where something was dropped they are
reduced once more: what is minimal is so on one target.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import msgspec

from reducer.errors import TargetError
from reducer.oracle.pool import Pool, require_compatible
from reducer.oracle.target import DEFAULT_TOPOLOGY, Target
from reducer.reduction.asking import beside_oracle
from reducer.reduction.context import Run


def minimise_settings(run: Run) -> None:
    """Take away what of the target the failure does not need.

    Raises:
        Stopped: the run is to end.
    """
    before = run.target
    for smaller, name in _smaller(run):
        run.stop_if_asked()
        if _survives(run, smaller):
            run.target = smaller
            run.dropped.append(name)
            run.watcher.say(f"{name} is not needed")
    if run.target != before:
        run.pool = run.stack.enter_context(run.open_pool(run.target, run.request.jobs))
        for stage in list(run.stages.values()):
            run.shrink(stage)


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
                        pool = stack.enter_context(run.open_pool(target, 1))
                        require_compatible(pool)
                except TargetError:
                    return False
                beside = beside_oracle(pool, stage.best, run.wanted.comparison, stage.confirmed.limit)
                job = stage.level.job(stage.best)
                known = (
                    beside.submit(stage.best)
                    if beside is not None
                    else pool.submit(job, want_ledger=True, timeout=stage.confirmed.limit)
                ).result()
                run.journal.put(key, known)
            run.confirmations += 1
            if not run.wanted(known):
                return False
    return True
