"""What the repository has of the comparison of reducers: outcomes of the real compiler, and the scores made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from reducer.errors import InputError
from reducer.ir.codec import decode_program
from reducer.ir.normal import normalise
from reducer.ir.order import size


@pytest.fixture(scope="module")
def scores() -> Any:
    from peers import packed

    return packed.scores_in(Path("nowhere"))


@pytest.fixture(scope="module")
def recorder_of() -> Any:
    from peers import packed
    from peers.recording import recorders

    with recorders(Path("nowhere"), live=False, packed=packed.read) as of:
        yield of


@pytest.fixture(scope="module")
def starts(recorder_of: Any) -> Any:
    """All but the thousands, which take seconds to build."""
    from peers import starts

    return {one[0]: starts.start_of(*one, recorder_of(one[2])) for one in starts.all_starts(most=1000)}


def test_every_start_fails_in_the_recording(starts: Any) -> None:
    assert [start.name for start in starts.values() if not start.label] == []
    assert len(starts) >= 30


def test_every_published_result_fails_as_its_start(starts: Any, scores: Any, recorder_of: Any) -> None:
    wrong = []
    for score in scores.values():
        if (start := starts.get(score.start)) is None:
            continue
        program = normalise(decode_program(score.minimum.encode()))
        same = recorder_of(start.libtpu).outcome(program).label == start.label
        if (size(program), same, start.size) != (score.size, score.same, score.start_size):
            wrong.append((score.contender, score.start))
    assert wrong == []


@pytest.mark.parametrize("name", ["TRIP_COUNT_ONE", "bitcast, small stack", "lane slice"])
def test_the_published_result_is_reached_without_a_compiler(
    name: str, starts: Any, scores: Any, recorder_of: Any
) -> None:
    from peers.contest import Meter
    from peers.ours import OURS, scanshrink
    from peers.recording import Missing

    start = starts[name]
    try:
        shrunk = scanshrink(Meter(start, recorder_of(start.libtpu), limit=1000))
    except Missing as missing:
        pytest.skip(f"the reducer has changed and asks what nobody has asked yet ({missing}): run and pack it again")
    assert size(shrunk.program) == scores[OURS, name].size


def _lines(*records: Any) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def test_what_is_packed_is_known_to_a_recorder(tmp_path: Path) -> None:
    from peers import packed
    from peers.recording import DIGITS, Recorded

    first, again, other = (
        Recorded("a" * 64, "rejected", "X", "b" * 64, 1.0, 2.0),
        Recorded("a" * 64, "rejected", "X", "b" * 64, 1.5, 2.0),
        Recorded("c" * 64, "skipped"),
    )
    assert packed.pack_recording("1.0", _lines(first, other), tmp_path) == 2
    assert packed.pack_recording("1.0", _lines(again), tmp_path) == 2
    short = Recorded("a" * DIGITS, "rejected", "X", "b" * DIGITS, 1.5, 2.0)
    assert packed.read("1.0", tmp_path) == _lines(short, Recorded("c" * DIGITS, "skipped"))


def test_digits_that_two_programs_share_are_refused(tmp_path: Path) -> None:
    from peers import packed
    from peers.recording import DIGITS, Recorded

    two = [Recorded("a" * DIGITS + end * 48, "skipped") for end in "bc"]
    with pytest.raises(InputError, match="same digits"):
        packed.pack_recording("1.0", _lines(*two), tmp_path)
    assert packed.read("1.0", tmp_path) == b""


def test_a_later_score_counts(tmp_path: Path, scores: Any) -> None:
    from peers import packed

    cell, score = next(iter(scores.items()))
    packed.pack_scores({cell: score}, tmp_path / "packed")
    assert packed.scores_in(tmp_path, tmp_path / "packed") == {cell: score}
    later = msgspec.structs.replace(score, compiles=score.compiles + 1)
    (tmp_path / "scores.jsonl").write_bytes(_lines(later))
    assert packed.scores_in(tmp_path, tmp_path / "packed") == {cell: later}
