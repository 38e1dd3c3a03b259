"""Asking the oracle: each candidate once, ahead of time where workers are free, counted in committed order."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from reducer.errors import ProgramError
from reducer.oracle.base import Oracle
from reducer.oracle.outcome import Invalid, Result, Skipped
from reducer.passes.base import Candidate
from reducer.shrink.model import Tier

C = TypeVar("C")

#: Waits until one of some answers is there, at least.
Pause: TypeAlias = Callable[[Collection[Future[Result]]], object]


def first_of(futures: Collection[Future[Result]]) -> None:
    """The `Pause` of oracles whose time is everybody's."""
    wait(futures, return_when=FIRST_COMPLETED)


Standing = Literal["invalid", "unchanged", "larger", "hopeless", "known", "open"]


@dataclass(frozen=True, slots=True)
class Prepared(Generic[C]):
    """A candidate in normal form, and how it stands before the oracle is asked.

    "invalid": not well-formed. "unchanged": it is the best one. "larger": not smaller than the best one. "hopeless":
    it cannot fail as wanted. "known": answered before. "open": to be asked.
    """

    standing: Standing
    candidate: C | None = None
    key: str = ""
    order: Any = None


def costs_a_compile(result: Result) -> bool:
    """True if the compiler was put to work (now, or when the answer was first given)."""
    return not isinstance(result.answer, Skipped | Invalid)


def _failed(future: Future[Result]) -> bool:
    """True if there is no answer and will be none: the oracle broke down, or was closed."""
    return future.done() and (future.cancelled() or future.exception() is not None)


class Questions(Generic[C]):
    """The oracle with a memory. Results are kept for the whole run, so no candidate is asked about twice."""

    def __init__(self, oracle: Oracle[C], tier: Tier[C], form: Callable[[C], C], pause: Pause) -> None:
        self._oracle = oracle
        self._wait = pause
        self._tier = tier
        self.form = form
        self._answers: dict[str, Result] = {}
        self._waiting: dict[str, Future[Result]] = {}
        self._committed: set[str] = set()
        self._paid: set[str] = set()
        self.compiles = 0
        self.asked = 0

    @property
    def workers(self) -> int:
        """How many questions can be under way at once."""
        return max(self._oracle.workers, 1)

    def prepare(self, build: Candidate[C], best_key: str, best_order: Any) -> Prepared[C]:
        """Build a candidate, bring it to normal form, and see whether there is anything to ask."""
        try:
            candidate = self.form(build())
            key = self._tier.key(candidate)
            if key == best_key:
                return Prepared("unchanged", candidate, key)
            order = self._tier.order_key(candidate)
            if not order < best_order:
                return Prepared("larger", candidate, key)
            if key in self._answers:
                return Prepared("known", candidate, key, order)
            self._tier.check(candidate)
            if self._tier.hopeless(candidate):
                return Prepared("hopeless", candidate, key)
        except ProgramError:
            return Prepared("invalid")
        return Prepared("open", candidate, key, order)

    @property
    def under_way(self) -> int:
        """How many questions were put and are not answered yet."""
        return sum(not future.done() for future in self._waiting.values())

    def known(self, prepared: Prepared[C]) -> Result | None:
        """The answer, if there is one, committed or not: it depends on the workers."""
        return self._answers.get(prepared.key)

    def submit(self, prepared: Prepared[C]) -> bool:
        """Put a question, unless it is under way or answered; True if it was put."""
        key = prepared.key
        if key in self._answers or key in self._waiting:
            return False
        assert prepared.candidate is not None
        try:
            self._waiting[key] = self._oracle.submit(prepared.candidate)
        except ProgramError as error:
            # Nothing the compiler could be asked: an operation that has no text, say.
            self._answers[key] = Result(Invalid(str(error)))
            return False
        return True

    def answer(self, prepared: Prepared[C]) -> Result:
        """Wait for the answer and commit it: from here on it counts.

        Raises:
            WorkerError, TargetError: as the oracle's future does.
        """
        key = prepared.key
        if key not in self._answers:
            self.submit(prepared)
            if key in self._waiting:
                self._collect(key, self._waiting[key].result())
        result = self._answers[key]
        self._committed.add(key)
        # Different candidates can be one module: the compiler is asked, and paid, once.
        question = result.module_key or key
        if costs_a_compile(result) and question not in self._paid:
            self._paid.add(question)
            self.compiles += result.compiles
        return result

    def _collect(self, key: str, result: Result) -> None:
        self._waiting.pop(key, None)
        self._answers[key] = result
        self.asked += costs_a_compile(result) and not result.cached

    def answered(self, prepared: Prepared[C]) -> bool:
        """Whether `answer` would not have to wait."""
        waiting = self._waiting.get(prepared.key)
        return waiting is None or waiting.done()

    def pause(self, prepared: Prepared[C]) -> None:
        """Wait until some answer comes, this one's or another, and take in all that have come.

        Another question that failed is left for who asks for its answer; waiting for it would be no waiting.
        """
        open_ = [f for key, f in self._waiting.items() if key == prepared.key or not _failed(f)]
        self._wait(open_)
        self._take_in()

    def _take_in(self) -> None:
        for key, future in list(self._waiting.items()):
            if future.done() and not _failed(future):
                self._collect(key, future.result())

    def committed(self, prepared: Prepared[C]) -> bool:
        """True if the answer has counted before; unlike `known`, this is the same for any number of workers."""
        return prepared.key in self._committed

    def settle(self) -> None:
        """Wait for questions that could not be withdrawn, so that the count of what was asked is complete."""
        self.forget()
        wait(self._waiting.values())
        self.forget()

    def forget(self) -> None:
        """Withdraw the questions nobody waits for any more; one that already runs keeps its place and its answer."""
        self._take_in()
        for key, future in list(self._waiting.items()):
            if future.cancel():
                del self._waiting[key]
        self._take_in()
