"""The book of a hunt: which failures were met, how often, and which of them are worth shrinking."""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from reducer.hunt.finds import Find, Tally
from reducer.hunt.reductions import Reductions, Workshop
from reducer.ir.equations import Program
from reducer.ir.order import order_key, size
from reducer.ir.tiers import sort_of, tier_of
from reducer.oracle.outcome import Result
from reducer.oracle.verdict import Kind, Verdict, said_of, verdict
from reducer.words import counted


class Ledger:
    """Counts failures by signature and sort; hands new ones to `reductions`. Methods may be called from any thread.

    `elapsed` is the hunt's clock, in seconds; failures that are not of `kinds` are passed over.
    """

    def __init__(
        self,
        workshop: Workshop,
        *,
        notify: Callable[[str], None],
        elapsed: Callable[[], float],
        kinds: frozenset[Kind],
    ) -> None:
        self._kinds = kinds
        self._workshop = workshop
        self._notify = notify
        self._elapsed = elapsed
        self._lock = threading.Lock()
        self.tally = Tally()
        self.reductions = Reductions(
            workshop, side_finds=self._take_side_finds, restore=self._restore, forget=self._forget, notify=notify
        )

    def take_over(self, find: Find) -> None:
        """Queue a find of an earlier hunt."""
        self.tally.finds[find.signature, find.sort] = find
        self.reductions.add(find)

    def meet(
        self,
        program: Program,
        judged: Verdict,
        message: str,
        *,
        strategy: str = "",
        generated: bool = False,
        limit: float = 0.0,
    ) -> None:
        """Count a failure; a new one, or a smaller one than the minimum, is queued. What is none is passed over.

        `generated`: the failure of a generated program itself; `limit` is that of a slow compile.
        """
        found, kind = judged.failure, judged.kind
        if found is None or kind is None or kind not in self._kinds:
            return
        sort = sort_of(program)
        with self._lock:
            known = self.tally.finds.get((found.text, sort))
            if known is not None:
                known.finds += 1
                known.failing += generated
                self._consider(known, program)
                return
            find = Find(
                signature=found.text,
                family=found.family,
                slug=found.slug,
                kind=kind,
                start=program,
                program=program,
                message=message,
                strategy=strategy or dict(program.meta).get("strategy", ""),
                tier=tier_of(program),
                sort=sort,
                started_size=size(program),
                first_seconds=self._elapsed(),
                failing=int(generated),
                limit=limit,
                size=size(program),
            )
            self.tally.finds[found.text, sort] = find
            if self._workshop.known(found.text):
                find.state = "known"
                return
            if self._workshop.recall(find):
                find.state = "saved"
                self._notify(f"known failure {find.slug} after {find.first_seconds:.1f} s: {find.case}")
                self._consider(find, program)
                return
        where = f"({find.tier} tier) after {find.first_seconds:.1f} s, {counted(find.size, 'equations')}"
        self._notify(f"new failure {find.slug} {where}: {found.text}")
        self.reductions.add(find)

    def settle(self) -> None:
        """Save what is confirmed and was not saved, and tell the corpus how often each saved failure was met.

        Raises:
            StorageError: the corpus cannot be written.
        """
        for find in list(self.tally.finds.values()):
            if find.state == "confirmed" and not find.case:
                self._workshop.shelve(find)
            if find.case and find.state in ("confirmed", "saved") and find.counted < find.finds:
                self._workshop.settle(find)

    def _take_side_finds(self, origin: Find, others: list[tuple[Program, Result]]) -> None:
        for program, result in others:
            self.meet(program, verdict(result), said_of(result), strategy=f"shrinking {origin.slug}")

    def _consider(self, known: Find, program: Program) -> None:
        """Keep a further find of a known failure if it is smaller."""
        if known.state not in ("new", "saved") or not order_key(program) < order_key(known.program):
            return
        if known.state == "new":
            self.reductions.replace(known, program)
            return
        again = msgspec.structs.replace(known, state="new", before=known, reduced_seconds=None, compiles=0)
        again.begin_with(program)
        self.tally.finds[known.signature, known.sort] = again
        self._notify(f"smaller find of {known.slug}: {counted(again.size, 'equations')}")
        self.reductions.add(again)

    def _forget(self, find: Find) -> None:
        """It was not there when it was repeated, and that says nothing: a busy machine compiles slowly."""
        with self._lock:
            self.tally.finds.pop((find.signature, find.sort), None)
            self.tally.excused["slow only once"] += 1

    def _restore(self, find: Find) -> None:
        """The smaller find was not real: go back to the one before."""
        assert find.before is not None
        with self._lock:
            before = find.before
            before.finds, before.failing = find.finds, find.failing
            self.tally.finds[find.signature, find.sort] = before
