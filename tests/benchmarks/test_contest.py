"""One contender on one start, from recorded outcomes of the real compiler (libtpu 0.0.52)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reducer.ir.codec import decode
from reducer.ir.equations import Program
from reducer.ir.normal import normalise
from reducer.neighbourhood import neighbours

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"
START = normalise(decode((HERE.parent / "seed" / "trip_count_one.json").read_bytes()))
BITCAST = (
    "INTERNAL [post-optimization] Bitcast cannot have different memory spaces of output (5) and operand (0) "
    "([S(5)]) ([])"
)


def greedy(meter: Any) -> Program:
    """Remove one part after the other."""
    kept = set(range(len(meter.parts)))
    meter.fails(kept)
    for number in range(len(meter.parts)):
        if meter.fails(kept - {number}):
            kept -= {number}
    program: Program = meter.parts.program(kept)
    return program


@pytest.fixture
def meter() -> Any:
    from peers.contest import Meter
    from peers.recording import Recorder
    from peers.starts import start_of

    recorder = Recorder(RECORDED, "0.0.52", live=False)
    start = start_of("TRIP_COUNT_ONE", "seed", "0.0.52", START, recorder)
    assert (start.level, start.size, start.label) == ("tens", 6, BITCAST)
    return Meter(start, recorder, limit=100)


def test_compiles_are_counted_by_module(meter: Any) -> None:
    from peers.contest import run

    score = run("greedy", greedy, meter)
    assert (score.compiles, score.lowered, score.proposals, score.invalid, score.repeated) == EXPECTED
    assert (score.start_size, score.size, score.to_90, score.ended, score.same) == (6, 5, 4, True, True)


EXPECTED = (7, 13, 17, 1, 1)


def test_a_contender_that_asks_too_much_is_stopped_with_its_best_so_far(meter: Any) -> None:
    from peers.contest import run

    meter.limit = 2
    score = run("greedy", greedy, meter)
    assert (score.compiles, score.size, score.ended, score.same) == (2, 6, False, True)


def test_what_is_not_recorded_is_not_guessed(meter: Any) -> None:
    from peers.recording import Missing

    other = normalise(decode((HERE.parent / "seed" / "flat.json").read_bytes()))
    with pytest.raises(Missing, match="no outcome of program"):
        meter.recorder.outcome(other)


def test_violations_are_smaller_neighbours_that_fail_the_same() -> None:
    from peers.recording import Recorded

    class Recorder:
        def outcome(self, program: Program) -> Recorded:
            return Recorded("", "rejected", "x" if len(program.block.params) == 2 else "")

    from peers.ours import violations

    around = [neighbour.program for neighbour in neighbours(START, normalise)]
    failing = sum(len(one.block.params) == 2 for one in around)
    assert violations(START, "x", Recorder(), None) == (failing, len(around))  # type: ignore[arg-type]
    assert violations(START, "y", Recorder(), 5) == (0, 5)  # type: ignore[arg-type]
