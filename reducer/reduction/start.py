"""Before anything is reduced: does the start fail as it should, each time, and how long may a candidate take?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

import msgspec

from reducer.errors import InputError
from reducer.oracle.beside import Comparison
from reducer.oracle.confirm import identity as outcome_identity
from reducer.oracle.outcome import Incompatible, Invalid, Result, Skipped, TimedOut, word
from reducer.oracle.pool import DEFAULT_TIMEOUT, Pool
from reducer.oracle.verdict import failure, said_of, verdict
from reducer.reduction.asking import Judge, beside_oracle
from reducer.reduction.journal import Journal
from reducer.reduction.levels import Level
from reducer.reduction.votes import MORE_RUNS, Votes, votes_for
from reducer.reduction.wanted import Wanted
from reducer.words import counted

C = TypeVar("C")

#: Repeats of the start, alone in a fresh worker, before anything is tried.
REPEATS: Final = 3
#: Seconds the start may take: a real train step compiles for minutes on a busy machine.
START_SECONDS: Final = 900.0
#: A candidate may take so many times what the start took, and this many seconds at least. Fixed for the whole run, so
#: that what is found does not depend on how busy the machine is later.
PATIENCE, LEAST_SECONDS = 10.0, 60.0
#: A start that compiles, and is to be reduced for being slow, takes at least so many seconds; a candidate is slow if
#: it takes more than half as long as the start.
SLOW_SECONDS: Final = 2.0


class Refused(Exception):
    """The start does not fail as asked for: the answer is no. `rate` is the share of each way it ended."""

    def __init__(self, reason: str, rate: dict[str, float] | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.rate = rate or {}


class Confirmed(msgspec.Struct, frozen=True):
    """What is known of the start of a tier.

    `wanted` is settled, `result` one of its failing answers, `limit` the seconds a candidate may take, `placed` whether
    it places something in host memory, `votes` how often a candidate is asked, `rate` how often it failed, in
    (failing, runs), `compiles` what finding out took.
    """

    wanted: Wanted
    result: Result
    limit: float
    placed: bool
    votes: Votes
    rate: tuple[int, int]
    compiles: int


class Confirmer(Generic[C]):
    """Asks about a start; what the journal knows is not asked again."""

    def __init__(
        self,
        pool: Pool,
        level: Level[C],
        journal: Journal,
        *,
        judge: Judge | None = None,
        text: Callable[[C, Result], tuple[str, str]] | None = None,
        timeout: float | None = None,
        comparison: Comparison | None = None,
    ) -> None:
        """`timeout` is the user's own limit; `text` gives the file for `judge`, made after the compiler's answer."""
        self._pool = pool
        self._level = level
        self._journal = journal
        self._judge = judge
        self._text = text
        self._timeout = timeout
        self._comparison = comparison

    def confirm(self, start: C, wanted: Wanted, *, named: str = "the start") -> Confirmed:
        """Check the claim.

        Raises:
            Refused: it does not fail, fails otherwise, or too rarely.
            InputError: it does not reach the compiler.
        """
        placed = True
        limit = longest = self._timeout or (DEFAULT_TIMEOUT if wanted.hangs else START_SECONDS)
        first = self._ask(start, limit, placed=True)
        if isinstance(first.answer, Skipped):
            placed = False
            first = self._ask(start, limit, placed=False)
        self._reached(first, named)
        if isinstance(first.answer, TimedOut) and not wanted.hangs:
            raise Refused(f"{named} does not come to an end within {limit:g} s; --signature timeout reduces it")
        if wanted.hangs and not isinstance(first.answer, TimedOut):
            limit = self._slow(first, named)
        elif not wanted.hangs:
            limit = self._timeout or max(LEAST_SECONDS, PATIENCE * (first.seconds_lower + first.seconds_compile))
        if self._judge is not None:
            return self._judged(start, first, wanted, placed, named)
        if wanted.hangs:
            longest = limit
        runs = self._repeats(start, longest, REPEATS, "repeat")
        if not wanted.hangs:
            runs = [first, *runs]
        wanted = next((w for w in map(wanted.settled, runs) if w.mode != "start"), wanted)
        failing = [run for run in runs if wanted.mode != "start" and wanted(run)]
        if 0 < len(failing) < len(runs):
            runs += self._repeats(start, longest, MORE_RUNS, "more")
            failing = [run for run in runs if wanted(run)]
        if not failing:
            said = f"{named} does not fail as asked for: {word(first.answer)} {_what(first)}"
            raise Refused(said.rstrip(), _rate(runs))
        votes = _votes(named, failing, runs)
        # The first answer is the one whose time was taken; a repeat was alone in a new worker.
        result = first if wanted(first) else failing[0]
        return Confirmed(wanted, result, limit, placed, votes, (len(failing), len(runs)), len(runs))

    def _judged(self, start: C, first: Result, wanted: Wanted, placed: bool, named: str) -> Confirmed:
        """As `confirm`, by the word of a script."""
        assert self._judge is not None
        assert self._text is not None
        judge, file = self._judge, self._text(start, first)
        of = f"{named} {self._level.name} {self._level.key(start)}"

        def once() -> Result:
            return judge.submit(*file, self._timeout or START_SECONDS).result()

        runs = [self._known(f"{of} judged {n}", once) for n in range(REPEATS)]
        failing = [run for run in runs if wanted(run)]
        if 0 < len(failing) < len(runs):
            runs += [self._known(f"{of} judged {n}", once) for n in range(REPEATS, REPEATS + MORE_RUNS)]
            failing = [run for run in runs if wanted(run)]
        if not failing:
            words = f" (the script said: {judge.last_words[:200]})" if judge.last_words else ""
            raise Refused(f"{named} is {said_of(runs[0])}{words}")
        limit = self._timeout or max(LEAST_SECONDS, PATIENCE * max(run.seconds_compile for run in runs))
        votes = _votes(named, failing, runs)
        return Confirmed(wanted, first, limit, placed, votes, (len(failing), len(runs)), 1)

    def _slow(self, first: Result, named: str) -> float:
        """The limit of a start that ends, and is too slow."""
        took = first.seconds_lower + first.seconds_compile
        if self._timeout is not None or took < SLOW_SECONDS:
            raise Refused(f"{named} does not time out: {word(first.answer)} after {took:.1f} s")
        return took / 2

    def _reached(self, first: Result, named: str) -> None:
        if isinstance(first.answer, Invalid):
            raise InputError(f"{named} does not reach the compiler: {said_of(first).partition(chr(10))[0]}")
        assert not isinstance(first.answer, Incompatible), "the pool was asked before"

    def _ask(self, start: C, limit: float, *, placed: bool) -> Result:
        job = self._level.job(start, require_host_placement=placed)
        beside = beside_oracle(self._pool, start, self._comparison, limit)

        def ask() -> Result:
            if beside is not None:
                compared: Result = beside.submit(start).result()
                return compared
            # An answer that is only remembered takes no time, and would make a limit of none.
            return self._pool.submit(job, want_ledger=True, want_time=True, timeout=limit).result()

        return self._known(f"start {self._level.name} {self._level.key(start)} {'placed' if placed else ''}", ask)

    def _repeats(self, start: C, limit: float, times: int, name: str) -> list[Result]:
        keys = [f"{name} {n} {self._level.name} {self._level.key(start)}" for n in range(times)]
        known = [result for key in keys if (result := self._journal.get(key)) is not None]
        if len(known) == times:
            return known
        beside = beside_oracle(self._pool, start, self._comparison, limit)
        if beside is not None:
            results: list[Result] = beside.repeated(start, times)
        else:
            found = self._pool.confirm(self._level.job(start), times, want_ledger=True, timeout=limit).result()
            results = list(found.results)
        for key, result in zip(keys, results, strict=True):
            self._journal.put(key, result)
        return results

    def _known(self, key: str, ask: Callable[[], Result]) -> Result:
        known = self._journal.get(key)
        if known is None:
            known = ask()
            self._journal.put(key, known)
        return known


def _votes(named: str, failing: list[Result], runs: list[Result]) -> Votes:
    votes = votes_for(len(failing), len(runs))
    if votes is None:
        said = f"{named} failed as asked for in {len(failing)} of {counted(len(runs), 'runs')}: too rarely to reduce it"
        raise Refused(said, _rate(runs))
    return votes


def _rate(runs: list[Result]) -> dict[str, float]:
    counts: dict[str, int] = {}
    for run in runs:
        name = failure(run) or outcome_identity(run)
        counts[name] = counts.get(name, 0) + 1
    return {name: round(count / len(runs), 3) for name, count in counts.items()}


def said_of_start(confirmed: Confirmed) -> str:
    """What a person is told of a start that does not fail each time; empty if it does."""
    failing, runs = confirmed.rate
    if failing == runs:
        return ""
    votes = confirmed.votes
    return (
        f"the start is flaky: it failed as asked for in {failing} of {counted(runs, 'runs')}; a candidate counts as "
        f"failing if it fails {counted(votes.needed, 'times')} within {counted(votes.most, 'runs')}"
    )


def _what(result: Result) -> str:
    """What a user would have to ask for: the signature, where there is one."""
    found = verdict(result).signature
    return found.text if found is not None else said_of(result).partition("\n")[0]
