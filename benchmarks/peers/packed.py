"""What the repository has of a recording and of scores: enough to rerun every published figure without libtpu.

`packed/<release>.jsonl.gz` has the outcomes, with shortened hashes; `packed/scores.jsonl.gz` the scores.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from peers.contest import Score
from peers.recording import Recorded
from reducer.errors import InputError

PACKED = Path(__file__).with_name("packed")
SCORES = "scores"

#: A score's contender and start.
Cell = tuple[str, str]


def read(name: str, folder: Path = PACKED) -> bytes:
    """The lines of one packed file: a release's, or `SCORES`. Nothing if there is no such file."""
    path = folder / f"{name}.jsonl.gz"
    return gzip.decompress(path.read_bytes()) if path.exists() else b""


def write(name: str, lines: Iterable[bytes], folder: Path = PACKED) -> None:
    """Pack one file. The same lines give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    data = gzip.compress(b"".join(line + b"\n" for line in lines), compresslevel=9, mtime=0)
    (folder / f"{name}.jsonl.gz").write_bytes(data)


def scores_in(work: Path, folder: Path = PACKED) -> dict[Cell, Score]:
    """The scores in the repository and in a working folder; the last one of a contender on a start counts."""
    file = work / "scores.jsonl"
    lines = [*read(SCORES, folder).splitlines(), *(file.read_bytes().splitlines() if file.exists() else ())]
    scores = (msgspec.json.decode(line, type=Score) for line in lines)
    return {(score.contender, score.start): score for score in scores}


def pack_scores(scores: Mapping[Cell, Score], folder: Path = PACKED) -> None:
    """Put scores into the repository."""
    write(SCORES, (msgspec.json.encode(scores[cell]) for cell in sorted(scores)), folder)


def pack_recording(libtpu: str, lines: bytes, folder: Path = PACKED) -> int:
    """Add lines of a recording to what the repository has; returns the number of its programs then.

    Raises:
        InputError: two programs, or two modules, have the same digits.
    """
    packed: dict[str, Recorded] = {}
    whole: dict[str, str] = {}
    for line in (*read(libtpu, folder).splitlines(), *lines.splitlines()):
        recorded = msgspec.json.decode(line, type=Recorded)
        short = recorded.shortened()
        for long, digits in ((recorded.key, short.key), (recorded.module, short.module)):
            if long != digits and whole.setdefault(digits, long) != long:
                raise InputError(f"{long} and {whole[digits]} have the same digits", hint="raise recording.DIGITS")
        packed[short.key] = short
    # In the order in which they were recorded: a module takes what its first program took.
    write(libtpu, map(msgspec.json.encode, packed.values()), folder)
    return len(packed)
