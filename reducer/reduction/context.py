"""The state of one reduction, and how it asks: shared by the modules that go through its steps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from reducer.corpus.case import Tier
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
from reducer.shrink import StartError

#: Seconds that the last answer about a minimum may take, alone in a fresh worker.
FRESH_SECONDS: Final = 900.0


@dataclass
class Run:
    """A reduction under way. `target` and `wanted` become smaller and settled; `stages` are those of tiers reached.

    `opened` holds the pool of now.
    """

    request: Request
    open_pool: OpenPool
    watcher: Watcher
    opened: ExitStack
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
    _cached: bool = True

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
        return self._variant(self.target)

    def _variant(self, target: Target) -> str:
        if target == self.request.target:
            return ""
        return f"{dict(target.options)} {target.topology} "

    def move_to(self, target: Target) -> None:
        """Go on with another target: its workers take the place of those of now.

        Raises:
            TargetError, WorkerError: there is no compiler.
        """
        self.target = target
        self._reopen()

    def _reopen(self) -> None:
        self.opened.close()
        pool = self.open_pool(self.target, self.request.jobs, use_cache=self._cached)
        self.pool = self.opened.enter_context(pool)

    def asking(
        self,
        stage: Stage,
        *,
        placed: bool,
        kept: bool = True,
        pool: Pool | None = None,
        target: Target | None = None,
    ) -> Asking[Any]:
        """The oracle of a stage. `placed`: what places nothing in host memory is not compiled.

        `kept`: nor what lacks something that is to be kept. `pool`, `target`: workers of another target to ask instead.
        """
        confirmed = stage.confirmed
        return Asking(
            pool or self._asked(confirmed.votes),
            stage.level,
            self.journal,
            wanted=self.wanted,
            keeps=stage.keeps if kept else lambda _: True,
            votes=confirmed.votes,
            timeout=confirmed.limit,
            require_host_placement=placed,
            judge=self.script,
            name_and_text=lambda candidate: self.judged(stage.level, candidate, confirmed.result),
            variant=self._variant(target or self.target),
            comparison=self.wanted.comparison,
            want_time=self.wanted.hangs,
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
            StartError: it does not fail; `stages` are as before.
        """
        began, earlier = self.clock.seconds, stage.compiles
        before = sum(other.compiles for other in self.stages.values() if other is not stage)
        beside = self.stages.get(stage.tier)
        self.current = self.stages[stage.tier] = stage
        minimal, stage.minimal = stage.minimal, False
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
                placed=stage.confirmed.placed and self.script is None,  # a script may find anything interesting
                budget=None if budget is None else max(budget - before - earlier, 0),
                label=self.wanted.label,
                events=follower.event,
            )
            stage.best, stage.result = shrunk.program, shrunk.result
            stage.compiles, stage.minimal = earlier + shrunk.compiles, shrunk.minimal
            if stage.to_fixpoint is None and shrunk.minimal:
                stage.to_fixpoint = shrunk.to_fixpoint
        except StartError:
            stage.minimal = minimal
            self.stages.pop(stage.tier)
            if beside is not None:
                self.stages[stage.tier] = beside
            raise
        finally:
            stage.seconds += self.clock.seconds - began
            if self.stages.get(stage.tier) is stage:
                self._file(stage, beside)

    def _asked(self, votes: Votes) -> Pool:
        """The workers to ask. A flaky answer must not be believed because it was given before: no cache."""
        if votes.flaky and self._cached:
            self._cached = False
            self._reopen()
        return self.pool

    def _file(self, stage: Stage, beside: Stage | None) -> None:
        """Put a stage under the tier its minimum is of: a program that lost its policy is a placement.

        `beside`: what its own tier had before. Of two minima of one tier the smaller stays, with the compiles of both.
        """
        if stage.tier == "program" and level_of(stage.best).name == "placement":
            del self.stages[stage.tier]
            stage.level = level_at("placement")
            beside = self.stages.get("placement")
        if beside is None or beside is stage:
            self.stages[stage.tier] = stage
            return
        smaller = tuple(stage.level.order(stage.best)) < tuple(beside.level.order(beside.best))
        kept, gone = (stage, beside) if smaller else (beside, stage)
        kept.compiles += gone.compiles
        kept.seconds += gone.seconds
        kept.finds = gone.finds | kept.finds
        self.stages[stage.tier] = kept

    def final_of(self, level: Any, candidate: Any, number: int = 0, *, limit: float = FRESH_SECONDS) -> Result:
        """The answer about a candidate alone in a fresh worker, with the module's text; the n-th time it is asked.

        `limit`: what takes too long does so within the seconds that it was reduced with; not used for anything else.
        """
        key = f"final {number} {self.variant}{level.name} {level.key(candidate)}"
        known = self.journal.get(key)
        if known is None:
            ask: Callable[..., Any] = self.pool.submit
            job = level.job(candidate)
            limit = limit if self.wanted.hangs else FRESH_SECONDS
            known = ask(job, fresh=True, want_module=True, want_ledger=True, timeout=limit).result()
            beside = beside_oracle(self.pool, candidate, self.wanted.comparison, limit)
            if beside is not None:
                known = msgspec.structs.replace(beside.submit(candidate, fresh=True).result(), module=known.module)
            self.journal.put(key, known, module=True)
        self.confirmations += 1
        return known
