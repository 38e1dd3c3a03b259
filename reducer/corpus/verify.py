"""Does a corpus still do what it did? Each case is run again and compared with its records.

What runs a case is handed in (`runner.Runner` for the real compiler, a function in tests), so this is only judgement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from reducer.corpus.case import Case, OutcomeRecord
from reducer.corpus.store import Damaged
from reducer.errors import InputError
from reducer.oracle.target import release_order


class Verdict(StrEnum):
    """What a rerun says about a case."""

    AS_RECORDED = "as-recorded"
    FIXED = "fixed"
    CHANGED = "changed"
    NOT_JUDGED = "not-judged"


class Check(msgspec.Struct, frozen=True):
    """One case run again: what was seen, and the verdict. `expected` and `actual` are for people."""

    case: Case
    seen: OutcomeRecord
    verdict: Verdict
    expected: str
    actual: str


class Verification(msgspec.Struct, frozen=True):
    """A whole corpus run again."""

    checks: tuple[Check, ...] = ()
    damaged: tuple[Damaged, ...] = ()

    def count(self, verdict: Verdict) -> int:
        """How many cases have that verdict."""
        return sum(check.verdict is verdict for check in self.checks)

    @property
    def exit_code(self) -> int:
        """1 if something changed or is damaged; a fixed case is good news."""
        return 1 if self.damaged or self.count(Verdict.CHANGED) else 0

    def as_json(self) -> dict[str, Any]:
        """What machines read; `cases` counts all that were tried, damaged ones included."""
        return {
            "cases": len(self.checks) + len(self.damaged),
            "as_recorded": self.count(Verdict.AS_RECORDED),
            "fixed": self.count(Verdict.FIXED),
            "changed": self.count(Verdict.CHANGED),
            "damaged": len(self.damaged),
            "not_judged": self.count(Verdict.NOT_JUDGED),
            "results": [
                {"case": c.case.slug, "verdict": c.verdict.value, "expected": c.expected, "actual": c.actual}
                for c in self.checks
            ]
            + [
                {
                    "case": d.path.name.encode("utf-8", "backslashreplace").decode(),
                    "verdict": "damaged",
                    "reason": d.reason,
                }
                for d in self.damaged
            ],
        }


def judge(case: Case, seen: OutcomeRecord) -> Verdict:
    """Compare a rerun with what is expected on that libtpu file and topology (`expectation`).

    Where exactly that file is on record, the signature must be equal. On a release without a record the same family
    counts as the same failure, because releases reword their messages. That a slow compile is fast now, or that what
    comes and goes did not come, is not judged.
    """
    if seen.outcome == "incompatible":
        return Verdict.NOT_JUDGED
    if seen.signature != case.signature and (
        case.kind == "flaky" or (case.kind == "slow-compile" and _compiles(seen))
    ):
        return Verdict.NOT_JUDGED
    record = expectation(case, seen)
    should_compile = record is not None and _compiles(record)
    if _compiles(seen):
        return Verdict.AS_RECORDED if should_compile else Verdict.FIXED
    if should_compile:
        return Verdict.CHANGED
    if record is not None and record.where == seen.where:
        same = (record.outcome, record.signature) == (seen.outcome, seen.signature)
    else:
        known = {case.signature, case.family}.union(*((r.signature, r.family) for r in case.outcomes))
        same = bool({seen.signature, seen.family} & (known - {""}))
    return Verdict.AS_RECORDED if same else Verdict.CHANGED


def expectation(case: Case, seen: OutcomeRecord) -> OutcomeRecord | None:
    """The record a rerun is compared with: of that very libtpu file, else of the newest older release on record.

    What was fixed in one release is expected to stay fixed in the next. None: nothing says more than the case itself.
    """
    here = [r for r in case.outcomes if r.topology == seen.topology and r.outcome != "incompatible"]
    for record in here:
        if record.sha256 == seen.sha256:
            return record
    older = [r for r in here if release_order(r.libtpu) <= release_order(seen.libtpu)]
    return max(older, key=lambda r: release_order(r.libtpu), default=None)


def verify(
    entries: Iterable[Case | Damaged],
    run: Callable[[Case], OutcomeRecord],
    *,
    workers: int = 1,
    progress: Callable[[Check | Damaged], None] | None = None,
) -> Verification:
    """Run each case with `run`, up to `workers` at once, and judge it; `entries` is usually a `Corpus`.

    `progress` hears of each result in the order of the entries. `run` raises `InputError` for a case whose files
    cannot be used, which is then damaged; any other error ends the verification.
    """

    def one(entry: Case | Damaged) -> Check | Damaged:
        if isinstance(entry, Damaged):
            return entry
        try:
            seen = run(entry)
        except InputError as error:
            return Damaged(path=Path(entry.slug), reason=str(error))
        return Check(entry, seen, judge(entry, seen), expected_text(entry, seen), describe(seen))

    checks: list[Check] = []
    damaged: list[Damaged] = []
    threads = ThreadPoolExecutor(max(workers, 1))
    try:
        for result in threads.map(one, entries):
            if progress is not None:
                progress(result)
            if isinstance(result, Check):
                checks.append(result)
            else:
                damaged.append(result)
    finally:
        # After an error or Ctrl-C the cases not yet begun are not run.
        threads.shutdown(cancel_futures=True)
    return Verification(tuple(checks), tuple(damaged))


def expected_text(case: Case, seen: OutcomeRecord) -> str:
    """What was expected of a rerun, in a few words."""
    record = expectation(case, seen)
    if record is None:
        return f"fails: {case.signature}"
    release = "" if record.where == seen.where else f" (as on {record.libtpu})"
    return describe(record) + release


def describe(record: OutcomeRecord) -> str:
    """An outcome in a few words: its signature where it has one."""
    return f"{record.outcome}: {record.signature}" if record.signature else record.outcome


def _compiles(record: OutcomeRecord) -> bool:
    # A failure that compiles (a lost offload) has a signature as well.
    return record.outcome == "compiled" and not record.signature
