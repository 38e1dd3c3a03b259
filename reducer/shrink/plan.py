"""What is asked next, and what will probably be asked after that.

Two things come from the chances of candidates (`luck`). Where the next ones are likely to be accepted one after the
other, only the last of them is asked about: one compile instead of several, and halving if it is refused. And with
several workers the likeliest next questions are asked early. The first decides what is asked, so it looks at nothing
but committed answers; the second never decides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from math import prod
from typing import Final, Generic, TypeVar

from reducer.oracle.outcome import Result
from reducer.shrink.ask import Prepared, Questions
from reducer.shrink.course import Course, Note, Prepare

C = TypeVar("C")

#: The most candidates that are skipped over by one question.
LONGEST: Final = 16
#: How many plans are looked at for something to ask ahead, per worker.
FUTURES: Final = 32


class Node(Generic[C]):
    """A question of a course, and the questions after it: made when they are looked at, and only once.

    `prepared` is None where the course is over; `notes` is what happened since the question before.
    """

    def __init__(self, course: Course[C], prepare: Prepare[C]) -> None:
        self._prepare = prepare
        self._after: dict[bool, Node[C]] = {}
        self.course: Course[C]
        self.prepared: Prepared[C] | None
        self.notes: Sequence[Note[C]]
        self.course, self.prepared, self.notes = course.settled(prepare)

    @property
    def name(self) -> str:
        """The pass whose candidate it is."""
        assert self.course.one is not None
        return self.course.one.name

    @property
    def chance(self) -> float:
        """How likely the candidate is to be accepted."""
        assert self.course.one is not None
        return self.course.habits.luck.of(self.course.one, self.course.situation)

    def after(self, *, accepted: bool) -> Node[C]:
        """The node after the verdict on this one."""
        if accepted not in self._after:
            assert self.prepared is not None
            course = self.course.after(self.prepared, accepted=accepted)
            self._after[accepted] = Node(course, self._prepare)
        return self._after[accepted]


@dataclass(frozen=True, slots=True)
class Step(Generic[C]):
    """A node with a verdict: `known`, or supposed, and then with this chance."""

    node: Node[C]
    accepted: bool
    chance: float = 1.0
    known: bool = False

    def following(self) -> Node[C]:
        """The node it leads to."""
        return self.node.after(accepted=self.accepted)


@dataclass(frozen=True, slots=True)
class Plan(Generic[C]):
    """A way from the present node, and which of its steps is asked about.

    Steps are supposed to be accepted, but for those known to be refused in between. With `blocked` it is known that
    not all of them are, so the answer about the last one.
    """

    steps: tuple[Step[C], ...]
    at: int
    blocked: bool = False

    @property
    def question(self) -> Prepared[C]:
        """What is asked."""
        prepared = self.steps[self.at].node.prepared
        assert prepared is not None
        return prepared

    @property
    def chance(self) -> float:
        """How likely it is to be accepted, given that not all steps are if the way is blocked."""
        mine, whole = (prod(step.chance for step in steps) for steps in (self.steps[: self.at + 1], self.steps))
        return (mine - whole) / (1 - whole) if self.blocked else mine

    def after(self, *, accepted: bool) -> tuple[tuple[Step[C], ...], Plan[C] | None]:
        """The steps that are decided by the verdict, and what to ask next if that is decided as well."""
        decided, rest = self.steps[: self.at + 1], self.steps[self.at + 1 :]
        if accepted:
            decided = (*decided[:-1], replace(decided[-1], accepted=True))
            if not self.blocked:
                return decided, None
        else:
            decided, rest = (), decided
        if sum(step.accepted for step in rest) > 1:
            return decided, _halved(rest)
        return (*decided, *rest[:-1], replace(rest[-1], accepted=False)), None


def _halved(steps: tuple[Step[C], ...]) -> Plan[C]:
    """A way of which the last step is refused: ask in the middle."""
    open_ = [k for k, step in enumerate(steps) if step.accepted]
    return Plan(steps, open_[(len(open_) - 2) // 2], blocked=True)


class Planner(Generic[C]):
    """Makes plans. `accepts` tells whether a candidate with this answer is accepted."""

    def __init__(self, questions: Questions[C], accepts: Callable[[Prepared[C], Result], bool]) -> None:
        self._questions = questions
        self._accepts = accepts

    def _known(self, prepared: Prepared[C], *, committed: bool = True) -> bool | None:
        """The verdict on a candidate, if there is an answer; `committed`: one that counts already."""
        if committed and not self._questions.committed(prepared):
            return None
        result = self._questions.known(prepared)
        return None if result is None else self._accepts(prepared, result)

    def plan(self, node: Node[C]) -> Plan[C] | None:
        """What to ask at a node; None if the course is over.

        A run of accepted candidates is as long as Golomb's code for it: where the next one has the chance p, and all
        those before it P together, it is skipped to if P (1 + p) is more than 1 (S. Golomb, Run-length encodings,
        1966).
        """
        if node.prepared is None:
            return None
        known = self._known(node.prepared)
        if known is not None:
            return Plan((Step(node, known, known=True),), 0)
        steps = [Step(node, True, node.chance)]
        product, length = steps[0].chance, 1
        passed: list[Step[C]] = []
        while product * 2 > 1 and length < LONGEST:
            node = (*steps, *passed)[-1].following()
            if node.prepared is None:
                break
            known = self._known(node.prepared)
            if known is False:
                passed.append(Step(node, False, known=True))
                continue
            chance = 1.0 if known else node.chance
            if product * (1 + chance) <= 1:
                break
            steps += [*passed, Step(node, True, chance, known=bool(known))]
            passed = []
            product *= chance
            length += 1
            if known:
                break
        return Plan(tuple(steps), len(steps) - 1)

    def after(self, plan: Plan[C], *, accepted: bool) -> Plan[C] | None:
        """The plan after a verdict."""
        decided, following = plan.after(accepted=accepted)
        return following or self.plan(decided[-1].following())

    def first(self, course: Course[C]) -> Iterator[Prepared[C]]:
        """The likely questions of a course."""
        plan = self.plan(Node(course.started(), self._questions.prepare))
        if plan is not None:
            yield plan.question
            yield from self.likely(plan)

    def likely(self, plan: Plan[C]) -> Iterator[Prepared[C]]:
        """The questions that may come after this one, the likeliest first, as far as they are not under way."""
        tie = count()
        heap: list[tuple[float, int, Plan[C], bool]] = []

        def push(chance: float, before: Plan[C]) -> None:
            known = self._known(before.question, committed=False)
            good = before.chance if known is None else float(known)
            for accepted, one in ((True, good), (False, 1 - good)):
                if one:
                    heappush(heap, (-chance * one, next(tie), before, accepted))

        push(1.0, plan)
        for _ in range(FUTURES * self._questions.workers):
            if not heap:
                return
            chance, _, before, accepted = heappop(heap)
            following = self.after(before, accepted=accepted)
            if following is not None:
                yield following.question
                push(-chance, following)
