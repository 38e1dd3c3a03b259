"""Following the driver: the best so far goes to disk, progress to whoever watches, and an end is asked for here."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from pathlib import Path
from typing import Any, Final

from reducer.corpus.atomic import remove, storing
from reducer.corpus.runner import record_of
from reducer.errors import ProgramError, StorageError
from reducer.files import write_file
from reducer.oracle.target import Target
from reducer.oracle.verdict import verdict
from reducer.record import recorded, words_of
from reducer.reduction.journal import Best, Journal
from reducer.reduction.model import Progress, Stage, Stopped, Watcher
from reducer.reduction.wanted import INTERESTING
from reducer.shrink import Accepted, Event, Found, PassStarted, Started, Tried
from reducer.words import counted

_WINDOW: Final = 10.0


class Clock:
    """Time of a run: how long it took, whether its time is up, compiles a second over the last seconds."""

    def __init__(self, seconds: float | None) -> None:
        self.began = time.monotonic()
        self._deadline = None if seconds is None else self.began + seconds
        self._samples: deque[tuple[float, int]] = deque()

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self.began

    @property
    def up(self) -> bool:
        """Whether its time is up."""
        return self._deadline is not None and time.monotonic() > self._deadline

    def rate(self, compiles: int) -> float:
        """Note so many compiles by now, and return the recent rate."""
        now = time.monotonic()
        self._samples.append((now, compiles))
        while len(self._samples) > 2 and now - self._samples[1][0] >= _WINDOW:
            self._samples.popleft()
        then, before = self._samples[0]
        return (compiles - before) / (now - then) if now > then else 0.0


class Unfinished:
    """The best so far of a run, readable in its output folder until the case is saved: what a dead process leaves."""

    def __init__(self, out: Path, start: str) -> None:
        self.folder = out / f"_unfinished-{start[:12]}"

    def write(self, stage: Stage, target: Target) -> None:
        """Write the candidate and its script.

        Raises:
            StorageError: the folder cannot be written.
        """
        name, data = stage.level.file(stage.best)
        files = {name: data}
        # The word of an interestingness script is no outcome: what the compiler made of the start is.
        result = stage.confirmed.result if stage.result.answer == INTERESTING else stage.result
        found = verdict(result).failure
        if found is not None:
            record = record_of(target, result)
            script = recorded(record, found)
            with contextlib.suppress(ProgramError):
                text = stage.level.script(stage.best, script, target, **words_of(record, found))
                files[f"repro_{stage.tier}.py"] = text.encode("utf-8", "backslashreplace")
        with storing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            for file, content in files.items():
                write_file(self.folder / file, content)

    def remove(self) -> None:
        """The case is saved: it is needed no more."""
        with contextlib.suppress(OSError):
            remove(self.folder)


class Follower:
    """The events of one tier's reduction. `before` counts the compiles of the tiers before."""

    def __init__(
        self,
        stage: Stage,
        journal: Journal,
        unfinished: Unfinished,
        watcher: Watcher,
        clock: Clock,
        target: Target,
        *,
        before: int,
        stopping: list[bool],
    ) -> None:
        self._stage = stage
        self._journal = journal
        self._unfinished = unfinished
        self._watcher = watcher
        self._clock = clock
        self._target = target
        self._before = before
        self._earlier = stage.compiles
        self._stopping = stopping
        self._doing, self._tried, self._left = "begin", 0, 0
        self._total: int | None = None

    def event(self, event: Event[Any]) -> None:
        """Take in an event of the driver; raises `Stopped` when the run is to end."""
        stage = self._stage
        if isinstance(event, Started):
            # In the normal form that the driver works in: the same program, written otherwise.
            stage.best = event.candidate
        elif isinstance(event, Accepted):
            stage.best, stage.result = event.candidate, event.result
            stage.passed(event.candidate, event.size)
            self._count(event.compiles)
            self._save(event)
        elif isinstance(event, Tried):
            self._count(event.compiles)
            self._tried, self._total = (self._tried + 1, None) if event.total is None else (event.at, event.total)
        elif isinstance(event, PassStarted):
            self._doing, self._left, self._tried, self._total = event.description, event.left, 0, None
        elif isinstance(event, Found):
            stage.finds[event.find.label] = event.find
        self._watcher.show(self._progress())
        if self._stopping or self._clock.up:
            raise Stopped

    def _count(self, compiles: int) -> None:
        self._stage.compiles = self._earlier + compiles

    def _save(self, event: Accepted[Any]) -> None:
        stage = self._stage
        best = Best(stage.tier, stage.level.key(stage.best), event.size, stage.compiles)
        self._watcher.say(
            f"{self._clock.seconds:5.0f} s  {counted(event.size, stage.level.unit):>15}, "
            f"{counted(stage.compiles, 'compiles')}  {event.name}"
        )
        self._journal.note_best(best)
        try:
            self._unfinished.write(stage, self._target)
        except StorageError as error:
            # The disk may have room again when the case is to be saved; until then the journal has the answers.
            self._watcher.say(f"the best so far is not saved: {error.message}")

    def _progress(self) -> Progress:
        stage = self._stage
        compiles = self._before + stage.compiles
        return Progress(
            seconds=self._clock.seconds,
            tier=stage.tier,
            unit=stage.level.unit,
            start_size=stage.level.size(stage.start),
            size=stage.level.size(stage.best),
            compiles=compiles,
            rate=self._clock.rate(compiles),
            doing=self._doing,
            tried=self._tried,
            total=self._total,
            left=self._left,
        )
