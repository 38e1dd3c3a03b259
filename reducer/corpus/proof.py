"""What a case says of its minimum beside that it fails: that nothing smaller does, and what does not matter.

Values as in `case`; `reducer.evidence` makes them.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, Literal, TypeAlias, get_args

import msgspec

Word: TypeAlias = Literal["compiled", "rejected", "crashed", "timed-out", "invalid", "incompatible"]

NeighbourWord: TypeAlias = Word | Literal["skipped", "not-kept"]
NeighbourVerdict: TypeAlias = Literal[
    "fails-the-same", "compiles", "fails-otherwise", "invalid", "skipped", "not-kept"
]
NEIGHBOUR_VERDICTS: Final[tuple[NeighbourVerdict, ...]] = get_args(NeighbourVerdict)
#: Verdicts on neighbours of which a certificate claims nothing, as no compiler was asked.
NOT_ASKED: Final[tuple[NeighbourVerdict, ...]] = ("skipped", "not-kept")


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Base of everything in a case file: a field this scanshrink does not know is an error, not dropped."""


class Neighbour(Part, frozen=True, kw_only=True):
    """A program one step smaller than a minimum, and what happened to it.

    `kind` is the sort of step and `edit` where it is taken; `key` the first hex digits of the identity of the program
    it leads to. `signature` is that of a failure, "" for anything else; "skipped" was not compiled, because nothing
    in it is placed in host memory; "not-kept" because it lacks what a person wanted to keep (a note of the case).
    """

    edit: str
    outcome: NeighbourWord
    kind: str = ""
    key: str = ""
    signature: str = ""

    @property
    def step(self) -> str:
        """Kind and edit, for people."""
        return f"{self.kind} {self.edit}".strip()

    def verdict(self, signature: str) -> NeighbourVerdict:
        """One word, seen from the failure with that signature."""
        if self.outcome in ("skipped", "not-kept"):
            return self.outcome
        if self.outcome in ("invalid", "incompatible"):
            return "invalid"
        if self.signature == signature:
            return "fails-the-same"
        return "compiles" if self.outcome == "compiled" and not self.signature else "fails-otherwise"


class Certificate(Part, frozen=True, kw_only=True):
    """Evidence that a minimum is 1-minimal: every neighbour in a documented neighbourhood, with its outcome.

    `neighbourhood` is its name and version.
    """

    neighbourhood: str
    neighbours: tuple[Neighbour, ...] = ()

    def counts(self, signature: str) -> dict[NeighbourVerdict, int]:
        """How many neighbours have which verdict; a minimum has none that fails the same."""
        found = Counter(neighbour.verdict(signature) for neighbour in self.neighbours)
        return {verdict: found[verdict] for verdict in NEIGHBOUR_VERDICTS if found[verdict]}


class Explanation(Part, frozen=True, kw_only=True):
    """Which other values of one parameter still fail: ``length of the inner scan`` - ``any tried: 1, 2, 3``.

    `tried` says what became of each value that was tried, in that order; the first is the minimum's own.
    """

    parameter: str
    still_fails: str
    tried: dict[str, NeighbourVerdict] = {}


class Equivalence(Part, frozen=True, kw_only=True):
    """A checked claim: the minimum and `same_as` (a neighbour's edit) ran on CPU and differed by at most this."""

    same_as: str
    largest_difference: float
