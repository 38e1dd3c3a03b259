"""What each pass did, counted in committed order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar

from reducer.oracle.outcome import Invalid
from reducer.shrink.ask import Questions
from reducer.shrink.course import Began, Ended, Passed
from reducer.shrink.model import Event, PassFinished, PassStarted, PassStats
from reducer.shrink.plan import Node, Step

C = TypeVar("C")


class Tally(Generic[C]):
    """Statistics per pass, and the events that go with a pass's beginning and end."""

    def __init__(self, questions: Questions[C], size: Callable[[C], int], emit: Callable[[Event[C]], None]) -> None:
        self._questions = questions
        self._size = size
        self._emit = emit
        self.stats: dict[str, PassStats] = {}
        #: Name, compiles and size when the pass that is run began, and what it did since.
        self._open: tuple[str, int, int] | None = None
        self._now = PassStats()

    def tell(self, node: Node[C]) -> None:
        """What happened on the way to a node."""
        for note in node.notes:
            match note:
                case Began(one=one, best=best, left=left):
                    self.close(best)
                    self._open = one.name, self._questions.compiles, self._size(best)
                    self._emit(PassStarted(one.name, one.description, left))
                case Passed(standing=standing):
                    repeated = standing in ("unchanged", "larger")
                    self._add(proposed=1, invalid=int(standing == "invalid"), repeated=int(repeated))
                case Ended(one=one, best=best):
                    self._emit(PassFinished(one.name, self.close(best)))

    def decided(self, step: Step[C]) -> None:
        """A verdict was committed."""
        prepared = step.node.prepared
        assert prepared is not None
        # Of a candidate that was skipped over there may be an answer that a worker gave ahead: it does not count.
        result = self._questions.known(prepared) if self._questions.committed(prepared) else None
        invalid = result is not None and isinstance(result.answer, Invalid)
        self._add(proposed=1, repeated=int(step.known), accepted=int(step.accepted), invalid=int(invalid))

    def close(self, best: C) -> PassStats:
        """Book what the pass did that is run, if there is one."""
        run = PassStats()
        if self._open is not None:
            name, compiles, size = self._open
            spent = self._questions.compiles - compiles
            run = replace(self._now, runs=1, compiles=spent, removed=size - self._size(best))
            self.stats[name] = total(self.stats.get(name, PassStats()), run)
        self._open, self._now = None, PassStats()
        return run

    def _add(self, **counts: int) -> None:
        self._now = total(self._now, PassStats(**counts))


def total(a: PassStats, b: PassStats) -> PassStats:
    """The sum of two."""
    return PassStats(*(getattr(a, name) + getattr(b, name) for name in PassStats.__slots__))
