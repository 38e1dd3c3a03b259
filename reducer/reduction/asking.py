"""The oracle of a reduction: the compiler (or a script) behind the journal, with votes where a failure is flaky."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from reducer.errors import ProgramError
from reducer.ir.equations import Program
from reducer.oracle.beside import BesideOracle, Comparison
from reducer.oracle.outcome import Incompatible, Invalid, Result, Skipped
from reducer.oracle.pool import Pool
from reducer.reduction.journal import Journal
from reducer.reduction.levels import Level
from reducer.reduction.votes import Votes

C = TypeVar("C")

#: Why the compiler is not asked about a candidate that lacks what the user wants to keep.
NOT_KEPT = "not kept"
_PLACED = "placed "


class Judge(Protocol):
    """Something else than the compiler that answers candidates: an interestingness script.

    `last_words` is the last line that the latest of its runs wrote to standard error.
    """

    last_words: str

    def submit(self, name: str, text: str, timeout: float) -> Future[Result]:
        """Answer a candidate, given as a file's name and text."""
        ...


class Asking(Generic[C]):
    """`Oracle` of the candidates of one tier on one target.

    Args:
        pool: workers of the target. Where there are votes it must not have an outcome cache: a flaky answer that is
            remembered is no second vote.
        level: the tier.
        journal: what was answered before, also by an earlier run.
        wanted: tells the failure, for votes.
        keeps: whether a candidate has what must survive.
        votes: how often each is asked.
        judge: answers in place of the compiler.
        name_and_text: the file that `judge` is given.
        variant: what of the target is not as the journal's header says.
        comparison: what programs are compared with, where that is the failure.
        want_time: every candidate is compiled, whatever is remembered of it: how long it takes is the failure.
    """

    def __init__(
        self,
        pool: Pool,
        level: Level[C],
        journal: Journal,
        *,
        wanted: Callable[[Result], bool],
        keeps: Callable[[C], bool] = lambda _: True,
        votes: Votes = Votes(),  # noqa: B008  (immutable)
        timeout: float | None = None,
        require_host_placement: bool = False,
        judge: Judge | None = None,
        name_and_text: Callable[[C], tuple[str, str]] | None = None,
        variant: str = "",
        comparison: Comparison | None = None,
        want_time: bool = False,
    ) -> None:
        self._pool = pool
        self._level = level
        self._journal = journal
        self._wanted = wanted
        self._keeps = keeps
        self._votes = votes
        self._timeout = timeout
        self._placed = require_host_placement
        self._judge = judge
        self._name_and_text = name_and_text
        self._variant = variant
        self._comparison = comparison
        self._want_time = want_time
        self._more: set[str] = set()

    @property
    def more(self) -> int:
        """Candidates without a host placement that were asked about all the same: compiles of no reduction."""
        return len(self._more)

    @property
    def workers(self) -> int:
        """How many candidates are answered at once."""
        return self._pool.workers

    def submit(self, candidate: C, *, fresh: bool = False) -> Future[Result]:
        """Queue a candidate, unless its answer is known.

        Raises:
            ProgramError: it cannot be written down.
        """
        if not self._keeps(candidate):
            return done(Result(Skipped(NOT_KEPT)))
        key = self.key(candidate)
        known = None if fresh else self._known(key)
        if known is not None:
            return done(msgspec.structs.replace(known, cached=True))
        try:
            if not self._votes.flaky:
                future = self._once(candidate, fresh)
            else:
                future = _Vote(lambda: self._once(candidate, fresh), self._wanted, self._votes)
        except ProgramError as error:
            self._journal.put(key, Result(Invalid(str(error))))
            raise
        if not fresh:
            future.add_done_callback(lambda answered: self._keep(key, answered))
        return future

    def key(self, candidate: C) -> str:
        """What stands for the candidate in the journal."""
        return f"{_PLACED if self._placed else ''}{self._variant}{self._level.name} {self._level.key(candidate)}"

    def _known(self, key: str) -> Result | None:
        """What the journal says. The compiler's answer is the same whether a host placement is required or not."""
        if not self._placed:
            placed = self._journal.get(_PLACED + key)
            if placed is not None and not isinstance(placed.answer, Skipped):
                return placed
            self._more.add(key)
        return self._journal.get(key)

    def _once(self, candidate: C, fresh: bool) -> Future[Result]:
        if self._judge is not None:
            assert self._name_and_text is not None
            return self._judge.submit(*self._name_and_text(candidate), self._timeout or 0.0)
        beside = beside_oracle(self._pool, candidate, self._comparison, self._timeout)
        if beside is not None:
            compared: Future[Result] = beside.submit(candidate, fresh=fresh)
            return compared
        job = self._level.job(candidate, require_host_placement=self._placed)
        return self._pool.submit(job, fresh=fresh, timeout=self._timeout, want_ledger=True, want_time=self._want_time)

    def _keep(self, key: str, future: Future[Result]) -> None:
        if not future.cancelled() and future.exception() is None:
            result = future.result()
            if not isinstance(result.answer, Incompatible):
                self._journal.put(key, result)


def beside_oracle(pool: Pool, candidate: Any, comparison: Comparison | None, timeout: float | None) -> Any:
    """Who to ask about a program whose failure shows beside others; None of any other candidate and failure."""
    if comparison is None or not isinstance(candidate, Program):
        return None
    return BesideOracle(pool, comparison, timeout=timeout)


class _Vote(Future[Result]):
    """Asks one after the other until enough answers agree; the result is one of those that decided."""

    def __init__(self, ask: Callable[[], Future[Result]], wanted: Callable[[Result], bool], votes: Votes) -> None:
        super().__init__()
        self._ask = ask
        self._is_wanted = wanted
        self._rule = votes
        self._failing: list[Result] = []
        self._passing: list[Result] = []
        self._current = ask()
        self._current.add_done_callback(self._answered)

    def cancel(self) -> bool:
        """Withdraw the question, if none of it is under way."""
        if self._failing or self._passing or not self._current.cancel():
            return False
        return super().cancel()

    def _answered(self, future: Future[Result]) -> None:
        if future.cancelled():
            if not self.done():
                super().cancel()
            return
        error = future.exception()
        if error is not None:
            self.set_exception(error)
            return
        result = future.result()
        (self._failing if self._is_wanted(result) else self._passing).append(result)
        certain = isinstance(result.answer, Invalid | Skipped)
        says = False if certain else self._rule.decided(len(self._failing), len(self._passing))
        if says is None:
            self._current = self._ask()
            self._current.add_done_callback(self._answered)
            return
        asked = len(self._failing) + len(self._passing)
        chosen = (self._failing if says else self._passing)[0]
        self.set_result(msgspec.structs.replace(chosen, compiles=asked))


def done(result: Result) -> Future[Result]:
    """A future that has its result."""
    future: Future[Result] = Future()
    future.set_running_or_notify_cancel()
    future.set_result(result)
    return future
