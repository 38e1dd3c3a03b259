"""What the driver needs to know of candidates (`Tier`), and what it tells the world: events, statistics, the result.

Everything is generic over the candidate: a program of the IR, a module's text, in tests a plain tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from reducer.oracle.outcome import Result

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Tier(Generic[C]):
    """How candidates of one level are handled.

    Attributes:
        name: "program", "placement" or "stablehlo".
        forms: normal forms, the strongest first. Each maps a candidate to an equivalent one and is a projection
            (applying it twice changes nothing more). The driver uses the first one under which the start still
            fails as wanted, for all candidates; the last one has to be safe for every start.
        check: raises `ProgramError` for a candidate that is not well-formed.
        key: the candidate's identity; equal keys mean equal candidates.
        order_key: smaller means simpler; total and well-founded.
        size: the figure people are shown.
        text: the candidate, readable.
        hopeless: tells candidates that cannot fail as wanted, whatever the compiler is; they are not asked about.
    """

    name: str
    forms: tuple[Callable[[C], C], ...]
    check: Callable[[C], None]
    key: Callable[[C], str]
    order_key: Callable[[C], Any]
    size: Callable[[C], int]
    text: Callable[[C], str]
    hopeless: Callable[[C], bool] = lambda _: False


@dataclass(frozen=True, slots=True)
class PassStats:
    """What one pass did: `proposed` counts candidates in committed order, including the ones not put to the oracle."""

    runs: int = 0
    proposed: int = 0
    invalid: int = 0
    repeated: int = 0
    compiles: int = 0
    accepted: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class SideFind(Generic[C]):
    """Another failure met on the way: the smallest candidate that showed it."""

    label: str
    candidate: C
    result: Result


@dataclass(frozen=True, slots=True)
class Started(Generic[C]):
    """The start was asked about and fails as wanted. `form` is the number of the normal form in use."""

    candidate: C
    size: int
    form: int


@dataclass(frozen=True, slots=True)
class PassStarted:
    """A pass begins on the best candidate. `left` is how many passes of this sweep come after it."""

    name: str
    description: str
    left: int


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate was answered, in committed order. `compiles` is the running total.

    `at` says how many proposals of the pass were behind when it was asked, `total` how many there are, if known.
    """

    name: str
    size: int
    wanted: bool
    compiles: int
    at: int = 0
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Accepted(Generic[C]):
    """A smaller candidate fails as wanted: it is the best from now on, and worth writing to disk."""

    name: str
    candidate: C
    size: int
    compiles: int
    result: Result


@dataclass(frozen=True, slots=True)
class PassFinished:
    """A pass is through, with what it did in this run."""

    name: str
    stats: PassStats


@dataclass(frozen=True, slots=True)
class Found(Generic[C]):
    """Another failure was met for the first time, or smaller than before."""

    find: SideFind[C]


@dataclass(frozen=True, slots=True)
class Finished(Generic[C]):
    """The end: by fixpoint, by budget, or because the caller stopped it."""

    candidate: C
    size: int
    compiles: int
    minimal: bool


Event: TypeAlias = Started[C] | PassStarted | Tried | Accepted[C] | PassFinished | Found[C] | Finished[C]


@dataclass(frozen=True, slots=True)
class Shrunk(Generic[C]):
    """The result of a reduction.

    Attributes:
        program: the smallest candidate found.
        result: the oracle's answer about it.
        start_size: of the start as given.
        history: (compiles so far, size) at the start and at each accepted candidate.
        compiles: unique questions to the oracle in committed order: different modules, failed proposals included.
            The same for any number of workers.
        to_fixpoint: `compiles` when the ordinary passes had stopped for the first time, before any late one.
        restarted: what the second way from the start cost of `compiles`.
        asked: all questions that cost a compile, speculation included; answers from a cache do not count.
        proposals: candidates in committed order.
        invalid: proposals that were not well-formed, or did not lower.
        stats: per pass.
        finds: other failures, by label.
        minimal: a fixpoint of all passes was reached within the budget.
    """

    program: C
    result: Result
    start_size: int
    history: tuple[tuple[int, int], ...]
    compiles: int
    to_fixpoint: int
    restarted: int
    asked: int
    proposals: int
    invalid: int
    stats: Mapping[str, PassStats]
    finds: tuple[SideFind[C], ...]
    minimal: bool


@dataclass(slots=True)
class Progress(Generic[C]):
    """The state of a reduction, for a caller that is interrupted: `best` is always a candidate that fails as wanted."""

    best: C | None = None
    result: Result | None = None
    compiles: int = 0
    history: list[tuple[int, int]] = field(default_factory=list)
