"""Which pass is run when: the order of passes, rounds and probation, as an immutable state.

Nothing here asks the oracle. A course gives the next candidate, and what comes next if it is accepted and if it is
not; so it can be followed in thought, with verdicts that are guessed (`plan`), as well as with real ones (`run`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeAlias, TypeVar

from reducer.passes.base import Candidate, Pass, Situation
from reducer.shrink.ask import Prepared, Standing
from reducer.shrink.luck import Luck
from reducer.shrink.search import Search, begin

C = TypeVar("C")

#: Runs without progress, one after the other, after which a pass is on probation.
PATIENCE: Final = 3


@dataclass(frozen=True, slots=True)
class Habits:
    """What is remembered of passes from round to round.

    `idle`: (pass, candidate's key) without progress. `once`: passes that have been run. `stalled`: runs without
    progress, one after the other. `luck`: how candidates fared.
    """

    idle: frozenset[tuple[str, str]] = frozenset()
    once: frozenset[str] = frozenset()
    stalled: Mapping[str, int] = field(default_factory=dict)
    luck: Luck = field(default_factory=Luck)

    def begun(self, name: str) -> Habits:
        """A pass is run."""
        return replace(self, once=self.once | {name})

    def ended(self, name: str, key: str, *, gained: bool) -> Habits:
        """A pass is through; `key` is of the candidate it ended on."""
        if gained:
            return replace(self, stalled={**self.stalled, name: 0})
        stalled = {**self.stalled, name: self.stalled.get(name, 0) + 1}
        return replace(self, idle=self.idle | {(name, key)}, stalled=stalled)


@dataclass(frozen=True, slots=True)
class Began(Generic[C]):
    """A pass begins on this candidate; `left` passes of the round come after it."""

    one: Pass[C]
    best: C
    left: int


@dataclass(frozen=True, slots=True)
class Passed:
    """A proposal that needs no question: "invalid", "unchanged", "larger" or "hopeless"."""

    standing: Standing


@dataclass(frozen=True, slots=True)
class Ended(Generic[C]):
    """A pass is through, on this candidate."""

    one: Pass[C]
    best: C


Note: TypeAlias = Began[C] | Passed | Ended[C]

#: Candidate builder, the best one's key and order -> the candidate as it stands before the oracle.
Prepare: TypeAlias = Callable[[Candidate[C], str, Any], Prepared[C]]


@dataclass(frozen=True, slots=True)
class Course(Generic[C]):
    """Passes run in rounds until a round brings nothing.

    `best`, `key` and `order` are of the candidate that is the best one by now. `queue` are the passes of the round
    that are still to come, `stalled` those on probation, which come if the others bring nothing. `one` is the pass
    that is run, `search` its walk, `gained` says whether it brought anything, `situation` where its candidate stands.
    """

    passes: tuple[Pass[C], ...]
    best: C
    key: str
    order: Any
    habits: Habits = field(default_factory=Habits)
    queue: tuple[Pass[C], ...] = ()
    stalled: tuple[Pass[C], ...] = ()
    one: Pass[C] | None = None
    search: Search[C] | None = None
    gained: bool = False
    situation: Situation = "first"
    progress: bool = False
    any_progress: bool = False

    def started(self) -> Course[C]:
        """The first round."""
        waits = [self.habits.stalled.get(one.name, 0) >= PATIENCE for one in self.passes]
        return replace(
            self,
            queue=tuple(one for one, wait in zip(self.passes, waits, strict=True) if not wait),
            stalled=tuple(one for one, wait in zip(self.passes, waits, strict=True) if wait),
            progress=False,
        )

    def settled(self, prepare: Prepare[C]) -> tuple[Course[C], Prepared[C] | None, Sequence[Note[C]]]:
        """Go on to the next candidate that the oracle has to be asked about; None if the course is over."""
        course, notes = self, list[Note[C]]()
        while True:
            if course.search is None:
                following = course._next_pass()
                if following is None:
                    return course, None, notes
                course = following
                assert course.one is not None
                notes.append(Began(course.one, course.best, len(course.queue) + len(course.stalled)))
            search = course.search
            assert search is not None
            build = search.candidate()
            if build is None:
                assert course.one is not None
                notes.append(Ended(course.one, course.best))
                course = course._pass_ended()
                continue
            prepared = prepare(build, course.key, course.order)
            if prepared.standing in ("open", "known"):
                return course, prepared, notes
            notes.append(Passed(prepared.standing))
            unchanged = prepared.standing == "unchanged"
            course = replace(course, search=search.unchanged() if unchanged else search.failed())

    def after(self, prepared: Prepared[C], *, accepted: bool) -> Course[C]:
        """The course after the verdict on its candidate."""
        assert self.search is not None
        assert self.one is not None
        luck = self.habits.luck.noted(self.one, self.situation, accepted=accepted)
        situation: Situation = "lucky" if accepted else "unlucky"
        course = replace(self, habits=replace(self.habits, luck=luck), situation=situation)
        if not accepted:
            return replace(course, search=self.search.failed())
        best = prepared.candidate
        assert best is not None
        search = self.search.succeeded(best)
        return replace(course, best=best, key=prepared.key, order=prepared.order, search=search, gained=True)

    def _next_pass(self) -> Course[C] | None:
        """The next pass that is not idle on the best candidate, in a new round if there is none in this one."""
        course = self
        while True:
            while course.queue:
                one, course = course.queue[0], replace(course, queue=course.queue[1:])
                if not course._is_idle(one):
                    situation: Situation = "again" if one.name in course.habits.once else "first"
                    habits = course.habits.begun(one.name)
                    search = begin(one.propose, course.best)
                    return replace(course, one=one, search=search, gained=False, situation=situation, habits=habits)
            if course.progress:
                course = replace(course, any_progress=True).started()
            elif course.stalled:
                course = replace(course, queue=course.stalled, stalled=())
            else:
                return None

    def _is_idle(self, one: Pass[C]) -> bool:
        return (one.name, self.key) in self.habits.idle or (one.one_shot and one.name in self.habits.once)

    def _pass_ended(self) -> Course[C]:
        assert self.one is not None
        habits = self.habits.ended(self.one.name, self.key, gained=self.gained)
        return replace(self, one=None, search=None, habits=habits, progress=self.progress or self.gained)
