"""How likely candidates are to be accepted: what is supposed of passes, and what was seen of them in this run.

It decides how many candidates are skipped over at once and which questions are asked early: how long a reduction takes,
and at which of several minima it ends. Whatever is accepted was asked about all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from reducer.passes.base import Pass, Situation

C = TypeVar("C")

#: How many answers a supposition weighs as much as.
WEIGHT: Final = 5


@dataclass(frozen=True, slots=True)
class Luck:
    """Accepted candidates and all, by pass and situation. A pass the other way round is the same pass."""

    counts: Mapping[tuple[str, Situation], tuple[int, int]] = field(default_factory=dict)

    def noted(self, one: Pass[C], situation: Situation, *, accepted: bool) -> Luck:
        """With one more verdict."""
        key = (_plain(one), situation)
        good, all_ = self.counts.get(key, (0, 0))
        return Luck({**self.counts, key: (good + accepted, all_ + 1)})

    def of(self, one: Pass[C], situation: Situation) -> float:
        """The chance of the next candidate, above 0 and below 1."""
        supposed: float = getattr(one.chances, situation)
        good, all_ = self.counts.get((_plain(one), situation), (0, 0))
        return (good + WEIGHT * supposed) / (all_ + WEIGHT)


def _plain(one: Pass[C]) -> str:
    return one.name.rpartition("/")[2]
