"""What a reduction is asked, what it says while it runs, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from reducer.corpus.case import TIERS, Case, Tier
from reducer.corpus.proof import Certificate, Explanation
from reducer.ir.equations import Program
from reducer.oracle.outcome import Result
from reducer.oracle.pool import Pool
from reducer.oracle.target import Target
from reducer.reduction.start import Confirmed
from reducer.reduction.wanted import Wanted
from reducer.shrink import SideFind
from reducer.stablehlo import Module

#: What can be reduced.
Candidate: TypeAlias = Program | Module

DEFAULT_OUT: Final = Path("reduced")
_STEP: Final = 0.9


class Stopped(Exception):
    """The time is up, or a person wants it to end."""


@dataclass(frozen=True, slots=True)
class Request:
    """One reduction.

    Attributes:
        starts: a program of the IR or a module; or several that are one thing at different tiers, the highest first.
        target: what it is compiled for.
        wanted: the failure to keep.
        case: the case it comes from.
        stored: its minima: each tier starts from the one that is stored there.
        keep: patterns of what must survive.
        tiers: the levels to reduce at.
        budget: most unique compiles, those of earlier runs of the same reduction included.
        seconds: longest time this run takes.
        timeout: seconds a candidate may take; by default a multiple of what the start takes.
        jobs: worker processes.
        out: corpus that the minimum is saved in.
        script: an interestingness script, asked in the compiler's place.
        settings: whether compiler options and topology are minimised too.
        certificate: whether every neighbour of a minimum is recorded.
    """

    starts: tuple[Candidate, ...]
    target: Target
    wanted: Wanted = Wanted()  # noqa: RUF009  (immutable)
    case: Case | None = None
    stored: Mapping[Tier, Candidate] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    tiers: frozenset[Tier] = frozenset(TIERS)
    budget: int | None = None
    seconds: float | None = None
    timeout: float | None = None
    jobs: int = 1
    out: Path = DEFAULT_OUT
    script: Path | None = None
    settings: bool = True
    certificate: bool = True

    @property
    def start(self) -> Candidate:
        """At the highest tier."""
        return self.starts[0]


@dataclass(frozen=True, slots=True)
class Progress:
    """A reduction at one moment.

    Attributes:
        seconds: since it began.
        tier, unit: what is being reduced, and what its size counts.
        start_size, size: of the tier's start, and of the best so far.
        compiles: unique ones, over all tiers.
        rate: compiles a second, recently.
        doing: what the pass in hand does.
        tried, total: candidates of this run of the pass, and how many there are (None: not known before).
        left: passes that come after it in this round.
    """

    seconds: float
    tier: Tier
    unit: str
    start_size: int
    size: int
    compiles: int
    rate: float
    doing: str
    tried: int
    total: int | None
    left: int


class Watcher(Protocol):
    """Follows a reduction."""

    def say(self, line: str) -> None:
        """A line that stays."""
        ...

    def show(self, progress: Progress) -> None:
        """How far it is."""
        ...

    def begun(self) -> None:
        """The start is confirmed: from now on there is something to lose."""
        ...


class OpenPool(Protocol):
    """Opens the workers of a target."""

    def __call__(self, target: Target, jobs: int, /, *, use_cache: bool = True) -> AbstractContextManager[Pool]:
        """A pool, closed with the context."""
        ...


@dataclass
class Stage:
    """One tier of a reduction, while it runs and afterwards. `level` handles its candidates, `start` and `best`.

    `to_fixpoint` and `minimal` are those of `Shrunk`, `minimal` false too if the certificate holds a neighbour that
    fails the same; `final` is the answer about `best` in a fresh worker, with the module's text. `milestones` are what
    was accepted on the way, each smaller than `_STEP` of the one before.
    """

    level: Any
    start: Any
    best: Any
    confirmed: Confirmed
    keeps: Callable[[Any], bool]
    result: Result
    compiles: int = 0
    to_fixpoint: int | None = None
    minimal: bool = False
    seconds: float = 0.0
    finds: dict[str, SideFind[Any]] = field(default_factory=dict)
    final: Result | None = None
    milestones: list[Any] = field(default_factory=list)

    def passed(self, candidate: Any, size: int) -> None:
        """Note what was accepted, if it is a long way from the one noted before."""
        if not self.milestones or size < _STEP * self.level.size(self.milestones[-1]):
            self.milestones.append(candidate)

    @property
    def tier(self) -> Tier:
        """Its tier."""
        tier: Tier = self.level.name
        return tier

    @property
    def changed(self) -> bool:
        """Whether anything was achieved."""
        return bool(self.level.key(self.best) != self.level.key(self.start))


@dataclass(frozen=True, slots=True)
class SideCase:
    """Another failure that was met on the way, saved as a find of its own; `case` is empty if it did not repeat."""

    signature: str
    tier: Tier
    size: int
    case: str


@dataclass(frozen=True, slots=True)
class Reduced:
    """What a reduction came to.

    Attributes:
        signature: of the failure; empty if an interestingness script's minimum does not fail.
        target: with the options and the topology that are left.
        stages: by tier.
        files: the script of each tier.
        unreached: tiers that could not be had, with the reason.
        finds: other failures met on the way.
        dropped: compiler options, and "topology", that it takes no more.
        confirmations: compiles for checking start and results, beside those of the tiers.
        seconds: how long it took.
        partial: it was stopped before it was minimal (each stage says whether it is), or before all was recorded.
        folder: of the case.
        rate: how often the start failed, in (failing, runs).
        explanations: at each tier, which other values of what is left still fail.
        certificates: of each tier that has one: the neighbours of its minimum, and what each does.
        smaller: of each tier whose minimum is none after all, the file of a smaller neighbour that fails the same.
    """

    signature: str
    target: Target
    stages: dict[Tier, Stage]
    files: dict[Tier, str]
    unreached: dict[Tier, str]
    finds: tuple[SideCase, ...]
    dropped: tuple[str, ...]
    confirmations: int
    seconds: float
    partial: bool
    folder: str
    rate: tuple[int, int]
    explanations: dict[Tier, tuple[Explanation, ...]]
    certificates: dict[Tier, Certificate]
    smaller: dict[Tier, str]

    @property
    def compiles(self) -> int:
        """Unique compiles, confirmations included."""
        return self.confirmations + sum(stage.compiles for stage in self.stages.values())

    @property
    def minimum(self) -> Candidate:
        """The minimum at the highest tier."""
        best: Candidate = next(iter(self.stages.values())).best
        return best

    @property
    def text(self) -> str:
        """The minimum at the highest tier, as text."""
        stage = next(iter(self.stages.values()))
        return str(stage.level.text(stage.best))
