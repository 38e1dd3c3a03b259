"""Wall time of a reduction on any number of workers, from recorded durations: a simulated clock, no waiting.

Each question takes the seconds that lowering and compiling it took when it was recorded; the driver's own time does
not count. Workers take questions in the order in which they are put; one that has not begun can be withdrawn.
"""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future

from peers.recording import Recorded, Recorder, result_of
from reducer.ir.equations import Program
from reducer.oracle.outcome import Result


class _Question(Future[Result]):
    """A future whose answer is known, and becomes visible when the simulated clock has reached its end."""

    def __init__(self, oracle: SimulatedOracle, recorded: Recorded) -> None:
        super().__init__()
        self._oracle = oracle
        self.recorded = recorded
        self.put = oracle.now
        self.begins: float | None = None
        self.ends = 0.0
        self.set_result(result_of(recorded))

    def cancel(self) -> bool:
        """Withdraw it, if no worker has begun with it."""
        return self._oracle.withdraw(self)

    def done(self) -> bool:
        """Whether the clock has reached its end."""
        return self.begins is not None and self.ends <= self._oracle.now

    def result(self, timeout: float | None = None) -> Result:
        """Move the clock to its end."""
        self._oracle.advance_to(self)
        return super().result(timeout)


class SimulatedOracle:
    """`Oracle[Program]` with `workers` workers under a simulated clock; `now` is in seconds."""

    def __init__(self, recorder: Recorder, workers: int) -> None:
        self._recorder = recorder
        self._workers = workers
        self._free = [0.0] * workers
        self._queue: list[_Question] = []
        self._compiled: set[str] = set()
        self.now = 0.0

    @property
    def workers(self) -> int:
        """How many candidates are answered at once."""
        return self._workers

    def submit(self, candidate: Program, *, fresh: bool = False) -> Future[Result]:  # noqa: ARG002
        """Put a question; a free worker begins with it now."""
        question = _Question(self, self._recorder.outcome(candidate))
        self._queue.append(question)
        self._assign(self.now)
        return question

    def _assign(self, until: float) -> None:
        """Let workers take what is queued, as far as one is free by then."""
        while self._queue:
            worker = min(range(self._workers), key=self._free.__getitem__)
            begins = max(self._free[worker], self._queue[0].put)
            if begins > until:
                return
            question = self._queue.pop(0)
            recorded = question.recorded
            first = recorded.costs_a_compile and recorded.question not in self._compiled
            self._compiled.add(recorded.question)
            question.begins = begins
            question.ends = begins + self._recorder.seconds_of(recorded, first=first)
            self._free[worker] = question.ends

    def withdraw(self, question: _Question) -> bool:
        """Take a question off the queue; False if a worker has it."""
        if question in self._queue:
            self._queue.remove(question)
            return True
        return False

    def pause(self, questions: Collection[Future[Result]]) -> None:
        """Let time pass until one of these questions is answered."""
        self._assign(self.now)
        if not any(question.done() for question in questions):
            begun = [one for one in questions if isinstance(one, _Question) and one.begins is not None]
            self.advance_to(min(begun, key=lambda one: one.ends))

    def advance_to(self, question: _Question) -> None:
        """Let time pass until a question is answered."""
        while question.begins is None:
            # The next worker to become free takes the next question.
            self._assign(max(min(self._free), self._queue[0].put))
        self.now = max(self.now, question.ends)
        self._assign(self.now)
