"""What happens to new failures while a hunt goes on: each is confirmed and saved at once, then shrunk in its turn.

Two threads. One repeats new failures and saves those that are real as they are, so that none waits for a long
reduction to be known. The other shrinks one at a time: a family that has no minimum of that sort yet goes first, then
what a model's author recognises, then the smallest.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Protocol

from reducer.hunt.finds import Find
from reducer.ir.equations import Program
from reducer.ir.tiers import tier_of
from reducer.oracle.outcome import Result
from reducer.words import counted

_RANK = {"program": 0, "placement": 1, "mixed": 2}


class Stopped(Exception):
    """Raised inside a reduction when the hunt ends before it."""


class Unstable(Exception):
    """A confirmed failure was not there when it was asked about again; the text says what happened instead."""


class Workshop(Protocol):
    """What is done to a failure: the part of a hunt that needs a reducer and a corpus."""

    def known(self, signature: str) -> bool:
        """True if the user asked not to hunt for this signature."""
        ...

    def recall(self, find: Find) -> bool:
        """True if the corpus holds the failure shrunk: the find's `program`, `size` and `case` are then its."""
        ...

    def confirm(self, find: Find) -> bool:
        """Repeat the failure in a fresh worker."""
        ...

    def keep_flaky(self, find: Find) -> None:
        """Save a find that did not come each time as what it is, with its rates; not if its repeats say nothing.

        Raises `StorageError` when the corpus cannot be written.
        """
        ...

    def keep(self, find: Find) -> None:
        """Save the find as it is now; sets `find.case` and `find.counted`. Called again as it gets smaller.

        Raises `Unstable`, and `StorageError` when the corpus cannot be written.
        """
        ...

    def reduce(self, find: Find, step: Callable[[Find], None]) -> list[tuple[Program, Result]]:
        """Shrink the find in place, calling `step` on progress; returns other failures met on the way.

        `step` may raise `Stopped`; the best so far is then in the find. Raises `Unstable`.
        """
        ...

    def shelve(self, find: Find) -> None:
        """Save a find that was not shrunk and not saved, unless the corpus has the failure. Raises `StorageError`."""
        ...

    def settle(self, find: Find) -> None:
        """Tell the corpus how often a saved find was met since it was saved. Raises `StorageError`."""
        ...


class Reductions:
    """Confirms and shrinks finds until told to stop, or until nothing is left and no more will come (`finish`).

    `side_finds` is given the other failures of a reduction, `notify` one line per event.
    """

    def __init__(
        self,
        workshop: Workshop,
        *,
        side_finds: Callable[[Find, list[tuple[Program, Result]]], None],
        restore: Callable[[Find], None],
        forget: Callable[[Find], None],
        notify: Callable[[str], None],
    ) -> None:
        self._workshop = workshop
        self._side_finds = side_finds
        self._restore = restore
        self._forget = forget
        self._notify = notify
        self._changed = threading.Condition()
        self._new: deque[Find] = deque()
        self._ready: list[Find] = []
        self._open = 0
        self._finished = False
        self._stopped = False
        self._minima: Counter[tuple[str, str]] = Counter()
        self.current: Find | None = None
        self.trouble: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._work, args=(turn,), name=f"hunt-{name}", daemon=True)
            for name, turn in (("confirm", self._confirm_next), ("reduce", self._reduce_next))
        ]

    def start(self) -> None:
        """Begin working."""
        for thread in self._threads:
            thread.start()

    def add(self, find: Find) -> None:
        """Queue a new find."""
        with self._changed:
            self._open += 1
            self._new.append(find)
            self._changed.notify_all()

    def finish(self) -> None:
        """End when everything queued is done."""
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    def stop(self) -> None:
        """End soon; what is not done stays as it is, saved if it was confirmed."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @property
    def alive(self) -> bool:
        """Whether work is going on."""
        return any(thread.is_alive() for thread in self._threads)

    def wait(self, seconds: float) -> bool:
        """Wait for the end, at most so long; True if it was reached."""
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(end - time.monotonic(), 0.0))
        return not self.alive

    def replace(self, find: Find, program: Program) -> bool:
        """Put a smaller program in place of a queued find's, unless it is under way already."""
        with self._changed:
            if find.state != "new" or find not in self._new:
                return False
            find.begin_with(program)
            return True

    def _work(self, turn: Callable[[], bool]) -> None:
        try:
            while turn():
                pass
        except BaseException as error:  # raised again in the hunt's own thread
            with self._changed:
                self.trouble = self.trouble or error
            self.stop()

    def _over(self) -> bool:
        return self._stopped or (self._finished and self._open == 0)

    def _done(self) -> None:
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    def _confirm_next(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._over() or self._new)
            if self._over():
                return False
            find = self._new.popleft()
            find.state = "confirming"
        try:
            real = self._workshop.confirm(find)
            # A mixed one may turn out to be a placement: as what to save it is known when it is shrunk.
            if real and find.sort != "mixed":
                self._workshop.keep(find)
        except Unstable:
            real = False
        except BaseException:
            find.state = "new"
            raise
        if not real:
            self._unreal(find)
            return True
        with self._changed:
            find.state = "confirmed"
            self._ready.append(find)
            self._changed.notify_all()
        return True

    def _unreal(self, find: Find) -> None:
        """A failure that did not come each time."""
        if find.kind == "slow-compile":
            (self._forget if find.before is None else self._restore)(find)
            self._done()
            return
        if find.before is None:
            self._workshop.keep_flaky(find)
        seen = ", ".join(f"{count}x {name}" for name, count in find.repeats.items()) or "another outcome"
        kept = f": {find.case}" if find.case else ""
        self._drop(find, f"is flaky and not counted; repeated in a fresh worker: {seen}{kept}")

    def _drop(self, find: Find, why: str) -> None:
        find.state = "flaky"
        self._notify(f"{find.slug} {why}")
        if find.before is not None:
            self._restore(find)
        self._done()

    def _reduce_next(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._over() or self._ready)
            if self._over():
                return False
            find = min(self._ready, key=self._turn)
            self._ready.remove(find)
            find.state = "reducing"
            self.current = find
        try:
            self._reduce(find)
        finally:
            self.current = None
        return True

    def _turn(self, find: Find) -> tuple[int, int, int]:
        return self._minima[find.family, find.sort], _RANK[find.sort], find.size

    def _reduce(self, find: Find) -> None:
        begun = time.monotonic()
        try:
            others = self._workshop.reduce(find, self._step)
            find.reduced_seconds = round(time.monotonic() - begun, 2)
            if find.sort == "mixed":
                find.tier = tier_of(find.program)
            self._workshop.keep(find)
        except Stopped:
            find.state = "confirmed"
            if find.size < find.started_size and find.sort != "mixed":
                self._keep_best(find)
            return
        except Unstable as error:
            find.reduced_seconds = None
            self._drop(find, f"is flaky, its case holds what was seen: {error}")
            return
        find.state, find.before = "saved", None
        self._minima[find.family, find.sort] += 1
        self._notify(
            f"{find.slug}: {find.started_size} -> {counted(find.size, 'equations')} in "
            f"{counted(find.compiles, 'compiles')}: {find.case}"
        )
        self._side_finds(find, others)
        self._done()

    def _keep_best(self, find: Find) -> None:
        try:
            self._workshop.keep(find)
        except Unstable as error:
            self._notify(f"{find.slug}: kept as it was found; the smaller one is flaky: {error}")

    def _step(self, _: Find) -> None:
        if self._stopped:
            raise Stopped
