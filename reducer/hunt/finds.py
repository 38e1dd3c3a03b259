"""What a hunt has found so far: one `Find` per signature and sort, and the counts a summary is made of."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Literal

import msgspec

from reducer.ir.equations import Program
from reducer.ir.order import size
from reducer.ir.tiers import ProgramTier as Tier
from reducer.ir.tiers import Sort
from reducer.oracle.verdict import Kind

#: What becomes of a new signature: repeated in a fresh worker ("confirming"), saved ("confirmed"), shrunk
#: ("reducing"), saved again ("saved"). `known` ones are in the corpus that the user excluded; `flaky` ones did not
#: repeat and do not count as failures.
State = Literal["new", "confirming", "confirmed", "reducing", "saved", "known", "flaky"]

#: States in which nothing is left to do.
SETTLED: frozenset[State] = frozenset({"saved", "known", "flaky"})
#: States in which it is not known whether the failure is real.
UNSURE: frozenset[State] = frozenset({"new", "confirming", "flaky"})


class Find(msgspec.Struct, eq=False):
    """One distinct failure of this hunt. Mutable: the hunt's own record, never stored.

    `start` is the program as it was met, `program` the smallest so far. `finds` counts how often the failure was
    met, `failing` the generated programs among these, `counted` how many of them the corpus knows of. `before` is
    the saved find that this smaller one would replace. `repeats` says how often it ended how in a fresh worker.
    `limit` is in seconds, of a slow compile: what is expected to take less.
    """

    signature: str
    family: str
    slug: str
    start: Program
    program: Program
    message: str
    strategy: str
    tier: Tier
    sort: Sort
    started_size: int
    first_seconds: float
    kind: Kind = "error"
    state: State = "new"
    finds: int = 1
    failing: int = 0
    counted: int = 0
    size: int = 0
    compiles: int = 0
    case: str = ""
    reduced_seconds: float | None = None
    before: Find | None = None
    repeats: dict[str, int] = {}
    limit: float = 0.0

    @property
    def sure(self) -> bool:
        """Whether the failure is known to be real: confirmed, excluded by the user, or saved before."""
        return self.state not in UNSURE or self.before is not None

    def begin_with(self, program: Program) -> None:
        """Take `program` for the start."""
        self.start = self.program = program
        self.started_size = self.size = size(program)


class Tally:
    """Counts of a hunt. `compiled` are generated programs put to the compiler, distinct by lowered module.

    `unjudged` are those of them that compiled, and of which no memory ledger could be had; `compared` those that were
    compared with programs that mean the same (whose compiles are in none of these counts).
    """

    def __init__(self) -> None:
        self.generated = 0
        self.compiled = 0
        self.unjudged = 0
        self.compared = 0
        self.skipped: Counter[str] = Counter()
        self.excused: Counter[str] = Counter()
        self.skeletons: set[str] = set()
        self.finds: dict[tuple[str, str], Find] = {}

    @property
    def failing(self) -> int:
        """Compiled programs that failed with a confirmed (or known) signature."""
        return sum(find.failing for find in self.finds.values() if find.sure)

    @property
    def unconfirmed(self) -> int:
        """Compiled programs whose failure did not repeat, or was not repeated yet."""
        return sum(find.failing for find in self.finds.values() if not find.sure)

    def unsettled(self) -> list[Find]:
        """Finds that are still to be confirmed or shrunk: the backlog of a resumed hunt."""
        return [find for find in list(self.finds.values()) if find.state not in SETTLED]


class Rate:
    """Events per second over the last `window` seconds."""

    def __init__(self, window: float = 10.0) -> None:
        self._window = window
        self._samples: deque[tuple[float, int]] = deque()

    def of(self, now: float, count: int) -> float:
        """Note that `count` events have been by `now`, and return the recent rate."""
        self._samples.append((now, count))
        while len(self._samples) > 2 and now - self._samples[1][0] >= self._window:
            self._samples.popleft()
        began, first = self._samples[0]
        return (count - first) / (now - began) if now > began else 0.0


class Snapshot(msgspec.Struct, frozen=True):
    """A hunt at one moment, for whoever shows it.

    `left` is in seconds, until generating ends or, when that is over (`finishing`), until the grace does.
    `signatures` are (slug, sort, state, finds, size), `reducing` is (slug, start's size, size, unique compiles).
    `compiles_per_second` counts everything compiled in recent seconds, shrinking included.
    """

    seconds: float
    left: float
    finishing: bool
    generated: int
    compiled: int
    failing: int
    skipped: dict[str, int]
    signatures: tuple[tuple[str, str, str, int, int], ...]
    reducing: tuple[str, int, int, int] | None
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


class FlakyRow(msgspec.Struct, frozen=True):
    """A failure that was met and did not come every time: how often it ended how when it was repeated."""

    signature: str
    kind: str
    tier: str
    strategy: str
    finds: int
    size: int
    repeats: dict[str, int]
    case: str = ""


class Summary(msgspec.Struct, frozen=True):
    """What a hunt came to; the fields of ``hunt --json``."""

    generated: int = 0
    compiled: int = 0
    failing: int = 0
    skipped: dict[str, int] = {}
    excused: dict[str, int] = {}
    unjudged: int = 0
    compared: int = 0
    skeletons: int = 0
    signatures: tuple[SignatureRow, ...] = ()
    flaky: tuple[FlakyRow, ...] = ()
    seconds: float = 0.0
    worker_busy_fraction: float = 0.0
    corpus: str = ""
    seed: int = 0
    interrupted: bool = False


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


def rows(finds: Iterable[Find]) -> tuple[SignatureRow, ...]:
    """The summary's lines, one per signature and tier: finds that ended as one case are one line."""
    merged: dict[tuple[str, str], SignatureRow] = {}
    for find in finds:
        new = row(find)
        old = merged.setdefault((new.signature, new.tier), new)
        if old is not new:
            best = min(old, new, key=lambda r: (not r.case, r.reduce_seconds is None, r.size))
            merged[new.signature, new.tier] = msgspec.structs.replace(
                best, finds=old.finds + new.finds, first_seconds=min(old.first_seconds, new.first_seconds)
            )
    return tuple(merged.values())


def flaky_rows(finds: Iterable[Find]) -> tuple[FlakyRow, ...]:
    """The summary's lines for finds that were not there each time."""
    return tuple(
        FlakyRow(find.signature, find.kind, find.tier, find.strategy, find.finds, find.size, find.repeats, find.case)
        for find in finds
        if find.state == "flaky"
    )


def summary_of(tally: Tally) -> Summary:
    """What the counts come to."""
    excused = tally.excused.copy()
    excused["unconfirmed"] += tally.unconfirmed
    finds = list(tally.finds.values())
    return Summary(
        generated=tally.generated,
        compiled=tally.compiled,
        failing=tally.failing,
        skipped=dict(tally.skipped),
        excused=dict(+excused),
        unjudged=tally.unjudged,
        compared=tally.compared,
        skeletons=len(tally.skeletons),
        signatures=rows(find for find in finds if find.sure),
        flaky=flaky_rows(finds),
    )
