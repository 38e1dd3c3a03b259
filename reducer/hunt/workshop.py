"""The real workshop: confirm in fresh workers, shrink with the driver, save to the corpus."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Set
from typing import Final

import msgspec

from reducer.corpus import Case, Corpus, Found
from reducer.corpus.notes import HUNT_ENDED, noted, shrunk
from reducer.evidence import certified, run_beside_twin
from reducer.hunt.finds import Find
from reducer.hunt.reductions import Unstable
from reducer.ir.codec import identity
from reducer.ir.equations import Program
from reducer.ir.order import size
from reducer.ir.tiers import tier_of
from reducer.oracle.base import Oracle
from reducer.oracle.beside import BesideOracle, TimedOracle, comparison_of, timed
from reducer.oracle.confirm import Confirmation
from reducer.oracle.outcome import Result, message_of, word
from reducer.oracle.pool import Pool
from reducer.oracle.programs import ProgramOracle, program_job
from reducer.oracle.signature import TIMED_OUT
from reducer.oracle.verdict import failure, verdict
from reducer.record import case_of, flaky_case_of
from reducer.shrink import Accepted, Event, Tried, shrink_program
from reducer.shrink.driver import StartError

#: A reduction's questions go before generated programs: a person waits for it. A confirmation goes before both:
#: it is short, and until then the failure is not saved.
_REDUCING, _CONFIRMING = 10, 20
#: How often a new failure is repeated, alone in a fresh worker, before it counts.
REPEATS: Final = 2
#: How often more one is repeated that did not come each time, to know its rate.
MORE_REPEATS: Final = 8
#: Most compiles of one reduction in a hunt: the usual one takes a quarter of that, and the others wait meanwhile.
BUDGET: Final = 500
UNREDUCED: Final = HUNT_ENDED


class RealWorkshop:
    """Confirms, reduces and saves finds of one target.

    Args:
        pool: the workers; shared with the hunt.
        corpus: where cases go.
        seed: of the hunt, recorded in the cases.
        known: signatures the user does not want to hunt for.
        budget: most compiles of one reduction.
        want_ledger: also see lost offloads; without it they pass for programs that compile.
        want_flaky: save failures that do not come each time.
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
        want_flaky: bool = True,
    ) -> None:
        self._pool = pool
        self._corpus = corpus
        self._seed = seed
        self._known = known
        self._budget = budget
        self._want_ledger = want_ledger
        self._want_flaky = want_flaky
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
            if there == here and program is not None and shrunk(case):
                find.program, find.size = program, case.minimum.size
                find.case = str(self._corpus.path(case.slug))
                return True
        return False

    def confirm(self, find: Find) -> bool:
        """Repeat the failure in a fresh worker; True if every repeat fails the same."""
        find.repeats = Confirmation.of(self._repeats(find, REPEATS)).counts
        return find.repeats == {find.signature: REPEATS}

    def _repeats(self, find: Find, times: int) -> list[Result]:
        compared = self._beside(find)
        if compared is not None:
            return compared.repeated(find.program, times, priority=_CONFIRMING)
        job = program_job(find.program)
        ask = self._pool.confirm(job, times, priority=_CONFIRMING, want_ledger=self._want_ledger)
        return [self._limited(find, result) for result in ask.result().results]

    def _beside(self, find: Find, priority: int = _CONFIRMING) -> BesideOracle | None:
        comparison = comparison_of(find.kind, find.signature)
        return BesideOracle(self._pool, comparison, priority=priority) if comparison is not None else None

    def _limited(self, find: Find, result: Result) -> Result:
        return timed(result, find.limit) if find.kind == "slow-compile" else result

    def _asked(self, find: Find) -> Result:
        """The answer about a find as it is now, with its module's text."""
        job = program_job(find.program)
        result = self._pool.submit(
            job,
            want_module=True,
            want_ledger=self._want_ledger,
            want_time=find.kind == "slow-compile",
            priority=_CONFIRMING,
        ).result()
        compared = self._beside(find)
        if compared is not None:
            beside = compared.submit(find.program).result().beside
            result = msgspec.structs.replace(result, beside=beside)
        return self._limited(find, result)

    def keep_flaky(self, find: Find) -> None:
        """Repeat a failure that did not come each time more often, and save it with the rates.

        A time-out that does not come again says that the machine was busy, and a comparison is made of several
        outcomes: they are not saved.

        Raises:
            StorageError: the corpus cannot be written.
        """
        if not self._want_flaky or find.kind not in ("error", "lost-offload") or find.signature == TIMED_OUT:
            return
        repeats = Confirmation.of(self._repeats(find, MORE_REPEATS))
        for name, count in repeats.counts.items():
            find.repeats[name] = find.repeats.get(name, 0) + count
        # The first sighting is a run as well: it failed.
        seen = Counter(find.repeats) + Counter({find.signature: 1})
        failing = next((r for r in repeats.results if failure(r) == find.signature), None)
        if failing is None:
            return  # nobody could see it again
        program, tier, target = find.program, tier_of(find.program), self._pool.target
        case, files = flaky_case_of(program, tier, failing, dict(seen), target, how=self._how(find), finds=find.finds)
        stored = self._corpus.add(case, files)
        find.case, find.counted = str(stored.path), find.finds

    def keep(self, find: Find) -> None:
        """Save the find as it is now, with a note if it is not fully shrunk.

        Raises:
            Unstable: it did not fail this time.
            StorageError: the corpus cannot be written.
        """
        result = self._asked(find)
        found = verdict(result).failure
        if found is None or found.text != find.signature:
            raise Unstable(f"{word(result.answer)} {message_of(result.answer)}".rstrip())
        finds = find.finds  # the hunt goes on counting meanwhile
        case, files = case_of(
            find.program,
            find.tier,
            found,
            result,
            self._pool.target,
            how=self._how(find),
            start=find.start,
            finds=max(finds - find.counted, 1),
        )
        if find.reduced_seconds is not None:
            case = self._evident(case, find)
        stored = self._corpus.add(case, files, count=find.counted < finds)
        find.counted = finds
        find.case = str(stored.path)
        self._note(stored.case, find)

    def _how(self, find: Find) -> Found:
        return Found(
            strategy=find.strategy,
            seed=self._seed,
            seconds=round(find.first_seconds, 2),
            started_size=find.started_size,
            compiles_to_minimum=find.compiles,
            date=self._date,
        )

    def _evident(self, case: Case, find: Find) -> Case:
        """A minimum with what a report shows: the certificate of one that fails by itself, the difference of a pair.

        The reduction has asked about nearly all the neighbours of the first sort. Those of a pair are pairs.
        """
        if find.kind in ("error", "lost-offload"):
            return certified(case, find.tier, self._certifying)
        return run_beside_twin(case)

    def _oracle_of(self, find: Find) -> Oracle[Program]:
        if find.kind == "slow-compile":
            return TimedOracle(self._pool, find.limit, priority=_REDUCING)
        return self._beside(find, _REDUCING) or self._oracle

    def _note(self, stored: Case, find: Find) -> None:
        """Mark an unreduced case, and unmark it once it is shrunk. Another hunt's smaller minimum is not touched."""
        minimum = stored.minimum.program
        ours = minimum is not None and identity(minimum) == identity(find.program)
        reduced = find.reduced_seconds is not None
        if reduced and minimum is not None:
            find.size = stored.minimum.size
        if ours and reduced != shrunk(stored):
            self._corpus.update(stored.slug, lambda case: noted(case, unshrunk="" if reduced else UNREDUCED))

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
                self._oracle_of(find),
                wanted,
                level=find.tier,
                placed=True,  # as its oracle requires
                budget=self._budget,
                restart=False,  # half as much again for one failure in a dozen: `reduce` does it
                label=failure,
                events=events,
            )
        except StartError as error:
            raise Unstable(error.message) from None
        find.program, find.size, find.compiles = shrunk.program, size(shrunk.program), shrunk.compiles
        return [(other.candidate, other.result) for other in shrunk.finds]
