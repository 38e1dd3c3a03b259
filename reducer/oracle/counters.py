"""What a pool counts, from all its threads."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec

from reducer.oracle.outcome import Invalid, Result, Skipped


class PoolStats(msgspec.Struct, frozen=True):
    """What a pool has done so far.

    `compiled` counts jobs that reached the compiler. `busy_seconds` is worker time spent lowering and
    compiling, `start_seconds` spent starting workers, both summed over all workers.
    """

    queued: int
    running: int
    answered: int
    cached: int
    skipped: int
    invalid: int
    compiled: int
    deaths: int
    starts: int
    busy_seconds: float
    start_seconds: float


class Counters:
    """Counts jobs, workers and seconds; any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count: Counter[str] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def taken(self) -> None:
        """A job runs."""
        with self._lock:
            self._count["running"] += 1

    def left(self) -> None:
        """A job runs no more."""
        with self._lock:
            self._count["running"] -= 1

    def answered(self, results: Sequence[Result]) -> None:
        """A job has its answers."""
        with self._lock:
            for result in results:
                self._count["answered"] += 1
                self._count["cached"] += result.cached
                self._count["skipped"] += isinstance(result.answer, Skipped)
                self._count["invalid"] += isinstance(result.answer, Invalid)
                self._count["compiled"] += result.seconds_compile > 0

    def note(self, what: str, seconds: float) -> None:
        """Count an event of a slot: "busy", "start" or "death"."""
        with self._lock:
            self._seconds[what] += seconds
            self._count[{"start": "starts", "death": "deaths"}.get(what, what)] += 1

    def note_fresh(self, what: str, seconds: float) -> None:
        """As `note`, at the place for fresh jobs: its work is none of the N workers' and does not make them busy."""
        if what != "busy":
            self.note(what, seconds)

    def stats(self, queued: int) -> PoolStats:
        """The counters, with how many jobs are waiting."""
        with self._lock:
            count, seconds = self._count, self._seconds
            return PoolStats(
                queued=queued,
                running=count["running"],
                answered=count["answered"],
                cached=count["cached"],
                skipped=count["skipped"],
                invalid=count["invalid"],
                compiled=count["compiled"],
                deaths=count["deaths"],
                starts=count["starts"],
                busy_seconds=seconds["busy"],
                start_seconds=seconds["start"],
            )
