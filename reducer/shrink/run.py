"""One reduction under way: the best candidate, and how a pass is walked through on it.

Verdicts are committed in the order of proposals, whatever order the answers come in. See `driver` for the strategy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from reducer.errors import ProgramError, ScanshrinkError
from reducer.oracle.base import Oracle
from reducer.oracle.outcome import Invalid, Result, message_of, word
from reducer.passes.base import Pass
from reducer.shrink.ask import Prepared, Questions
from reducer.shrink.model import (
    Accepted,
    Event,
    Finished,
    Found,
    PassFinished,
    PassStarted,
    PassStats,
    Shrunk,
    SideFind,
    Started,
    Tier,
    Tried,
)
from reducer.shrink.search import Search, begin

C = TypeVar("C")

#: How far the driver looks ahead for something to ask, in candidates that need no question, per free worker.
_LOOKAHEAD = 64


class StartError(ScanshrinkError):
    """The start does not fail as wanted. `result` is what happened instead."""

    kind = "start"

    def __init__(self, message: str, result: Result | None, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.result = result


class Spent(Exception):
    """The budget is used up."""


@dataclass(frozen=True, slots=True)
class _Step(Generic[C]):
    search: Search[C]
    prepared: Prepared[C]


@dataclass(frozen=True, slots=True)
class Best(Generic[C]):
    """A candidate that fails as wanted, with the oracle's answer and the number of the normal form it is in."""

    candidate: C
    result: Result
    key: str
    order: Any
    form: int


