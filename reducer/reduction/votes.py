"""Flaky failures: how often a candidate is asked, and how often it must fail, to count as failing.

The start was run `runs` times and failed as wanted in `failing` of them. A candidate is asked at most `most` times and
must fail at least `needed` times: at least half as often as the start does, so that a reduction does not creep to ever
rarer failures, one accepted step after the other. `most` is the least number for which a candidate that fails as often
as the start is refused in at most one of twenty.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

#: Runs of a start that did not fail each time, to know its rate.
MORE_RUNS: Final = 8
#: Most runs of one candidate. A start that needs more fails too rarely to be reduced.
MOST_VOTES: Final = 20
_REFUSED_AT_MOST: Final = 0.05


class Votes(msgspec.Struct, frozen=True):
    """A candidate fails if it did so `needed` times within `most` runs. One and one: each answer is believed."""

    needed: int = 1
    most: int = 1

    @property
    def flaky(self) -> bool:
        """Whether a candidate is run more than once."""
        return self.most > 1

    def decided(self, failing: int, passing: int) -> bool | None:
        """Whether so many answers say that it fails; None if more are needed."""
        if failing >= self.needed:
            return True
        return False if passing > self.most - self.needed else None


def votes_for(failing: int, runs: int) -> Votes | None:
    """The votes for a start that failed as wanted in `failing` of `runs` runs, at least one.

    None: it fails too rarely, and would take more than `MOST_VOTES` runs to tell.
    """
    assert 0 < failing <= runs
    if failing == runs:
        return Votes()
    rate = failing / runs
    for most in range(2, MOST_VOTES + 1):
        needed = max(1, math.ceil(most * rate / 2))
        if sum(_chance(most, times, rate) for times in range(needed)) <= _REFUSED_AT_MOST:
            return Votes(needed, most)
    return None


def _chance(runs: int, times: int, rate: float) -> float:
    return math.comb(runs, times) * rate**times * (1 - rate) ** (runs - times)
