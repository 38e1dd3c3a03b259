"""The real workshop: confirm in fresh workers, shrink with the driver, save to the corpus."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Set
from typing import Final

import msgspec

from reducer.corpus import Case, Corpus, Found
from reducer.evidence import certified
from reducer.hunt.finds import Find
from reducer.hunt.reductions import Unstable
from reducer.ir.codec import identity
from reducer.ir.equations import Program
from reducer.ir.order import size
from reducer.ir.tiers import tier_of
from reducer.oracle.outcome import Result, message_of, word
from reducer.oracle.pool import Pool
from reducer.oracle.programs import ProgramOracle, program_job
from reducer.oracle.verdict import failure, verdict
from reducer.record import case_of
from reducer.shrink import Accepted, Event, Tried, shrink_program
from reducer.shrink.driver import StartError

#: A reduction's questions go before generated programs: a person waits for it. A confirmation goes before both:
#: it is short, and until then the failure is not saved.
_REDUCING, _CONFIRMING = 10, 20
#: How often a new failure is repeated, alone in a fresh worker, before it counts.
REPEATS: Final = 2
#: Most compiles of one reduction in a hunt: the usual one takes a quarter of that, and the others wait meanwhile.
BUDGET: Final = 500
UNREDUCED: Final = "Not fully shrunk: the hunt that found it ended first. `scanshrink hunt --resume` goes on."


class RealWorkshop:
    """Confirms, reduces and saves finds of one target.

    Args:
        pool: the workers; shared with the hunt.
        corpus: where cases go.
        seed: of the hunt, recorded in the cases.
        known: signatures the user does not want to hunt for.
        budget: most compiles of one reduction.
        want_ledger: also see lost offloads; without it they pass for programs that compile.
    """

    def __init__(
        self,
        pool: Pool,
        corpus: Corpus,
        *,
        seed: int,
        known: Set[str] = frozenset(),
        budget: int = BUDGET,
        want_ledger: bool = True,
    ) -> None:
        self._pool = pool
        self._corpus = corpus
        self._seed = seed
        self._known = known
        self._budget = budget
        self._want_ledger = want_ledger
        # As the hunt itself: what places nothing in host memory is not compiled, and cannot be the failure.
        self._oracle = ProgramOracle(pool, priority=_REDUCING, require_host_placement=True, want_ledger=want_ledger)
        self._certifying = ProgramOracle(pool, priority=_REDUCING, want_ledger=want_ledger)
        self._date = datetime.date.today().isoformat()

    def known(self, signature: str) -> bool:
        """True if the user asked not to hunt for this signature."""
        return signature in self._known

    def recall(self, find: Find) -> bool:
        """True if the corpus holds the failure, found on this target and shrunk; takes `program` and `case` from it."""
        target = self._pool.target
        here = (target.sha256, target.topology, dict(target.options))
        tiers = ("program", "placement") if find.sort == "mixed" else (find.tier,)
        for case in (case for tier in tiers for case in self._corpus.find(find.kind, find.signature, tier)):
            there = (case.target.sha256, case.target.topology, case.target.options)
            program = case.minimum.program
            if there == here and program is not None and UNREDUCED not in case.notes:
                find.program, find.size = program, case.minimum.size
                find.case = str(self._corpus.path(case.slug))
                return True
        return False

    def confirm(self, find: Find) -> bool:
        """Repeat the failure in a fresh worker; True if every repeat fails the same."""
        confirmation = self._pool.confirm(
            program_job(find.program), REPEATS, priority=_CONFIRMING, want_ledger=self._want_ledger
        ).result()
        find.repeats = confirmation.counts
        return confirmation.counts == {find.signature: REPEATS}

    def keep(self, find: Find) -> None:
        """Save the find as it is now, with a note if it is not fully shrunk.

        Raises:
            Unstable: it did not fail this time.
            StorageError: the corpus cannot be written.
        """
        result = self._pool.submit(
            program_job(find.program), want_module=True, want_ledger=self._want_ledger, priority=_CONFIRMING
        ).result()
        found = verdict(result).failure
        if found is None or found.text != find.signature:
            raise Unstable(f"{word(result.answer)} {message_of(result.answer)}".rstrip())
        finds = find.finds  # the hunt goes on counting meanwhile
        how = Found(
            strategy=find.strategy,
            seed=self._seed,
            seconds=round(find.first_seconds, 2),
            started_size=find.started_size,
            compiles_to_minimum=find.compiles,
            date=self._date,
        )
        case, files = case_of(
            find.program,
            find.tier,
            found,
            result,
            self._pool.target,
            how=how,
            start=find.start,
            finds=max(finds - find.counted, 1),
        )
        if find.reduced_seconds is not None:
            # The reduction has asked about nearly all of it; what a report shows is worth the dozen compiles more.
            case = certified(case, find.tier, self._certifying)
        stored = self._corpus.add(case, files, count=find.counted < finds)
        find.counted = finds
        find.case = str(stored.path)
        self._note(stored.case, find)

    def _note(self, stored: Case, find: Find) -> None:
        """Mark an unreduced case, and unmark it once it is shrunk. Another hunt's smaller minimum is not touched."""
        minimum = stored.minimum.program
        ours = minimum is not None and identity(minimum) == identity(find.program)
        reduced = find.reduced_seconds is not None
        if reduced and minimum is not None:
            find.size = stored.minimum.size
        if ours and reduced == (UNREDUCED in stored.notes):
            self._corpus.update(stored.slug, lambda case: _noted(case, unreduced=not reduced))

    def shelve(self, find: Find) -> None:
        """Save a find that was not shrunk, unless the corpus has the failure.

        Raises:
            StorageError: the corpus cannot be written.
        """
        find.tier = tier_of(find.program)
        known = self._corpus.find(find.kind, find.signature, find.tier)
        if known:
            find.case = str(self._corpus.path(known[0].slug))
            return
        try:
            self.keep(find)
        except Unstable:
            find.state = "flaky"

    def settle(self, find: Find) -> None:
        """Add the finds since the last save to the case's count.

        Raises:
            StorageError: the corpus cannot be written.
        """
        more = find.finds - find.counted
        slug = find.case.rpartition("/")[2]
        self._corpus.update(slug, lambda case: msgspec.structs.replace(case, finds=case.finds + more))
        find.counted += more

    def reduce(self, find: Find, step: Callable[[Find], None]) -> list[tuple[Program, Result]]:
        """Shrink the find in place; returns the other failures met on the way.

        Raises:
            Unstable: the find did not fail this time.
        """

        def wanted(result: Result) -> bool:
            return failure(result) == find.signature

        def events(event: Event[Program]) -> None:
            if isinstance(event, Accepted):
                find.program, find.size = event.candidate, event.size
            if isinstance(event, Accepted | Tried):
                find.compiles = event.compiles
            step(find)

        try:
            shrunk = shrink_program(
                find.program,
                self._oracle,
                wanted,
                level=find.tier,
                budget=self._budget,
                restart=False,  # half as much again for one failure in a dozen: `reduce` does it
                label=failure,
                events=events,
            )
        except StartError as error:
            raise Unstable(error.message) from None
        find.program, find.size, find.compiles = shrunk.program, size(shrunk.program), shrunk.compiles
        return [(other.candidate, other.result) for other in shrunk.finds]


def _noted(case: Case, *, unreduced: bool) -> Case:
    notes = tuple(note for note in case.notes if note != UNREDUCED)
    return msgspec.structs.replace(case, notes=(*notes, UNREDUCED) if unreduced else notes)
