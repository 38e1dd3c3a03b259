"""The state of one reduction, and how it asks: shared by the modules that go through its steps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from reducer.corpus.case import Tier
from reducer.ir.equations import Program
from reducer.lowering.script import Recorded
from reducer.oracle.outcome import Result
from reducer.oracle.pool import Pool
from reducer.oracle.target import Target
from reducer.oracle.verdict import verdict
from reducer.record import recorded
from reducer.reduction.asking import Asking, beside_oracle
from reducer.reduction.descent import level_at, level_of
from reducer.reduction.following import Clock, Follower, Unfinished
from reducer.reduction.interesting import Script
from reducer.reduction.journal import Journal
from reducer.reduction.model import OpenPool, Request, Stage, Stopped, Watcher
from reducer.reduction.votes import Votes
from reducer.reduction.wanted import Wanted

#: Seconds that the last answer about a minimum may take, alone in a fresh worker.
FRESH_SECONDS: Final = 900.0


@dataclass
class Run:
    """A reduction under way. `target` and `wanted` become smaller and settled; `stages` are those of tiers reached."""

    request: Request
    open_pool: OpenPool
    watcher: Watcher
    stack: ExitStack
    clock: Clock
    journal: Journal
    unfinished: Unfinished
    pool: Pool
    target: Target
    wanted: Wanted
    script: Script | None = None
    stages: dict[Tier, Stage] = field(default_factory=dict)
    unreached: dict[Tier, str] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)
    stopping: list[bool] = field(default_factory=list)
    confirmations: int = 0
    current: Stage | None = None
    _voting: tuple[Target, Pool] | None = None

    def stop_if_asked(self) -> None:
        """Raises `Stopped` if the run is to end."""
        if self.stopping or self.clock.up:
            raise Stopped

    def cannot(self, tier: Tier, why: str) -> None:
        """A tier cannot be had: say so, and remember why."""
        self.unreached[tier] = why
        self.watcher.say(f"no {tier} tier: {why}")

    @property
    def variant(self) -> str:
        """What of the target is not as it was at the beginning, for the journal."""
        if self.target == self.request.target:
            return ""
        return f"{dict(self.target.options)} {self.target.topology} "

    def asking(self, stage: Stage, *, placed: bool) -> Asking[Any]:
        """The oracle of a stage. `placed`: what places nothing in host memory is not compiled."""
        confirmed = stage.confirmed
        return Asking(
            self._asked(confirmed.votes),
            stage.level,
            self.journal,
            wanted=self.wanted,
            keeps=stage.keeps,
            votes=confirmed.votes,
            timeout=confirmed.limit,
            require_host_placement=placed,
            judge=self.script,
            name_and_text=lambda candidate: self.judged(stage.level, candidate, confirmed.result),
            variant=self.variant,
            comparison=self.wanted.comparison,
        )

    def judged(self, level: Any, candidate: Any, result: Result) -> tuple[str, str]:
        """The file that an interestingness script is given: its own expectation is what the start did."""
        found = verdict(result).failure
        record = Recorded("compiled", libtpu=self.target.libtpu, sha256=self.target.sha256)
        if found is not None:
            from reducer.corpus.runner import record_of

            record = recorded(record_of(self.target, result), found)
        name, text = level.judged(candidate, record, self.target)
        return name, text

    def shrink(self, stage: Stage) -> None:
        """Reduce a stage in place, as far as the budget goes.

        Raises:
            Stopped: the run is to end; the stage holds the best so far.
        """
        self.current = self.stages[stage.tier] = stage
        began, earlier = self.clock.seconds, stage.compiles
        before = sum(other.compiles for other in self.stages.values() if other is not stage)
        follower = Follower(
            stage,
            self.journal,
            self.unfinished,
            self.watcher,
            self.clock,
            self.target,
            before=before,
            stopping=self.stopping,
        )
        budget = self.request.budget
        try:
            shrunk = stage.level.shrink(
                stage.best,
                self.asking(stage, placed=stage.confirmed.placed),
                self.wanted,
                budget=None if budget is None else max(budget - before - earlier, 0),
                label=self.wanted.label,
                events=follower.event,
            )
            stage.best, stage.result = shrunk.program, shrunk.result
            stage.compiles, stage.minimal = earlier + shrunk.compiles, shrunk.minimal
            if stage.to_fixpoint is None and shrunk.minimal:
                stage.to_fixpoint = shrunk.to_fixpoint
        finally:
            stage.seconds += self.clock.seconds - began
            self._file(stage)

    def _asked(self, votes: Votes) -> Pool:
        """The workers to ask. A flaky answer must not be believed because it was given before: no cache."""
        if not votes.flaky:
            return self.pool
        if self._voting is None or self._voting[0] != self.target:
            self._voting = (
                self.target,
                self.stack.enter_context(self.open_pool(self.target, self.request.jobs, use_cache=False)),
            )
        return self._voting[1]

    def _file(self, stage: Stage) -> None:
        """Put a stage under the tier its minimum is of: a program that lost its policy is a placement."""
        tier: Tier = level_of(stage.best).name if isinstance(stage.best, Program) else stage.tier
        if stage.tier == "program" and tier == "placement":
            del self.stages[stage.tier]
            stage.level = level_at(tier)
            known = self.stages.get(tier)
            if known is None or stage.level.order(stage.best) < known.level.order(known.best):
                self.stages[tier] = stage

    def final_of(self, level: Any, candidate: Any, number: int = 0) -> Result:
        """The answer about a candidate alone in a fresh worker, with the module's text; the n-th time it is asked."""
        key = f"final {number} {self.variant}{level.name} {level.key(candidate)}"
        known = self.journal.get(key)
        if known is None:
            ask: Callable[..., Any] = self.pool.submit
            job = level.job(candidate)
            # What takes too long does so within the limit that it was reduced with.
            hangs = self.current is not None and self.wanted.hangs
            limit = self.current.confirmed.limit if self.current is not None and hangs else FRESH_SECONDS
            known = ask(job, fresh=True, want_module=True, want_ledger=True, timeout=limit).result()
            beside = beside_oracle(self.pool, candidate, self.wanted.comparison, limit)
            if beside is not None:
                known = msgspec.structs.replace(beside.submit(candidate, fresh=True).result(), module=known.module)
            self.journal.put(key, known, module=True)
        self.confirmations += 1
        return known
