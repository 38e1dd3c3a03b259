"""What a hunt has found so far: one `Find` per signature and tier, and the counts a summary is made of."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import msgspec

from reducer.ir.equations import Program

#: What becomes of a new signature: first repeated in fresh workers, then reduced, then kept. `known` ones are in
#: the corpus that the user excluded; `flaky` ones did not repeat and do not count as failures.
State = Literal["new", "confirmed", "reducing", "saved", "known", "flaky"]


class Find(msgspec.Struct):
    """One distinct failure of this hunt. Mutable: the hunt's own record, never stored."""

    signature: str
    family: str
    slug: str
    start: Program
    program: Program
    message: str
    strategy: str
    tier: Literal["program", "placement"]
    started_size: int
    first_seconds: float
    kind: Literal["error"] = "error"
    state: State = "new"
    finds: int = 1
    size: int = 0
    compiles: int = 0
    case: str = ""
    reduced_seconds: float | None = None


class Tally:
    """Counts of a hunt. `compiled` are generated programs put to the compiler, distinct by lowered module."""

    def __init__(self) -> None:
        self.generated = 0
        self.compiled = 0
        self.skipped: Counter[str] = Counter()
        self.excused: Counter[str] = Counter()
        self.skeletons: set[str] = set()
        self.finds: dict[tuple[str, str], Find] = {}

    @property
    def failing(self) -> int:
        """Compiled programs that failed with a confirmed (or known) signature."""
        return sum(
            find.finds for find in self.finds.values() if find.state in ("confirmed", "reducing", "saved", "known")
        )

    def families(self) -> Counter[str]:
        """Failing programs by family."""
        counts: Counter[str] = Counter()
        for find in self.finds.values():
            if find.state not in ("new", "flaky"):
                counts[find.family] += find.finds
        return counts


class Snapshot(msgspec.Struct, frozen=True):
    """A hunt at one moment, for whoever shows it. `reducing` is (slug, size, unique compiles) or None."""

    seconds: float
    generated: int
    compiled: int
    failing: int
    skipped: dict[str, int]
    signatures: tuple[tuple[str, str, int, int], ...]
    reducing: tuple[str, int, int] | None
    compiles_per_second: float


class SignatureRow(msgspec.Struct, frozen=True):
    """One line of the summary: a distinct failure and where its case lies (empty: not saved)."""

    signature: str
    family: str
    kind: str
    tier: str
    strategy: str
    finds: int
    case: str
    size: int
    first_seconds: float
    compiles_to_minimum: int
    reduce_seconds: float | None


class Summary(msgspec.Struct, frozen=True):
    """What a hunt came to; the fields of ``hunt --json``."""

    generated: int
    compiled: int
    failing: int
    skipped: dict[str, int]
    excused: dict[str, int]
    skeletons: int
    signatures: tuple[SignatureRow, ...]
    seconds: float
    worker_busy_fraction: float
    corpus: str
    seed: int
    interrupted: bool


def row(find: Find) -> SignatureRow:
    """The summary's line for a find."""
    return SignatureRow(
        signature=find.signature,
        family=find.family,
        kind=find.kind,
        tier=find.tier,
        strategy=find.strategy,
        finds=find.finds,
        case=find.case,
        size=find.size,
        first_seconds=round(find.first_seconds, 2),
        compiles_to_minimum=find.compiles,
        reduce_seconds=find.reduced_seconds,
    )
