"""One contender on one start: what it asks is judged and counted here, the same way for all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from peers.parts import Parts
from peers.recording import Recorded, Recorder, key_of
from reducer.errors import ProgramError
from reducer.ir.codec import encode_program
from reducer.ir.equations import Program
from reducer.ir.order import order_key, size


class Spent(BaseException):
    """The contender has used up what it was given. Not an `Exception`: libraries catch these."""


@dataclass(frozen=True, slots=True)
class Start:
    """A failing program: `kind` says where it is from, `level` is its size class, `label` the failure's signature."""

    name: str
    level: str
    kind: str
    libtpu: str
    program: Program
    label: str

    @property
    def size(self) -> int:
        """Equations."""
        return size(self.program)


class Score(msgspec.Struct, frozen=True):
    """What a contender needed.

    Attributes:
        compiles: different modules compiled until it ended, failed proposals included.
        lowered: different modules, those included that place nothing on the host and were not compiled.
        proposals: all it proposed; `invalid` of them were no programs or did not lower, `repeated` were known.
        size: equations of the result; `minimum` is its text form (JSON), to be looked at by others.
        history: (compiles so far, equations) of each failing program that was the smallest so far.
        to_90: compiles until nine tenths of its own reduction were done.
        seconds: of workers, as recorded. `own` is the contender's own time in seconds, measured.
        ended: it came to its own end; otherwise it was stopped by the limit.
        same: the result fails with the start's signature.
        seconds_2: with two workers; `with_evidence` holds both with the certificate and the explanations.
        violations: smaller neighbours of the result that fail the same; None if they were not looked at.
        looked_at: how many neighbours were.
    """

    contender: str
    start: str
    level: str
    start_size: int
    compiles: int
    lowered: int
    proposals: int
    invalid: int
    repeated: int
    size: int
    to_90: int
    seconds: float
    own: float
    ended: bool
    same: bool
    minimum: str
    history: tuple[tuple[int, int], ...]
    total: int | None = None
    seconds_2: float | None = None
    with_evidence: tuple[float, float] | None = None
    same_bytes: bool | None = None
    violations: int | None = None
    looked_at: int = 0


@dataclass
class Meter:
    """Judges programs for one contender on one start, and counts.

    `Spent` is raised after `limit` compiles, `patience` proposals, or `most_seconds` seconds of a worker.
    """

    start: Start
    recorder: Recorder
    limit: int
    patience: int = 200_000
    equations_only: bool = False
    most_seconds: float = float("inf")
    proposals: int = 0
    invalid: int = 0
    repeated: int = 0
    seconds: float = 0.0
    best: Program | None = None
    parts: Parts = field(init=False)
    history: list[tuple[int, int]] = field(default_factory=list)

    paid: set[str] = field(default_factory=set)
    lowered: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.parts = Parts(self.start.program, equations_only=self.equations_only)
        self._verdicts: dict[frozenset[int], bool] = {}
        self._seen: set[str] = set()
        self._best_order: Any = None

    @property
    def compiles(self) -> int:
        """Different modules compiled."""
        return len(self.paid)

    def fails(self, kept: Iterable[int]) -> bool:
        """Whether the program of these parts fails as the start does.

        Raises:
            Spent: the contender has used up what it was given.
        """
        self.proposals += 1
        if self.proposals > self.patience:
            raise Spent
        chosen = frozenset(kept)
        if chosen in self._verdicts:
            self.repeated += 1
            return self._verdicts[chosen]
        try:
            program = self.parts.program(chosen)
        except ProgramError:
            self.invalid += 1
            verdict = False
        else:
            verdict = self._judge(program)
        self._verdicts[chosen] = verdict
        return verdict

    def _judge(self, program: Program) -> bool:
        key = key_of(program)
        self.repeated += key in self._seen
        spent = self.compiles >= self.limit or self.seconds >= self.most_seconds
        if spent and key not in self._seen:
            raise Spent
        return self.note(program, self.recorder.outcome(program))

    def malformed(self) -> bool:
        """A proposal that is no set of parts at all: a text that cannot be read. Always False.

        Raises:
            Spent: as `fails`.
        """
        self.proposals += 1
        self.invalid += 1
        if self.proposals > self.patience:
            raise Spent
        return False

    def note(self, program: Program, recorded: Recorded) -> bool:
        """Count an answer; True if the program fails as the start does."""
        self._seen.add(recorded.key)
        if recorded.word != "invalid":
            self.lowered.add(recorded.question)
        first = recorded.costs_a_compile and recorded.question not in self.paid
        if first:
            self.paid.add(recorded.question)
        self.seconds += self.recorder.seconds_of(recorded, first=first)
        good = recorded.label == self.start.label
        if good:
            order = order_key(program)
            if self.best is None or order < self._best_order:
                self.best, self._best_order = program, order
                self.history.append((self.compiles, size(program)))
        return good


def run(name: str, contender: Callable[[Meter], Program | None], meter: Meter) -> Score:
    """Let a contender reduce a start. Its result is what it returns; the smallest failing program if it was stopped."""
    begun = time.process_time()
    result: Program | None = None
    ended = True
    try:
        result = contender(meter)
    except Spent:
        ended = False
    own = time.process_time() - begun
    best = result or meter.best
    assert best is not None, f"{meter.start.name} did not fail for {name}"
    final = size(best)
    wanted = meter.start.size - 0.9 * (meter.start.size - final)
    return Score(
        contender=name,
        start=meter.start.name,
        level=meter.start.level,
        start_size=meter.start.size,
        compiles=meter.compiles,
        lowered=len(meter.lowered),
        proposals=meter.proposals,
        invalid=meter.invalid,
        repeated=meter.repeated,
        size=final,
        to_90=next((n for n, reached in meter.history if reached <= wanted), meter.compiles),
        seconds=round(meter.seconds, 2),
        own=round(own, 2),
        ended=ended,
        same=meter.recorder.outcome(best).label == meter.start.label,
        minimum=encode_program(best).decode(),
        history=tuple(meter.history),
    )
