"""One reduction, from the claim to the case.

The driver (`reducer.shrink`) makes one candidate of one tier smaller. This goes around it: the claim is checked
(`start`), the tiers follow each other (`tiers`), then the target (`settings`), then all is saved (`ending`). Every
question goes through the journal, so a run that was ended at any moment is gone through again without compiling.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import msgspec

from reducer.corpus import Case
from reducer.oracle.environment import relevant_environment
from reducer.oracle.pool import require_compatible
from reducer.oracle.programs import lowering_version
from reducer.reduction.context import Run
from reducer.reduction.descent import level_of
from reducer.reduction.ending import finish
from reducer.reduction.following import Clock, Unfinished
from reducer.reduction.interesting import Script
from reducer.reduction.journal import Header, Journal, difference, others
from reducer.reduction.model import OpenPool, Reduced, Request, Stopped, Watcher
from reducer.reduction.saving import remove_if_empty, require_writable
from reducer.reduction.settings import minimise_settings
from reducer.reduction.tiers import go_through
from reducer.words import counted


class Reduction:
    """One reduction. `stop` and `shown` may be called from a signal handler while it runs.

    Args:
        request: what to reduce.
        open_pool: opens the workers of a target.
        watcher: follows.
        report: renders a case's `report.md`.
    """

    def __init__(
        self,
        request: Request,
        open_pool: OpenPool,
        watcher: Watcher,
        *,
        report: Callable[[Case], str] | None = None,
    ) -> None:
        self._request = request
        self._open_pool = open_pool
        self._watcher = watcher
        self._report = report
        self._stopping: list[bool] = []
        self._run: Run | None = None

    def stop(self) -> None:
        """End soon, with the best so far saved."""
        self._stopping.append(True)

    def shown(self) -> str:
        """The best so far, as text."""
        stage = self._run.current if self._run is not None else None
        if stage is None:
            return "nothing yet: the start is being checked"
        size = stage.level.size(stage.best)
        return f"{stage.level.text(stage.best)}\n{counted(size, stage.level.unit)} at the {stage.tier} tier"

    def run(self) -> Reduced:
        """Do it.

        Raises:
            Refused: the start does not fail as asked for, or too rarely.
            InputError: it does not reach the compiler, `keep` names nothing in it, or the script cannot be run.
            StorageError: the output folder cannot be written, which is found out before anything is compiled; or the
                same reduction is under way.
            TargetError, WorkerError: there is no compiler.
        """
        request = self._request
        level = level_of(request.start)
        level.keeps(request.keep, request.start)
        made = require_writable(request.out)
        try:
            with ExitStack() as stack:
                return self._do(stack, level)
        finally:
            if made:
                remove_if_empty(request.out)

    def _do(self, stack: ExitStack, level: Any) -> Reduced:
        request = self._request
        script = stack.enter_context(Script(request.script, request.jobs)) if request.script else None
        wanted = request.wanted
        if script is not None:
            wanted = msgspec.structs.replace(wanted, value=script.sha256)
        header = self._header(level.key(request.start), (wanted.mode, wanted.value))
        for other in others(header):
            if what := difference(header, other):
                self._watcher.say(
                    f"an unfinished reduction of this start was for {what}: none of its answers is used, and this one "
                    "starts anew"
                )
        journal = stack.enter_context(Journal(header, warn=self._watcher.say))
        if journal.known:
            self._watcher.say(f"going on with {counted(journal.known, 'answers')} of an earlier run")
        opened = stack.enter_context(ExitStack())
        pool = opened.enter_context(self._open_pool(request.target, request.jobs))
        require_compatible(pool)
        run = self._run = Run(
            request=request,
            open_pool=self._open_pool,
            watcher=self._watcher,
            opened=opened,
            clock=Clock(request.seconds),
            journal=journal,
            unfinished=Unfinished(request.out, header.start),
            pool=pool,
            target=request.target,
            wanted=wanted,
            script=script,
            stopping=self._stopping,
        )
        stopped = False
        try:
            go_through(run)
            if request.settings and script is None:
                minimise_settings(run)
        except Stopped:
            if not run.stages:
                raise
            stopped = True
        return finish(run, self._report, stopped=stopped)

    def _header(self, start: str, wanted: tuple[str, str]) -> Header:
        versions = {name: importlib.metadata.version(name) for name in ("jax", "jaxlib")}
        return Header(
            start=start,
            wanted=wanted,
            target=self._request.target.as_json(),
            versions={**versions, "scanshrink": lowering_version(), **relevant_environment()},
            wish={"timeout": self._request.timeout} if self._request.timeout else {},
        )
