"""The hunt: draw programs, compile them, keep the failures, shrink each new one, save it.

The caller's thread keeps the workers fed with generated programs; `Reductions` confirms and shrinks new failures
beside it. Both put their candidates to one pool, where a reduction's go first. Nothing here knows JAX, processes or
files: the oracle, the reducer and the corpus are handed in.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Protocol

import msgspec

from reducer.errors import ProgramError
from reducer.hunt.besides import Besides
from reducer.hunt.finds import Find, Rate, Snapshot, Summary, summary_of
from reducer.hunt.intake import Intake
from reducer.hunt.ledger import Ledger
from reducer.hunt.reductions import Workshop
from reducer.ir.codec import identity
from reducer.ir.equations import Program
from reducer.oracle.base import Oracle
from reducer.oracle.outcome import Result
from reducer.oracle.verdict import KINDS, Kind

#: Jobs waiting per worker beside the one it runs: enough that it never idles, few enough that a new failure's
#: reduction need not wait.
_AHEAD = 2
#: Programs drawn for each place in the queue before answers are looked at again.
_DRAWS = 8
#: Seconds between two looks at the clock, the stop flag and the display.
_TICK = 0.1
_SHOW_EVERY = 0.2
_CHECKPOINT_EVERY = 5.0
#: Seconds for a confirmation or a last save to come to its end when the hunt stops.
_CLOSING = 15.0


class Exhausted(Exception):
    """There are no more programs: generating ends before the time is up."""


class Programs(Protocol):
    """Where programs come from: `hunt.source.Source`, which never ends, or a list."""

    def poll(self) -> Program | None:
        """A program, or None if none is ready. Raises `Exhausted` when there will be none."""
        ...

    def close(self) -> None:
        """Stop drawing."""
        ...


class Hunt:
    """One hunt; `run` it once."""

    def __init__(
        self,
        programs: Programs,
        oracle: Oracle[Program],
        workshop: Workshop,
        *,
        seconds: float,
        grace: float = 60.0,
        seed: int = 0,
        corpus: str = "",
        notify: Callable[[str], None] = lambda _: None,
        progress: Callable[[Snapshot], None] = lambda _: None,
        checkpoint: Callable[[], None] = lambda: None,
        busy_seconds: Callable[[], float] = lambda: 0.0,
        compiles: Callable[[], int] | None = None,
        backlog: Sequence[Find] = (),
        kinds: Collection[Kind] = KINDS,
        besides: Besides | None = None,
    ) -> None:
        """Hunt for `seconds`; confirming and shrinking what was found get up to `grace` seconds more.

        `notify` gets one line per event, `progress` a snapshot several times a second, `checkpoint` is called now and
        then so that a killed hunt can be resumed. `busy_seconds` is read for the worker-busy fraction, `compiles` for
        the rate of everything compiled. `backlog` are finds of an earlier hunt still to be shrunk. `kinds` are the
        sorts of failure to look for; lost offloads need an oracle that gives memory ledgers, and `besides` compares
        programs with others that mean the same.
        """
        self._programs = programs
        self._oracle = oracle
        self._seconds, self._grace = seconds, grace
        self._seed, self._corpus = seed, corpus
        self._notify, self._progress, self._checkpoint = notify, progress, checkpoint
        self._kinds = frozenset(kinds)
        self._busy, self._compiles = busy_seconds, compiles
        self._ledger = Ledger(workshop, notify=notify, elapsed=lambda: self.elapsed, kinds=self._kinds)
        self.tally = self._ledger.tally
        self._reductions = self._ledger.reductions
        self._intake = Intake(self._ledger, self._kinds, besides, notify)
        self._identities: set[str] = set()
        self._stop = threading.Event()
        self._hurry = threading.Event()
        self._begun = time.monotonic()
        self._end: float | None = None
        self._finishing = False
        self._shown = self._saved = 0.0
        self._rate = Rate()
        self._busy_fraction = 0.0
        for find in backlog:
            self._ledger.take_over(find)

    @property
    def elapsed(self) -> float:
        """Seconds since the hunt began."""
        return time.monotonic() - self._begun

    def interrupt(self) -> None:
        """End soon, with everything saved; may be called from a signal handler. A second call does not wait."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    def run(self) -> Summary:
        """Hunt until time is up, Ctrl-C or `interrupt`; everything found so far is saved either way.

        Raises:
            ScanshrinkError: the workers, the generator or the corpus gave up; what was found before is saved.
        """
        self._begun = time.monotonic()
        self._reductions.start()
        try:
            self._generate()
            self._finish()
        except KeyboardInterrupt:
            self.interrupt()
        finally:
            self._programs.close()
            self._close()
        if self._reductions.trouble is not None:
            raise self._reductions.trouble
        return self.summary()

    # -- generating ----------------------------------------------------------------------------------------------

    def _generate(self) -> None:
        flying: dict[Future[Result], Program] = {}
        room = self._oracle.workers * (1 + _AHEAD)
        more = True
        try:
            while self.elapsed < self._seconds and self._going_on() and (more or flying or self._intake.comparing):
                try:
                    self._submit(flying, room)
                except Exhausted:
                    more = False
                done, _ = wait(flying, timeout=_TICK, return_when=FIRST_COMPLETED)
                for future in [one for one in flying if one in done]:  # in the order of asking, not of a set
                    self._intake.take(flying.pop(future), future.result())
                self._intake.take_compared()
                if not flying:
                    time.sleep(0.005)
                self._show()
        finally:
            self._busy_fraction = self._busy() / max(self.elapsed * self._oracle.workers, 1e-9)
            for future in flying:
                future.cancel()
            self._intake.cancel()

    def _going_on(self) -> bool:
        return not self._stop.is_set() and self._reductions.trouble is None

    def _submit(self, flying: dict[Future[Result], Program], room: int) -> None:
        # Bounded: where nearly everything is a duplicate, answers, clock and Ctrl-C have to be looked at as well.
        for _ in range(room * _DRAWS):
            if len(flying) >= room or (program := self._programs.poll()) is None:
                return
            self.tally.generated += 1
            key = identity(program)
            if key in self._identities:
                self.tally.skipped["duplicate program"] += 1
                continue
            self._identities.add(key)
            try:
                flying[self._oracle.submit(program)] = program
            except ProgramError:
                self.tally.skipped["invalid"] += 1

    # -- ending --------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Let finds be confirmed and shrunk after generating has ended, within the grace."""
        self._finishing = True
        self._end = time.monotonic() + self._grace
        self._reductions.finish()
        while self._reductions.alive and time.monotonic() < self._end and self._going_on():
            self._reductions.wait(_TICK)
            self._show()

    def _close(self) -> None:
        self._reductions.stop()
        end = time.monotonic() + _CLOSING
        while time.monotonic() < end and not self._hurry.is_set():
            if self._reductions.wait(_TICK):
                break
        if self._reductions.trouble is None:
            self._ledger.settle()

    # -- showing -------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        now = self.elapsed
        if now - self._shown >= _SHOW_EVERY:
            self._shown = now
            self._progress(self.snapshot())
        if now - self._saved >= _CHECKPOINT_EVERY:
            self._saved = now
            self._checkpoint()

    def snapshot(self) -> Snapshot:
        """The hunt as it is now."""
        now, current = self.elapsed, self._reductions.current
        compiles = self._compiles() if self._compiles else self.tally.compiled
        left = self._seconds - now if self._end is None else self._end - time.monotonic()
        return Snapshot(
            seconds=now,
            left=max(left, 0.0),
            finishing=self._finishing,
            generated=self.tally.generated,
            compiled=self.tally.compiled,
            failing=self.tally.failing,
            skipped=dict(self.tally.skipped + self.tally.excused),
            signatures=tuple((f.slug, f.sort, f.state, f.finds, f.size) for f in list(self.tally.finds.values())),
            reducing=(current.slug, current.started_size, current.size, current.compiles) if current else None,
            compiles_per_second=self._rate.of(now, compiles),
        )

    def pending(self) -> list[Find]:
        """Finds that were not confirmed or not fully shrunk: the backlog of a resumed hunt."""
        return self.tally.unsettled()

    def summary(self) -> Summary:
        """What the hunt came to so far."""
        return msgspec.structs.replace(
            summary_of(self.tally),
            seconds=round(self.elapsed, 2),
            worker_busy_fraction=round(self._busy_fraction, 3),
            corpus=self._corpus,
            seed=self._seed,
            interrupted=self._stop.is_set(),
        )
