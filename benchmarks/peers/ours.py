"""scanshrink itself as a contender: one worker, then replays on a simulated clock, and the neighbourhood of results."""

from __future__ import annotations

import random
from dataclasses import dataclass

import msgspec

from peers.clock import SimulatedOracle
from peers.contest import Meter, Score, Start, run
from peers.recording import Recorded, RecordedOracle, Recorder, fails_as, label_of
from reducer.ir.check import check
from reducer.ir.codec import decode_program, identity
from reducer.ir.equations import Program
from reducer.ir.normal import normalise
from reducer.ir.tiers import tier_of
from reducer.neighbourhood import neighbours
from reducer.neighbourhood.parameters import parameters
from reducer.oracle.base import Oracle
from reducer.shrink import Shrunk, certify, shrink_program
from reducer.shrink.certificate import form_of
from reducer.shrink.explain import explain

OURS = "scanshrink"
#: Repeats in fresh workers: of the start before anything, of the minimum at the end.
CONFIRMATIONS = 5


def reduce_ours(meter: Meter) -> Score:
    """Reduce with one worker; replay with one and two on a simulated clock; count violations in all neighbours."""
    start, recorder = meter.start, meter.recorder
    shrunk: Shrunk[Program] | None = None

    def contender(meter: Meter) -> Program:
        nonlocal shrunk
        shrunk = scanshrink(meter)
        return shrunk.program

    score = run(OURS, contender, meter)
    assert shrunk is not None
    one, two = replay(start, recorder, 1), replay(start, recorder, 2)
    score = msgspec.structs.replace(
        score,
        compiles=shrunk.to_fixpoint,
        total=shrunk.compiles + _evidence(shrunk.program, meter) + CONFIRMATIONS,
        seconds=round(one.seconds, 2),
        seconds_2=round(two.seconds, 2),
        with_evidence=(round(one.with_evidence, 2), round(two.with_evidence, 2)),
        same_bytes=one.program == two.program == shrunk.program and one.compiles == two.compiles == shrunk.compiles,
    )
    return with_violations(score, recorder, None)


def _evidence(program: Program, meter: Meter) -> int:
    """Compiles of certificate and explanations beyond what was known. Programs without a host placement count too.

    A reduction skips these; a certificate says of each whether it compiles.
    """
    known = set(meter.paid)
    more: set[str] = set()

    def asked(_: Program, recorded: Recorded) -> None:
        if recorded.word != "invalid" and recorded.question not in known:
            more.add(recorded.question)

    _gather(program, RecordedOracle(meter.recorder, asked), meter.start.label)
    return len(more)


def _gather(program: Program, oracle: Oracle[Program], label: str) -> None:
    """What a case holds beside its minimum: the certificate and the explanations."""
    wanted = fails_as(label)
    certify(program, neighbours(program, form_of(program)), oracle, wanted, key=identity)
    explain(parameters(program), oracle, wanted, check=check)


def with_violations(score: Score, recorder: Recorder, most: int | None) -> Score:
    """The score with what is wrong about its result's minimality."""
    program = normalise(decode_program(score.minimum.encode()))
    found, looked = violations(program, recorder.outcome(program).label, recorder, most)
    return msgspec.structs.replace(score, violations=found, looked_at=looked)


def scanshrink(meter: Meter) -> Shrunk[Program]:
    """All passes, one worker."""
    start = meter.start
    shrunk = shrink_program(
        start.program,
        RecordedOracle(meter.recorder, meter.note),
        fails_as(start.label),
        level=tier_of(start.program),
        placed=True,
        label=label_of,
    )
    assert shrunk.compiles == meter.compiles, "two counts of the same compiles"
    return shrunk


@dataclass(frozen=True, slots=True)
class Replay:
    """A reduction on a simulated clock: seconds, those with certificate and explanations, and its result."""

    seconds: float
    with_evidence: float
    program: Program
    compiles: int


def replay(start: Start, recorder: Recorder, workers: int) -> Replay:
    """The same reduction with so many workers, each compile taking the seconds that were recorded."""
    oracle = SimulatedOracle(recorder, workers)
    shrunk = shrink_program(
        start.program,
        oracle,
        fails_as(start.label),
        level=tier_of(start.program),
        placed=True,
        label=label_of,
        pause=oracle.pause,
    )
    reduced = oracle.now
    _gather(shrunk.program, oracle, start.label)
    return Replay(reduced, oracle.now, shrunk.program, shrunk.compiles)


def violations(program: Program, label: str, recorder: Recorder, most: int | None) -> tuple[int, int]:
    """Smaller neighbours that fail the same, and how many were looked at.

    With `most`, so many are drawn (with a fixed seed), and the first violation ends it: it is known then.
    """
    around = [neighbour.program for neighbour in neighbours(program, form_of(program))]
    if most is None:
        return sum(recorder.outcome(one).label == label for one in around), len(around)
    random.Random(0).shuffle(around)
    for looked, one in enumerate(around[:most], 1):
        if recorder.outcome(one).label == label:
            return 1, looked
    return 0, min(most, len(around))
