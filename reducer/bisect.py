"""Between which releases does what happens to a program change?

A plain search by halves over an ordered list, for a question with more than two answers and with places that cannot
be asked: where the ends of an interval differ, something between them changes, and both halves may hold a change.
An interval whose ends agree is taken to be the same throughout; that is the assumption of every bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Boundary:
    """The state is `before` on release `last` and `after` on release `first`; `skipped`, between, cannot be judged."""

    last: str
    first: str
    before: str
    after: str
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bisection:
    """`boundaries` in the order of releases; `states` of what was asked, None for what could not be judged."""

    boundaries: tuple[Boundary, ...]
    states: dict[str, str | None]

    @property
    def tried(self) -> tuple[str, ...]:
        """The releases that were judged."""
        return tuple(release for release, state in self.states.items() if state is not None)

    @property
    def skipped(self) -> tuple[str, ...]:
        """The releases that were asked and could not be judged."""
        return tuple(release for release, state in self.states.items() if state is None)


def bisect(
    releases: Sequence[str], probe: Callable[[str], str | None], *, cheap: Collection[str] = frozenset()
) -> Bisection:
    """Find the boundaries between the ends of `releases`.

    Args:
        releases: in their order.
        probe: the state of a release, such as the family of a failure; None where it cannot be judged. It is asked
            at most once for each.
        cheap: releases that cost less to ask; of an interval's middle half one of them is preferred.
    """
    states: dict[str, str | None] = {}

    def state(at: int) -> str | None:
        release = releases[at]
        if release not in states:
            states[release] = probe(release)
        return states[release]

    def judged(places: Sequence[int]) -> int | None:
        return next((at for at in places if state(at) is not None), None)

    def between(low: int, high: int) -> list[Boundary]:
        if states[releases[low]] == states[releases[high]]:
            return []
        middle = judged(_middles(low, high, [releases[at] in cheap for at in range(len(releases))]))
        if middle is None:
            before, after = states[releases[low]], states[releases[high]]
            assert before is not None
            assert after is not None
            return [Boundary(releases[low], releases[high], before, after, tuple(releases[low + 1 : high]))]
        return between(low, middle) + between(middle, high)

    first = judged(range(len(releases)))
    last = judged(range(len(releases) - 1, -1, -1))
    found = between(first, last) if first is not None and last is not None else []
    return Bisection(tuple(found), {release: states[release] for release in releases if release in states})


def _middles(low: int, high: int, cheap: Sequence[bool]) -> list[int]:
    """The places inside an interval, in the order to ask: cheap ones of its middle half, then the most central."""
    centre, quarter = (low + high) / 2, (high - low) / 4
    return sorted(
        range(low + 1, high), key=lambda at: (not (cheap[at] and abs(at - centre) <= quarter), abs(at - centre))
    )
