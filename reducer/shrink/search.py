"""How the candidates of one pass are walked through: immutable states, so that the driver can look ahead.

A state gives one candidate, and says what comes next if it fails, if it succeeds, or if it changes nothing. The
driver follows them in thought before it knows (`plan`); since nothing is mutated, being wrong costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Generic, Literal, Protocol, TypeVar

from reducer.passes.base import Candidate, Edits, Numbers, Proposal

C = TypeVar("C")


class Search(Protocol[C]):
    """One state of a walk."""

    def candidate(self) -> Candidate[C] | None:
        """What to try in this state; None: the walk is over."""
        ...

    def failed(self) -> Search[C]:
        """The state after the candidate did not fail as wanted, or was no candidate at all."""
        ...

    def unchanged(self) -> Search[C]:
        """The state after the candidate turned out to be the best one itself."""
        ...

    def succeeded(self, best: C) -> Search[C]:
        """The state after the candidate was accepted, and is `best` now (in normal form)."""
        ...

    @property
    def position(self) -> tuple[int, int | None]:
        """How many of the proposals are behind, and how many there are, if that is known."""
        ...


class _Lazy(Generic[C]):
    """A sequence drawn from an iterator as far as it is asked for."""

    def __init__(self, source: Iterable[Candidate[C]]) -> None:
        self.total = len(source) if isinstance(source, Sized) else None
        self._source: Iterator[Candidate[C]] = iter(source)
        self._drawn: list[Candidate[C]] = []

    def get(self, at: int) -> Candidate[C] | None:
        while len(self._drawn) <= at:
            item = next(self._source, None)
            if item is None:
                return None
            self._drawn.append(item)
        return self._drawn[at]


@dataclass(frozen=True, slots=True)
class OneByOne(Generic[C]):
    """Candidates in order. After a success the pass proposes anew, and the walk goes on at the same position.

    What comes before the position has failed a moment ago on a program one edit larger; it is tried again when the
    pass is run again, not now.
    """

    propose: Callable[[C], Proposal[C]]
    items: _Lazy[C]
    at: int = 0

    @property
    def position(self) -> tuple[int, int | None]:
        """The position, and the length of the list if it is one."""
        return self.at, self.items.total

    def candidate(self) -> Candidate[C] | None:
        """The candidate at the position."""
        return self.items.get(self.at)

    def failed(self) -> OneByOne[C]:
        """The next position."""
        return replace(self, at=self.at + 1)

    unchanged = failed

    def succeeded(self, best: C) -> Search[C]:
        """The same position among what the pass proposes for the new best candidate."""
        proposal = self.propose(best)
        if isinstance(proposal, Edits | Numbers):
            return begin(self.propose, best)
        return replace(self, items=_Lazy(proposal))


@dataclass(frozen=True, slots=True)
class Combined(Generic[C]):
    """Edits made together as many as possible: group testing with a step that follows the rate of success.

    The first group of a level is all of it. A group that fails is halved until the one edit that cannot be made is
    known: log2 questions, none asked twice, since what is left of a failed group after its first half succeeded is
    that very failed candidate. After that the next group is as large as the gaps between refused edits are on
    average, supposing that the rest of the level holds one more for every two there were; and it doubles with
    every success.

    `chosen` are the edits accepted, `at` the first undecided one; `[at, end)` has failed as a group if `end` is set;
    `refused` counts the edits of the level that cannot be made, `run` those accepted since the last of them.
    """

    edits: Edits[C]
    chosen: tuple[int, ...] = ()
    at: int = 0
    end: int | None = None
    refused: int = 0
    run: int = 0

    @property
    def position(self) -> tuple[int, int | None]:
        """Edits that are decided, and all."""
        return self.at, self.edits.count

    def _level(self, at: int) -> tuple[int, int]:
        """First and last position (exclusive) of the level around a position."""
        ends = (*self.edits.levels, self.edits.count)
        return max((e for e in ends if e <= at), default=0), next((e for e in ends if e > at), self.edits.count)

    def _group(self) -> tuple[int, ...]:
        first, last = self._level(self.at)
        if self.end is not None:
            stop = self.at + (self.end - self.at) // 2
        elif self.refused == 0:
            stop = last
        else:
            gap = (self.at - first + (last - self.at) / 2) / (self.refused + 1)
            stop = min(last, self.at + max(1, round(0.7 * gap), 2 * self.run))
        return tuple(range(self.at, stop))

    def _moved(self, at: int, chosen: tuple[int, ...], *, refused: bool) -> Combined[C]:
        if self._level(at)[0] == at:
            return replace(self, chosen=chosen, at=at, end=None, refused=0, run=0)
        run = 0 if refused else self.run + at - self.at
        end = None if refused else self.end
        return replace(self, chosen=chosen, at=at, end=end, refused=self.refused + refused, run=run)

    def candidate(self) -> Candidate[C] | None:
        """All accepted edits and the next group."""
        if self.at >= self.edits.count:
            return None
        apply: Callable[[Sequence[int]], C] = self.edits.apply
        positions = self.chosen + self._group()
        return lambda: apply(positions)

    def failed(self) -> Combined[C]:
        """Halve the group; a group of one is refused."""
        group = self._group()
        if len(group) == 1:
            return self._moved(self.at + 1, self.chosen, refused=True)
        return replace(self, end=self.at + len(group))

    def unchanged(self) -> Combined[C]:
        """As a success: the edits are made already, by those before them."""
        group = self._group()
        at = self.at + len(group)
        chosen = self.chosen + group
        if self.end is not None and self.end - at == 1:
            return self._moved(self.end, chosen, refused=True)
        return self._moved(at, chosen, refused=False)

    def succeeded(self, best: C) -> Combined[C]:  # noqa: ARG002 - the edits are those of the program it began with
        """Keep the group, go on behind it."""
        return self.unchanged()


@dataclass(frozen=True, slots=True)
class Descent(Generic[C]):
    """Numbers lowered one after the other: to the floor, else by halves, else by one, else no more.

    Where one less succeeds after a half failed, the least number in between is found by bisection. So a number that
    cannot be lowered costs three questions, and one that can costs a logarithm.

    `values` are those of the best candidate, `at` the number in hand, `low` what has failed for it (or one below the
    floor), `stage` what is tried next: its floor, the middle between what failed and what did not, or one less.
    """

    numbers: Numbers[C]
    values: tuple[int, ...]
    at: int = 0
    low: int | None = None
    stage: Literal["floor", "half", "less", "bisect"] = "floor"

    @property
    def position(self) -> tuple[int, int | None]:
        """Numbers that are settled, and all."""
        return self.at, len(self.values)

    def _next(self) -> int:
        high, low = self.values[self.at], self.low
        if self.stage == "floor" or low is None:
            return self.numbers.floors[self.at]
        return high - 1 if self.stage == "less" else high // 2 if self.stage == "half" else (low + high) // 2

    def _settled(self) -> Descent[C]:
        """This state, or the next one in which there is something to try."""
        state = self
        while state.at < len(state.values):
            high, floor = state.values[state.at], state.numbers.floors[state.at]
            low = floor - 1 if state.low is None else state.low
            if high - low > 1:
                if state.stage != "half" or high // 2 > low:
                    return state
                state = replace(state, stage="less")
            else:
                state = replace(state, at=state.at + 1, low=None, stage="floor")
        return state

    def candidate(self) -> Candidate[C] | None:
        """The best candidate's numbers with the one in hand lowered."""
        if self.at >= len(self.values):
            return None
        apply: Callable[[Sequence[int]], C] = self.numbers.apply
        values = (*self.values[: self.at], self._next(), *self.values[self.at + 1 :])
        return lambda: apply(values)

    def failed(self) -> Descent[C]:
        """Something less low; nothing, if one less failed."""
        if self.stage == "less":
            return replace(self, at=self.at + 1, low=None, stage="floor")._settled()
        stages: dict[str, Literal["half", "less", "bisect"]] = {"floor": "half", "half": "less", "bisect": "bisect"}
        return replace(self, low=self._next(), stage=stages[self.stage])._settled()

    unchanged = failed

    def succeeded(self, best: C) -> Descent[C]:  # noqa: ARG002 - the numbers are those of the program it began with
        """Lower still."""
        values = (*self.values[: self.at], self._next(), *self.values[self.at + 1 :])
        stage: Literal["half", "bisect"] = "half" if self.stage == "half" else "bisect"
        return replace(self, values=values, stage=stage)._settled()


def begin(propose: Callable[[C], Proposal[C]], best: C) -> Search[C]:
    """The first state of a pass's walk on a candidate."""
    proposal = propose(best)
    if isinstance(proposal, Edits):
        return Combined(proposal)
    if isinstance(proposal, Numbers):
        return Descent(proposal, proposal.values)._settled()
    return OneByOne(propose, _Lazy(proposal))
