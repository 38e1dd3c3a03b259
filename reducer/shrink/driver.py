"""The driver: runs passes on the best candidate until none of them makes progress.

It knows no pass by name, no JAX, and no files. What it guarantees:

- Only a candidate that is strictly smaller (`Tier.order_key`) and fails as wanted is accepted, so it terminates.
- Verdicts are committed in the order of proposals, whatever order the answers come in: the result, the history and
  the counts are the same for any number of workers. More workers answer the likeliest next questions early (`plan`).
- A pass that made no progress on exactly this candidate is not run on it again; one that made none on several
  candidates running is on probation: it waits until the others make no progress either. None is dropped.
- It can be stopped at any moment: each accepted candidate is announced by an event before the next one is looked at.

When the ordinary passes have stopped (that is what `Shrunk.to_fixpoint` counts), the late ones are tried, and then
the whole way once more from the start, with edits in the opposite order: where a failure has two causes, or something
is there twice, the other one may end smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, Generic, TypeVar

from reducer.oracle.base import Oracle
from reducer.oracle.outcome import Result
from reducer.passes.base import Edits, Pass, Proposal
from reducer.shrink.ask import Pause, first_of
from reducer.shrink.course import Course, Habits
from reducer.shrink.model import Event, Shrunk, Tier
from reducer.shrink.run import Run, Spent, StartError

C = TypeVar("C")

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
    pause: Pause = first_of,
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
        pause: waits for answers; an oracle under a simulated clock has its own way.

    Raises:
        StartError: the start does not fail as wanted.
        WorkerError, TargetError: the oracle cannot answer any more.
    """
    run = Run(oracle, wanted, tier, label, events, budget, pause)
    strategy = _Strategy(run, passes)
    try:
        run.begin(start, strategy.course)
        strategy.to_the_end(restart=restart)
        minimal = True
    except Spent:
        minimal = False
    finally:
        run.questions.forget()
    return run.finish(minimal)


class _Strategy(Generic[C]):
    """The phases of a reduction: ordinary passes, late ones, and once more from the start."""

    def __init__(self, run: Run[C], passes: Sequence[Pass[C]]) -> None:
        self._run = run
        self._ordinary = tuple(one for one in passes if not one.late)
        self._late = tuple(one for one in passes if one.late)
        self._habits = Habits()

    def course(self, best: C, key: str, order: Any) -> Course[C]:
        """The first course."""
        return Course(self._ordinary, best, key, order)

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
            # The candidates of a pass are others in another form, even of the same program.
            self._habits = replace(self._habits, idle=frozenset())
            self._rounds(self._ordinary)

    def _lately(self) -> None:
        while self._rounds(self._late):
            self._ordinarily()

    def _oppositely(self) -> None:
        self._rounds(tuple(opposite(one) for one in self._ordinary))
        self._run.stronger_form()

    def _rounds(self, passes: tuple[Pass[C], ...]) -> bool:
        """Run these passes until a round brings nothing; True if any brought something."""
        run = self._run
        end = run.follow(Course(passes, run.best, run.key, run.order, self._habits))
        self._habits = end.habits
        return end.any_progress


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
