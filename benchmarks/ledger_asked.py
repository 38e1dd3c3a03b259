"""Programs with known stacks put to the ledger's rule and to the truth: what `ledger.py` counts."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import msgspec
from common import ROOT
from ledger_shapes import Planted

from reducer.ledger import Ledger, Owed, ledger_of
from reducer.oracle.outcome import Compiled, Result
from reducer.oracle.verdict import verdict

TOPOLOGY = "v5e:2x2"


#: Dtype, dimensions, place: allocation and offset.
Array = tuple[str, tuple[int, ...], str]


class Truth:
    """The process that dumps and reads buffer assignments; replaced when the compiler takes it down."""

    def __init__(self, library: str) -> None:
        from reducer.oracle.environment import worker_environment

        self._environment = {**worker_environment(library), "PYTHONPATH": str(ROOT)}
        self._process: subprocess.Popen[str] | None = None

    def host(self, text: str) -> list[Array] | None:
        """Arrays in host memory, or None if the program does not compile there."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("ledger_truth.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=self._environment,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps({"text": text, "topology": TOPOLOGY}), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.close()
            return None
        answer = json.loads(line)
        return [(dtype, tuple(dims), place) for dtype, dims, place in answer["host"]] if "host" in answer else None

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def kept(planted: Planted, host: Sequence[Array]) -> bool:
    """Whether every stack that was planted has room on the host: as many elements of its dtype, or a device's part.

    Stacks alike that live at one time need a place each; an unrolled one may be several arrays, each of which holds
    more than one turn's values.
    """
    if planted.turn:
        arrays = [(dtype, prod(dims)) for dtype, dims, _ in host if prod(dims) > planted.turn]
        return all(sum(n for kind, n in arrays if kind == dtype) >= prod(dims) for dtype, dims in planted.stacks)
    room: dict[tuple[str, int], set[str]] = {}
    for dtype, dims, place in host:
        room.setdefault((dtype, prod(dims)), set()).add(place)
    parts = [k for k in range(1, planted.partitions + 1) if planted.partitions % k == 0]
    return all(
        any(len(room.get((dtype, prod(dims) // k), ())) >= count for k in parts)
        for (dtype, dims), count in Counter(planted.stacks).items()
    )


@dataclass(frozen=True)
class Judged:
    """One program: what the rule says and what is true."""

    planted: Planted
    word: str
    loss: str | None
    kept: bool | None


class Record(msgspec.Struct, frozen=True):
    """What was asked of the compiler about one program, so that a changed rule can be tried without asking again.

    `host` is the truth, `compiled` the compiler's answer if it is one, `owed` what the rule reads from the trace.
    """

    release: str
    planted: Planted
    host: list[Array] | None
    compiled: Compiled | None
    owed: Owed

    def judged(self) -> Judged:
        """The rule of now, and the truth."""
        if self.compiled is None:
            return Judged(self.planted, "not compiled", None, None)
        ledger = ledger_of(self.owed, self.compiled.buffers, self.compiled.unread, carried=self.compiled.carried)
        word = verdict(Result(self.compiled, ledger=ledger)).word
        return Judged(self.planted, word, ledger.loss, None if self.host is None else kept(self.planted, self.host))


def judged(planted: Sequence[Planted], release: str, options: argparse.Namespace) -> Iterator[Judged]:
    """Ask the rule and the truth about each program; with `--replay` those that `--store` has written down."""
    if options.replay:
        with Path(options.replay).open("rb") as lines:
            records = (msgspec.json.decode(line, type=Record) for line in lines)
            wanted = {one.text for one in planted}
            yield from (one.judged() for one in records if one.release == release and one.planted.text in wanted)
        return
    for record in asked(planted, release):
        if options.store:
            with Path(options.store).open("ab") as file:
                file.write(msgspec.json.encode(record) + b"\n")
        yield record.judged()


def asked(planted: Sequence[Planted], release: str) -> Iterator[Record]:
    """Put each program to the compiler, and to the process that dumps buffer assignments."""
    from reducer.oracle.jobs import ProgramJob
    from reducer.oracle.pool import Pool
    from reducer.oracle.target import resolve_target

    target = resolve_target(release, TOPOLOGY)
    truth = Truth(target.path)
    try:
        with Pool(target, 1) as pool:
            for one in planted:
                future = pool.submit(ProgramJob(one.text), want_ledger=True)
                host = truth.host(one.text)
                result = future.result()
                ledger = result.ledger or Ledger()
                owed = Owed(tuple(line.stack for line in ledger.lines), ledger.partitions, ledger.reason)
                compiled = result.answer if isinstance(result.answer, Compiled) else None
                yield Record(release, one, host, compiled, owed)
    finally:
        truth.close()
