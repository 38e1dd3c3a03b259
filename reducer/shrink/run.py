"""One reduction under way: the best candidate, and how a course is followed with the verdicts of the oracle.

Verdicts are committed in the order of proposals, whatever order the answers come in. See `driver` for the strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from reducer.errors import ProgramError, ScanshrinkError
from reducer.oracle.base import Oracle
from reducer.oracle.outcome import Result, message_of, word
from reducer.shrink.ask import Pause, Prepared, Questions
from reducer.shrink.course import Course
from reducer.shrink.model import (
    Accepted,
    Event,
    Finished,
    Found,
    Shrunk,
    SideFind,
    Started,
    Tier,
    Tried,
)
from reducer.shrink.plan import Node, Plan, Planner
from reducer.shrink.tally import Tally

C = TypeVar("C")


class StartError(ScanshrinkError):
    """The start does not fail as wanted. `result` is what happened instead."""

    kind = "start"

    def __init__(self, message: str, result: Result | None, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.result = result


class Spent(Exception):
    """The budget is used up."""


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
        pause: Pause,
    ) -> None:
        self.tier = tier
        self.wanted = wanted
        self.label = label
        self.emit: Callable[[Event[C]], None] = events or (lambda _: None)
        self.budget = budget
        self.questions = Questions(oracle, tier, tier.forms[-1], pause)
        self.tally = Tally(self.questions, tier.size, self.emit)
        self.planner = Planner(self.questions, self._accepts)
        self.history: list[tuple[int, int]] = []
        self.finds: dict[str, tuple[Any, SideFind[C]]] = {}
        self.start_size = 0
        self.to_fixpoint = 0
        self.restarted = 0
        self.form = len(tier.forms) - 1
        #: Keys of the candidates that were the best one, the start left out.
        self.path: set[str] = set()
        self._trial: set[str] | None = None

    def begin(self, start: C, course: Callable[[C, str, Any], Course[C]]) -> None:
        """Find the strongest normal form under which the start fails as wanted.

        `course` is what comes after that: its first questions are asked while the start is compiled.
        """
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
            self.form, self.questions.form = number, form
            first = course(candidate, prepared.key, prepared.order)
            self._wait_for(prepared, self.planner.first(first))
            last = self.questions.answer(prepared)
            if self.wanted(last):
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
            # A pass that was cut off ends here: what it removed is not measured on the candidate of before.
            self.tally.close(self.best)
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

    def follow(self, course: Course[C]) -> Course[C]:
        """Follow a course to its end, asking what has to be asked; the course as it is at its end."""
        node = Node(course.started(), self.questions.prepare)
        self.tally.tell(node)
        plan = self.planner.plan(node)
        while plan is not None:
            asked = plan.steps[plan.at].node
            result = self._ask(plan.question, plan)
            accepted = self._accepts(plan.question, result)
            if accepted:
                # Before anything else is told: whoever is told may end the run.
                self._accept(asked.name, plan.question, result)
            decided, plan = plan.after(accepted=accepted)
            for step in decided:
                self.tally.decided(step)
                if step.node is asked:
                    self._announce(asked, result, accepted)
                node = step.following()
                self.tally.tell(node)
            if not any(step.node is asked for step in decided):
                self._announce(asked, result, accepted)
            plan = plan or self.planner.plan(node)
        return node.course

    def _accepts(self, prepared: Prepared[C], result: Result) -> bool:
        """Smaller it is already: `Questions.prepare` sees to that. What was the best one before is no other way."""
        return self.wanted(result) and not (self._trial and prepared.key in self._trial)

    def _ask(self, prepared: Prepared[C], plan: Plan[C] | None = None) -> Result:
        if not self.questions.committed(prepared):
            if self._is_spent():
                raise Spent
            last = self.budget is not None and self.questions.compiles + 1 >= self.budget
            self._wait_for(prepared, self.planner.likely(plan) if plan and not last else iter(()))
        return self.questions.answer(prepared)

    def _wait_for(self, prepared: Prepared[C], likely: Iterator[Prepared[C]]) -> None:
        """Put a question and wait for its answer, with the likeliest next ones for workers that are free meanwhile."""
        questions = self.questions
        questions.submit(prepared)
        if questions.workers == 1:
            return
        while not questions.answered(prepared):
            room = questions.workers - questions.under_way
            # Looking ahead takes a while, too: an answer that comes meanwhile is not kept waiting.
            while room > 0 and not questions.answered(prepared) and (ahead := next(likely, None)) is not None:
                room -= questions.submit(ahead)
            questions.pause(prepared)

    def _is_spent(self) -> bool:
        return self.budget is not None and self.questions.compiles >= self.budget

    def _announce(self, asked: Node[C], result: Result, accepted: bool) -> None:
        """Tell what came of a question."""
        prepared, search = asked.prepared, asked.course.search
        assert prepared is not None
        assert prepared.candidate is not None
        assert search is not None
        if not self.wanted(result):
            self._note(prepared, result)
        size = self.tier.size(prepared.candidate)
        self.emit(Tried(asked.name, size, accepted, self.questions.compiles, *search.position))

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
        self.tally.close(self.best)
        stats = self.tally.stats
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
            proposals=sum(one.proposed for one in stats.values()),
            invalid=sum(one.invalid for one in stats.values()),
            stats=dict(stats),
            finds=tuple(find for _, find in self.finds.values()),
            minimal=minimal,
        )
