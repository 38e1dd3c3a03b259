"""The certificate: every neighbour of a minimum with what happens to it.

It proves that a program is 1-minimal under one target: no neighbour fails in the same way. And it is the heart of a
report, since the neighbours that compile say what the failure needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from typing import Literal

import msgspec

from reducer.errors import ProgramError
from reducer.ir.canonical import canonical
from reducer.ir.codec import identity
from reducer.ir.equations import Program
from reducer.ir.normal import normalise
from reducer.neighbourhood import Neighbour, neighbours
from reducer.oracle.base import Oracle
from reducer.oracle.outcome import Compiled, Invalid, Result, Skipped

Verdict = Literal["compiles", "fails-otherwise", "fails-the-same", "invalid", "skipped"]


class Entry(msgspec.Struct, frozen=True):
    """One neighbour: the kind of step, what it does, the identity of the program it leads to, and what happens.

    `signature` is the label of a failure, "" for anything else. "skipped" means that the compiler was not asked
    because the answer is known: nothing is placed in host memory.
    """

    kind: str
    description: str
    key: str
    verdict: Verdict
    signature: str = ""


class Certificate(msgspec.Struct, frozen=True):
    """All neighbours of the program with identity `key`, in the order of the neighbourhood."""

    key: str
    entries: tuple[Entry, ...]

    @property
    def minimal(self) -> bool:
        """True if no neighbour fails the same."""
        return all(entry.verdict != "fails-the-same" for entry in self.entries)

    def counts(self) -> dict[str, dict[str, int]]:
        """How many neighbours of each kind have which verdict."""
        table: dict[str, Counter[str]] = {}
        for entry in self.entries:
            table.setdefault(entry.kind, Counter())[entry.verdict] += 1
        return {kind: dict(counts) for kind, counts in table.items()}


def form_of(program: Program) -> Callable[[Program], Program]:
    """The strongest normal form a program is in: the one its neighbours are compared in."""
    return canonical if canonical(program) == program else normalise


def certify(
    program: Program,
    oracle: Oracle[Program],
    wanted: Callable[[Result], bool],
    *,
    label: Callable[[Result], str | None] | None = None,
    events: Callable[[Entry, int, int], None] | None = None,
) -> Certificate:
    """Ask about every neighbour of a minimum.

    Args:
        program: a minimum as `shrink` returns it.
        oracle: the one that it was reduced with, or another on the same target.
        wanted: tells the failure.
        label: names failures.
        events: is told each entry with its number and the total, in order.

    Raises:
        WorkerError, TargetError: the oracle cannot answer any more.
    """
    around = list(neighbours(program, form_of(program)))
    asked: list[Future[Result] | Result] = []
    for neighbour in around:
        try:
            asked.append(oracle.submit(neighbour.program))
        except ProgramError as error:
            asked.append(Result(Invalid(str(error))))
    entries: list[Entry] = []
    try:
        for neighbour, question in zip(around, asked, strict=True):
            result = question.result() if isinstance(question, Future) else question
            entries.append(_entry(neighbour, result, wanted, label))
            if events:
                events(entries[-1], len(entries), len(around))
    finally:
        for question in asked:
            if isinstance(question, Future):
                question.cancel()
    return Certificate(identity(program), tuple(entries))


def _entry(
    neighbour: Neighbour,
    result: Result,
    wanted: Callable[[Result], bool],
    label: Callable[[Result], str | None] | None,
) -> Entry:
    verdict: Verdict
    name = ""
    match result.answer:
        case Skipped():
            verdict = "skipped"
        case Invalid():
            verdict = "invalid"
        case _ if wanted(result):
            verdict = "fails-the-same"
        case Compiled():
            verdict = "compiles"
        case _:
            verdict = "fails-otherwise"
    if label is not None and verdict.startswith("fails"):
        name = label(result) or ""
    return Entry(neighbour.kind, neighbour.description, identity(neighbour.program), verdict, name)