class Run(Generic[C]):
    """The state of one reduction."""

    best: C
    result: Result
    key: str
    order: Any

    def __init__(
        self,
        oracle: Oracle[C],
        wanted: Callable[[Result], bool],
        tier: Tier[C],
        label: Callable[[Result], str | None] | None,
        events: Callable[[Event[C]], None] | None,
        budget: int | None,
    ) -> None:
        self.tier = tier
        self.wanted = wanted
        self.label = label
        self.emit: Callable[[Event[C]], None] = events or (lambda _: None)
        self.budget = budget
        self.questions = Questions(oracle, tier, tier.forms[-1])
        self.stats: dict[str, PassStats] = {}
        self.history: list[tuple[int, int]] = []
        self.finds: dict[str, tuple[Any, SideFind[C]]] = {}
        self.start_size = 0
        self.to_fixpoint = 0
        self.restarted = 0
        self.form = len(tier.forms) - 1
        #: Keys of the candidates that were the best one, the start left out.
        self.path: set[str] = set()
        self._trial: set[str] | None = None

    def begin(self, start: C) -> None:
        """Find the strongest normal form under which the start fails as wanted."""
        self.start_size = self.tier.size(start)
        failure: ProgramError | None = None
        last: Result | None = None
        for number, form in enumerate(self.tier.forms):
            try:
                candidate = form(start)
                self.tier.check(candidate)
            except ProgramError as error:
                failure = error
                continue
            prepared = Prepared("open", candidate, self.tier.key(candidate), self.tier.order_key(candidate))
            last = self.questions.answer(prepared)
            if self.wanted(last):
                self.form = number
                self.questions.form = form
                self._adopt(prepared, last)
                self.path.clear()
                self.emit(Started(candidate, self.tier.size(candidate), number))
                return
        if last is None:
            assert failure is not None
            raise failure
        text = message_of(last.answer).partition("\n")[0]
        raise StartError(
            f"the start does not fail as wanted: {word(last.answer)}{': ' + text if text else ''}",
            last,
            hint="check it on this target first",
        )

    def _adopt(self, prepared: Prepared[C], result: Result) -> None:
        assert prepared.candidate is not None
        self.best, self.result = prepared.candidate, result
        self.key, self.order = prepared.key, prepared.order
        if self._trial is None:
            self.path.add(self.key)
            self.history.append((self.questions.compiles, self.tier.size(self.best)))

    def _accept(self, name: str, prepared: Prepared[C], result: Result) -> None:
        self._adopt(prepared, result)
        if self._trial is None:
            size = self.tier.size(self.best)
            self.emit(Accepted(name, self.best, size, self.questions.compiles, result))

    def standing(self) -> Best[C]:
        """The best candidate with all that goes with it, to come back to."""
        return Best(self.best, self.result, self.key, self.order, self.form)

    def _stand(self, best: Best[C]) -> None:
        self.best, self.result, self.key, self.order, self.form = (
            best.candidate, best.result, best.key, best.order, best.form,
        )  # fmt: skip
        self.questions.form = self.tier.forms[self.form]

    def attempt(self, start: Best[C], most: int, reduce: Callable[[], None]) -> bool:
        """Reduce from another candidate, for so many compiles at most; keep what comes out if it is smaller.

        Nothing is announced meanwhile, and what was the best one before is not accepted: another way, if there is one.
        """
        best, budget = self.standing(), self.budget
        end = self.questions.compiles + most
        self.budget = end if budget is None else min(budget, end)
        self._trial = self.path
        self._stand(start)
        try:
            reduce()
        except Spent:
            pass
        finally:
            self.budget, self._trial = budget, None
            found = self.standing()
            self._stand(best)
        if not found.order < best.order:
            return False
        self._stand(found)
        self._accept("restart", Prepared("open", found.candidate, found.key, found.order), found.result)
        return True

    def stronger_form(self) -> bool:
        """A minimum can fail as wanted in a normal form in which the start did not; then that is the form to end in."""
        for number in range(self.form):
            form = self.tier.forms[number]
            try:
                candidate = form(self.best)
                self.tier.check(candidate)
            except ProgramError:
                continue
            key = self.tier.key(candidate)
            prepared = Prepared("open", candidate, key, self.tier.order_key(candidate))
            result = self.result if key == self.key else self._ask(prepared)
            if self.wanted(result):
                self.form, self.questions.form = number, form
                self._accept("normal-form", prepared, result)
                return True
        return False

    def run_pass(self, one: Pass[C], left: int) -> bool:
        """One run of one pass; True if something was accepted."""
        self.emit(PassStarted(one.name, one.description, left))
        before = self.questions.compiles
        size = self.tier.size(self.best)
        counts = dict.fromkeys(("proposed", "invalid", "repeated", "accepted"), 0)
        try:
            self._walk(one, counts)
        finally:
            run = PassStats(
                runs=1,
                compiles=self.questions.compiles - before,
                removed=size - self.tier.size(self.best),
                **counts,
            )
            self.stats[one.name] = _sum(self.stats.get(one.name, PassStats()), run)
        self.emit(PassFinished(one.name, run))
        return counts["accepted"] > 0

    def _walk(self, one: Pass[C], counts: dict[str, int]) -> None:
        ahead: deque[_Step[C]] = deque()
        search: Search[C] | None = begin(one.propose, self.best)
        while True:
            search = self._look_ahead(ahead, search)
            if not ahead:
                return
            step = ahead.popleft()
            counts["proposed"] += 1
            standing = step.prepared.standing
            if standing in ("invalid", "unchanged", "larger"):
                counts["invalid" if standing == "invalid" else "repeated"] += 1
                continue
            counts["repeated"] += self.questions.committed(step.prepared)
            result = self._ask(step.prepared)
            if self._judge(one, step, result, counts):
                # Whatever was asked ahead assumed a failure.
                ahead.clear()
                self.questions.forget()
                search = step.search.succeeded(self.best)

    def _ask(self, prepared: Prepared[C]) -> Result:
        if self._is_spent() and not self.questions.committed(prepared):
            raise Spent
        return self.questions.answer(prepared)

    def _is_spent(self) -> bool:
        return self.budget is not None and self.questions.compiles >= self.budget

    def _look_ahead(self, ahead: deque[_Step[C]], search: Search[C] | None) -> Search[C] | None:
        """Extend the chain of steps, each assuming that the one before it fails, until every worker has a question."""
        room = self.questions.workers - sum(step.prepared.standing == "open" for step in ahead)
        limit = _LOOKAHEAD * self.questions.workers
        while search is not None and room > 0 and (len(ahead) < limit or not ahead):
            build = search.candidate()
            if build is None:
                return None
            prepared = self.questions.prepare(build, self.key, self.order)
            ahead.append(_Step(search, prepared))
            search = search.unchanged() if prepared.standing == "unchanged" else search.failed()
            if prepared.standing == "open":
                if not self._is_spent():
                    self.questions.submit(prepared)
                room -= 1
            elif self.questions.workers == 1:
                break
        return search

    def _judge(self, one: Pass[C], step: _Step[C], result: Result, counts: dict[str, int]) -> bool:
        """Commit one answer; True if the candidate is the new best one."""
        prepared = step.prepared
        same = self.wanted(result)
        good = same and not (self._trial and prepared.key in self._trial)
        assert prepared.candidate is not None
        size = self.tier.size(prepared.candidate)
        if isinstance(result.answer, Invalid):
            counts["invalid"] += 1
        if good:
            counts["accepted"] += 1
            self._accept(one.name, prepared, result)
        elif not same:
            self._note(prepared, result)
        self.emit(Tried(one.name, size, good, self.questions.compiles, *step.search.position))
        return good

    def _note(self, prepared: Prepared[C], result: Result) -> None:
        name = self.label(result) if self.label else None
        if name is None:
            return
        known = self.finds.get(name)
        if known is None or prepared.order < known[0]:
            assert prepared.candidate is not None
            find = SideFind(name, prepared.candidate, result)
            self.finds[name] = (prepared.order, find)
            self.emit(Found(find))

    def finish(self, minimal: bool) -> Shrunk[C]:
        """The result, and the last event."""
        self.questions.settle()
        total = PassStats()
        for stats in self.stats.values():
            total = _sum(total, stats)
        size = self.tier.size(self.best)
        self.emit(Finished(self.best, size, self.questions.compiles, minimal))
        return Shrunk(
            program=self.best,
            result=self.result,
            start_size=self.start_size,
            history=tuple(self.history),
            compiles=self.questions.compiles,
            to_fixpoint=self.to_fixpoint or self.questions.compiles,
            restarted=self.restarted,
            asked=self.questions.asked,
            proposals=total.proposed,
            invalid=total.invalid,
            stats=dict(self.stats),
            finds=tuple(find for _, find in self.finds.values()),
            minimal=minimal,
        )


def _sum(a: PassStats, b: PassStats) -> PassStats:
    return replace(a, **{name: getattr(a, name) + getattr(b, name) for name in PassStats.__slots__})
