"""Asking again: is a failure there each time, alone in a new worker?"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from reducer.oracle.outcome import Answer, Result, Skipped, word
from reducer.oracle.signature import signature

if TYPE_CHECKING:
    from reducer.oracle.jobs import Job
    from reducer.oracle.pool import Pool


def identity(answer: Answer) -> str:
    """Return the text of the answer's signature, or its word when it has none: what repeats are compared by."""
    found = None if isinstance(answer, Skipped) else signature(answer)
    return found.text if found is not None else word(answer)


class Confirmation(msgspec.Struct, frozen=True):
    """The repeats of one job. `counts` is by signature text, or by the outcome's word where it has none."""

    results: tuple[Result, ...]
    counts: dict[str, int]

    @classmethod
    def of(cls, results: list[Result]) -> Confirmation:
        """Count `results`."""
        return cls(tuple(results), dict(Counter(identity(result.answer) for result in results)))

    @property
    def stable(self) -> bool:
        """Whether all repeats agree."""
        return len(self.counts) == 1

    def confirms(self, answer: Answer) -> bool:
        """Whether every repeat ended like `answer`."""
        return self.stable and identity(answer) in self.counts


def confirm(pool: Pool, job: Job, times: int = 2, *, timeout: float | None = None) -> Confirmation:
    """Repeat `job` `times` times in a new worker and wait for the counts. Raises what the pool raises."""
    return pool.confirm(job, times, timeout=timeout, priority=1).result()
