"""What a pass is: a plain function with declared metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

C = TypeVar("C")

Level: TypeAlias = Literal["program", "placement", "stablehlo"]


@dataclass(frozen=True, slots=True)
class Edits(Generic[C]):
    """`count` independent edits of one program, the likeliest to succeed first; any subset can be made together.

    `apply` takes rising positions below `count` and returns the candidate, or raises `ProgramError` where these
    edits cannot be made together. `levels` are positions at which the likelihood falls: a group of edits that is
    tried together does not reach across one.
    """

    count: int
    apply: Callable[[Sequence[int]], C]
    levels: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Numbers(Generic[C]):
    """Numbers of one program, each of which may be lowered to its floor independently of the others.

    `apply` takes all of them, in order, and returns the candidate, or raises `ProgramError`.
    """

    values: tuple[int, ...]
    floors: tuple[int, ...]
    apply: Callable[[Sequence[int]], C]


#: Builds one candidate when called, or raises `ProgramError`: most are never looked at, so none is built before.
Candidate: TypeAlias = Callable[[], C]

#: What a pass makes of a program: candidates to be tried one by one, edits for the driver to combine, or numbers.
Proposal: TypeAlias = Iterable[Candidate[C]] | Edits[C] | Numbers[C]


#: Where a candidate stands: the first one when a pass is run for the first time, the first one when it is run again,
#: one after an accepted one, one after a refused one.
Situation: TypeAlias = Literal["first", "again", "lucky", "unlucky"]


@dataclass(frozen=True, slots=True)
class Chances:
    """How likely a candidate of a pass is to be accepted, by its situation. All are above 0 and below 1."""

    first: float = 0.5
    again: float = 0.2
    lucky: float = 0.6
    unlucky: float = 0.2


@dataclass(frozen=True, slots=True)
class Pass(Generic[C]):
    """A pass: `propose` is its function, the rest is what the driver and the progress line need to know.

    Attributes:
        name: in kebab case; stable, it stands in statistics.
        description: one line for the progress line, in the imperative.
        propose: program -> candidates or edits; see `reducer.passes` for the contract.
        benefit: 1 (polish) to 5 (can remove most of a program at once).
        cost: how the number of compiles of one run grows, when most proposals fail: "1", "log", "linear", "square".
        tiers: the levels at which it makes sense.
        one_shot: it is run once, on the start, and not again after a change.
        late: it is run only when nothing else makes progress; what it costs is counted apart.
        chances: what is supposed of its candidates before any was tried.
        may_grow: it may propose candidates that are not smaller. The driver has no use for them: always False.
    """

    name: str
    description: str
    propose: Callable[[C], Proposal[C]]
    benefit: int
    cost: Literal["1", "log", "linear", "square"]
    tiers: tuple[Level, ...] = ("program", "placement")
    one_shot: bool = False
    late: bool = False
    chances: Chances = Chances()
    may_grow: bool = False
