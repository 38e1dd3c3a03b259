"""How likely candidates are to be accepted: what is supposed of passes, and what was seen of them in this run.

It decides how many candidates are skipped over at once and which questions are asked early, and so how long a
reduction takes; never what is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from reducer.passes.base import Pass

C = TypeVar("C")

#: How many answers a supposition weighs as much as.
WEIGHT: Final = 5


@dataclass(frozen=True, slots=True)
class Luck:
    """Accepted candidates and all, by pass and what became of the one before in the same run of it."""

    counts: Mapping[tuple[str, bool | None], tuple[int, int]] = field(default_factory=dict)

    def noted(self, name: str, last: bool | None, *, accepted: bool) -> Luck:
        """With one more verdict."""
        good, all_ = self.counts.get((name, last), (0, 0))
        return Luck({**self.counts, (name, last): (good + accepted, all_ + 1)})

    def of(self, one: Pass[C], last: bool | None) -> float:
        """The chance of the next candidate of a pass, above 0 and below 1."""
        supposed = one.chances.first if last is None else one.chances.lucky if last else one.chances.unlucky
        good, all_ = self.counts.get((one.name, last), (0, 0))
        return (good + WEIGHT * supposed) / (all_ + WEIGHT)
