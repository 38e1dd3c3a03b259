"""Programs from Hypothesis, drawn ahead of the compiler by a thread of their own.

Hypothesis is made for tests that stop at the first failure; a hunt goes on. So the test function that Hypothesis
calls never fails: it hands the program to a bounded queue, and blocks while the queue is full.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.strategies import SearchStrategy

from reducer.ir.equations import Program

#: Programs per Hypothesis run. It remembers every choice it made to avoid repeats, so a long run slows down and
#: grows; a new run with the next seed forgets.
BATCH = 400
AHEAD = 64


class _Stop(BaseException):
    """Leaves Hypothesis' engine, which takes any Exception for a failing test and would replay it."""


class Source:
    """Iterates over drawn programs, for ever, until `close`. The same seed draws the same programs.

    Args:
        strategy: what to draw.
        seed: any integer. Batch ``i`` of the run is drawn with a seed derived from it and ``i``.
        start: the first batch, for a hunt that goes on where another stopped.
    """

    def __init__(self, strategy: SearchStrategy[Program], seed: int, *, start: int = 0, ahead: int = AHEAD) -> None:
        self._strategy = strategy
        self._seed = seed
        self._queue: queue.Queue[Program | BaseException] = queue.Queue(maxsize=ahead)
        self._closed = threading.Event()
        self.batch = start
        self._thread = threading.Thread(target=self._run, name="hunt-source", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while True:
                self._draw_batch(self._seed * 1_000_003 + self.batch)
                self.batch += 1
        except _Stop:
            pass
        except BaseException as error:  # handed to the reader, who raises it in the hunt's own thread
            self._put(error)

    def _draw_batch(self, seed: int) -> None:
        @hypothesis.seed(seed)
        @settings(
            max_examples=BATCH,
            database=None,
            deadline=None,
            derandomize=False,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
        )
        @hypothesis.given(self._strategy)
        def draw(program: Program) -> None:
            if not self._put(program):
                raise _Stop

        draw()

    def _put(self, item: Program | BaseException) -> bool:
        while not self._closed.is_set():
            try:
                self._queue.put(item, timeout=0.2)
            except queue.Full:
                continue
            return True
        return False

    def __iter__(self) -> Iterator[Program]:
        return self

    def __next__(self) -> Program:
        """The next program; waits for it.

        Raises:
            StopIteration: the source is closed.
        """
        while not self._closed.is_set():
            try:
                item = self._queue.get(timeout=0.2)
            except queue.Empty:
                continue
            if isinstance(item, BaseException):
                self.close()
                raise item
            return item
        raise StopIteration

    def poll(self) -> Program | None:
        """A program if one is ready, without waiting.

        Raises whatever stopped the generator.
        """
        try:
            item = self._queue.get_nowait()
        except queue.Empty:
            return None
        if isinstance(item, BaseException):
            self.close()
            raise item
        return item

    def close(self) -> None:
        """Stop drawing. Safe to call twice."""
        self._closed.set()
