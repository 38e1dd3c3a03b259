"""Asking again: is a failure there each time, alone in a new worker?"""

from __future__ import annotations

from collections import Counter

import msgspec

from reducer.oracle.outcome import Result, word
from reducer.oracle.verdict import verdict


def identity(result: Result) -> str:
    """Return the text of the result's signature, or its word when it has none: what repeats are compared by."""
    found = verdict(result).signature
    return found.text if found is not None else word(result.answer)


class Confirmation(msgspec.Struct, frozen=True):
    """The repeats of one job. `counts` is by signature text, or by the outcome's word where it has none."""

    results: tuple[Result, ...]
    counts: dict[str, int]

    @classmethod
    def of(cls, results: list[Result]) -> Confirmation:
        """Count `results`."""
        return cls(tuple(results), dict(Counter(map(identity, results))))

    @property
    def rate(self) -> dict[str, float]:
        """The share of each way it ended."""
        return {name: round(count / len(self.results), 3) for name, count in self.counts.items()}

    @property
    def stable(self) -> bool:
        """Whether all repeats agree."""
        return len(self.counts) == 1

    def confirms(self, result: Result) -> bool:
        """Whether every repeat ended like `result`."""
        return self.stable and identity(result) in self.counts
