"""The certificate: every neighbour of a minimum with what happens to it.

It proves that a candidate is 1-minimal under one target: no neighbour fails in the same way. And it is the heart of a
report, since the neighbours that compile say what the failure needs. Generic over the candidate, as the driver is:
whoever asks says what the neighbours are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Literal, TypeVar

import msgspec

from reducer.errors import ProgramError
from reducer.ir.canonical import canonical
from reducer.ir.codec import identity
from reducer.ir.equations import Program
from reducer.ir.normal import normalise
from reducer.neighbourhood import Neighbour, neighbours
from reducer.oracle.base import Oracle
from reducer.oracle.outcome import Compiled, Invalid, Result, Skipped, word

C = TypeVar("C")

Verdict = Literal["compiles", "fails-otherwise", "fails-the-same", "invalid", "skipped"]


class Entry(msgspec.Struct, frozen=True):
    """One neighbour: the kind of step, what it does, the identity of what it leads to, and what happens.

    `outcome` is the compiler's word, `signature` the label of a failure, "" for anything else. "skipped" means that
    the compiler was not asked because the answer is known: nothing is placed in host memory.
    """

    kind: str
    description: str
    key: str
    verdict: Verdict
    outcome: str
    signature: str = ""


class Certificate(msgspec.Struct, frozen=True):
    """All neighbours of the candidate with identity `key`, in the order of the neighbourhood."""

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
    candidate: C,
    around: Iterable[Neighbour[C]],
    oracle: Oracle[C],
    wanted: Callable[[Result], bool],
    *,
    key: Callable[[C], str],
    label: Callable[[Result], str | None] | None = None,
    events: Callable[[Entry, int, int], None] | None = None,
) -> Certificate:
    """Ask about every neighbour of a minimum; the same entries for any number of workers.

    Args:
        candidate: a minimum as `shrink` returns it.
        around: its neighbours, in the order of the certificate.
        oracle: the one that it was reduced with, or another on the same target.
        wanted: tells the failure.
        key: the identity of a candidate.
        label: names failures.
        events: is told each entry with its number and the total, in order. It may raise to stop.

    Raises:
        WorkerError, TargetError: the oracle cannot answer any more.
    """
    listed = list(around)
    results = ask_all(oracle, [neighbour.program for neighbour in listed])
    entries: list[Entry] = []
    for neighbour, result in zip(listed, results, strict=True):
        entries.append(_entry(neighbour, key(neighbour.program), result, wanted, label))
        if events:
            events(entries[-1], len(entries), len(listed))
    return Certificate(key(candidate), tuple(entries))


def certify_program(
    program: Program,
    oracle: Oracle[Program],
    wanted: Callable[[Result], bool],
    *,
    label: Callable[[Result], str | None] | None = None,
    events: Callable[[Entry, int, int], None] | None = None,
) -> Certificate:
    """`certify` with the documented neighbourhood of programs (`reducer.neighbourhood`)."""
    around = neighbours(program, form_of(program))
    return certify(program, around, oracle, wanted, key=identity, label=label, events=events)


def ask_all(oracle: Oracle[C], candidates: Iterable[C]) -> Iterable[Result]:
    """The answers to all candidates, in order, all workers busy; what cannot be asked is `Invalid`.

    What is not needed any more when the caller stops is withdrawn.
    """
    asked: list[Future[Result] | Result] = []
    try:
        for candidate in candidates:
            try:
                asked.append(oracle.submit(candidate))
            except ProgramError as error:
                asked.append(Result(Invalid(str(error))))
        for question in asked:
            yield question.result() if isinstance(question, Future) else question
    finally:
        for question in asked:
            if isinstance(question, Future):
                question.cancel()


def verdict_of(result: Result, wanted: Callable[[Result], bool]) -> Verdict:
    """One word for a result, seen from the failure that was reduced."""
    match result.answer:
        case Skipped():
            return "skipped"
        case Invalid():
            return "invalid"
        case _ if wanted(result):
            return "fails-the-same"
        case Compiled():
            return "compiles"
        case _:
            return "fails-otherwise"


def _entry(
    neighbour: Neighbour[C],
    key: str,
    result: Result,
    wanted: Callable[[Result], bool],
    label: Callable[[Result], str | None] | None,
) -> Entry:
    verdict = verdict_of(result, wanted)
    name = label(result) or "" if label is not None else ""
    if name and verdict == "compiles":
        verdict = "fails-otherwise"  # it compiles, wrongly, and in another way
    return Entry(neighbour.kind, neighbour.description, key, verdict, word(result.answer), name)
