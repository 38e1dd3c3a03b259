"""The driver: runs passes on the best candidate until none of them makes progress.

It knows no pass by name, no JAX, and no files. What it guarantees:

- Only a candidate that is strictly smaller (`Tier.order_key`) and fails as wanted is accepted, so it terminates.
- Verdicts are committed in the order of proposals, whatever order the answers come in: the result, the history and
  the counts are the same for any number of workers. More workers answer the next questions early, assuming that the
  current one fails, which nine in ten do.
- A pass that made no progress on exactly this candidate is not run on it again; one that made none on several
  candidates running is on probation: it waits until the others make no progress either. None is dropped.
- It can be stopped at any moment: each accepted candidate is announced by an event before the next one is looked at.

When the ordinary passes have stopped (that is what `Shrunk.to_fixpoint` counts), the late ones are tried, and then
the whole way once more from the start, with edits in the opposite order: where a failure has two causes, or something
is there twice, the other one may end smaller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, Generic, TypeVar

from reducer.oracle.base import Oracle
from reducer.oracle.outcome import Result
from reducer.passes.base import Edits, Pass, Proposal
from reducer.shrink.model import Event, Shrunk, Tier
from reducer.shrink.run import Run, Spent, StartError

C = TypeVar("C")

#: Runs without progress, one after the other, after which a pass is on probation.
PATIENCE: Final = 3
#: What the second way from the start may cost: half of the first, and so many compiles more.
SECOND: Final = 10


def shrink(
    start: C,
    oracle: Oracle[C],
    wanted: Callable[[Result], bool],
    *,
    tier: Tier[C],
    passes: Sequence[Pass[C]],
    budget: int | None = None,
    restart: bool = True,
    label: Callable[[Result], str | None] | None = None,
    events: Callable[[Event[C]], None] | None = None,
) -> Shrunk[C]:
    """Make `start` smaller while it fails as wanted.

    Args:
        start: fails as wanted, in one of the tier's normal forms at least.
        oracle: answers candidates; one target, fixed for the run.
        wanted: tells the failure that is being reduced from everything else.
        tier: how candidates are handled.
        passes: tried in this order, again and again, until a whole round brings nothing.
        budget: most compiles (`Shrunk.compiles`) before stopping early.
        restart: go the whole way once more with edits in the opposite order.
        label: names any failure, so that others met on the way are kept; None for what is no failure.
        events: is told what happens. It may raise to stop the run; `KeyboardInterrupt` does as well.

    Raises:
        StartError: the start does not fail as wanted.
        WorkerError, TargetError: the oracle cannot answer any more.
    """
    run = Run(oracle, wanted, tier, label, events, budget)
    try:
        run.begin(start)
        _Strategy(run, passes).to_the_end(restart=restart)
        minimal = True
    except Spent:
        minimal = False
    finally:
        run.questions.forget()
    return run.finish(minimal)


class _Strategy(Generic[C]):
    """Which pass is run when."""

    def __init__(self, run: Run[C], passes: Sequence[Pass[C]]) -> None:
        self._run = run
        self._ordinary = [one for one in passes if not one.late]
        self._late = [one for one in passes if one.late]
        self._idle: set[tuple[str, str]] = set()
        self._once: set[str] = set()
        self._failed: Counter[str] = Counter()

    def to_the_end(self, *, restart: bool) -> None:
        """Everything, until nothing brings anything. A spent budget leaves by exception."""
        run = self._run
        start = run.standing()
        self._ordinarily()
        run.to_fixpoint = run.questions.compiles
        self._lately()
        if restart and run.path:
            before = run.questions.compiles
            better = run.attempt(start, run.to_fixpoint // 2 + SECOND, self._oppositely)
            run.restarted = run.questions.compiles - before
            if better:
                self._ordinarily()
                self._lately()

    def _ordinarily(self) -> None:
        self._rounds(self._ordinary)
        while self._run.stronger_form():
            self._rounds(self._ordinary)

    def _lately(self) -> None:
        while self._rounds(self._late):
            self._ordinarily()

    def _oppositely(self) -> None:
        self._rounds([opposite(one) for one in self._ordinary])
        self._run.stronger_form()

    def _rounds(self, passes: Sequence[Pass[C]]) -> bool:
        """Run these passes until a round brings nothing; True if any brought something."""
        any_progress = False
        while self._round(passes):
            any_progress = True
        return any_progress

    def _round(self, passes: Sequence[Pass[C]]) -> bool:
        """One round: the passes in their order, then those on probation if the others brought nothing."""
        patient = [one for one in passes if self._failed[one.name] < PATIENCE]
        probation = [one for one in passes if self._failed[one.name] >= PATIENCE]
        progress = False
        for group in (patient, probation):
            for i, one in enumerate(group):
                left = len(group) - 1 - i + (len(probation) if group is patient else 0)
                progress = self._once_more(one, left) or progress
            if progress:
                break
        return progress

    def _once_more(self, one: Pass[C], left: int) -> bool:
        key = self._run.key
        if (one.name, key) in self._idle or (one.one_shot and one.name in self._once):
            return False
        self._once.add(one.name)
        if self._run.run_pass(one, left):
            self._failed[one.name] = 0
            return True
        self._failed[one.name] += 1
        self._idle.add((one.name, key))
        return False


def opposite(one: Pass[C]) -> Pass[C]:
    """The pass with its edits in the opposite order within each level; its counts are kept apart."""

    def propose(candidate: C) -> Proposal[C]:
        proposal = one.propose(candidate)
        if not isinstance(proposal, Edits):
            return proposal
        ends = (0, *proposal.levels, proposal.count)
        order = [k for a, b in pairwise(ends) for k in reversed(range(a, b))]
        apply = proposal.apply
        return Edits(proposal.count, lambda chosen: apply(sorted(order[k] for k in chosen)), proposal.levels)

    return replace(one, name=f"restart/{one.name}", propose=propose)


__all__ = ["StartError", "opposite", "shrink"]
