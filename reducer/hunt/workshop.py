"""The real workshop: confirm in fresh workers, shrink with the driver, save to the corpus."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Set

from reducer.corpus import Corpus, Found
from reducer.hunt.finds import Find
from reducer.ir.equations import Program
from reducer.ir.order import size
from reducer.oracle.outcome import Result
from reducer.oracle.pool import Pool
from reducer.oracle.programs import ProgramOracle, program_job
from reducer.oracle.signature import is_finding, signature
from reducer.passes import PASSES
from reducer.record import case_of
from reducer.shrink import Accepted, Event, Tried, program_tier, shrink

#: A reduction's questions go before generated programs: a person waits for it.
_PRIORITY = 10
#: How often a new failure is repeated, alone in a fresh worker, before it counts.
REPEATS = 2


class RealWorkshop:
    """Confirms, reduces and saves finds of one target.

    Args:
        pool: the workers; shared with the hunt.
        corpus: where cases go.
        seed: of the hunt, recorded in the cases.
        known: signatures the user does not want to hunt for.
        budget: most compiles of one reduction.
    """

    def __init__(
        self,
        pool: Pool,
        corpus: Corpus,
        *,
        seed: int,
        known: Set[str] = frozenset(),
        budget: int | None = None,
    ) -> None:
        self._pool = pool
        self._corpus = corpus
        self._seed = seed
        self._known = known
        self._budget = budget
        self._oracle = ProgramOracle(pool, priority=_PRIORITY)
        self._date = datetime.date.today().isoformat()

    def known(self, signature: str) -> bool:
        """True if the user asked not to hunt for this signature."""
        return signature in self._known

    def confirm(self, find: Find) -> bool:
        """Repeat the failure in a fresh worker; True if every repeat fails the same."""
        confirmation = self._pool.confirm(program_job(find.program), REPEATS, priority=_PRIORITY).result()
        return confirmation.counts == {find.signature: REPEATS}

    def keep(self, find: Find) -> None:
        """Save the find as it is now.

        Raises:
            StorageError: the corpus cannot be written.
        """
        result = self._pool.submit(program_job(find.program), want_module=True, priority=_PRIORITY).result()
        found = signature(result.outcome)
        assert found is not None, "a confirmed failure compiled when it was saved"
        how = Found(
            strategy=find.strategy,
            seed=self._seed,
            seconds=round(find.first_seconds, 2),
            started_size=find.started_size,
            compiles_to_minimum=find.compiles,
            date=self._date,
        )
        first = find.case == ""
        case, files = case_of(
            find.program, find.tier, found, result, self._pool.target, how=how, start=find.start, finds=find.finds
        )
        find.case = str(self._corpus.add(case, files, count=first).path)

    def reduce(self, find: Find, step: Callable[[Find], None]) -> list[tuple[Program, Result]]:
        """Shrink the find in place; returns the other failures met on the way."""

        def wanted(result: Result) -> bool:
            found = signature(result.outcome)
            return found is not None and found.text == find.signature

        def label(result: Result) -> str | None:
            found = signature(result.outcome) if is_finding(result.outcome) else None
            return found.text if found is not None else None

        def events(event: Event[Program]) -> None:
            if isinstance(event, Accepted):
                find.program, find.size = event.candidate, event.size
            if isinstance(event, Accepted | Tried):
                find.compiles = event.compiles
            step(find)

        shrunk = shrink(
            find.program,
            self._oracle,
            wanted,
            tier=program_tier(find.tier),
            passes=PASSES,
            budget=self._budget,
            label=label,
            events=events,
        )
        find.program, find.size, find.compiles = shrunk.program, size(shrunk.program), shrunk.compiles
        return [(other.candidate, other.result) for other in shrunk.finds]
