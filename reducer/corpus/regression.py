"""A corpus as pytest tests: failing as recorded is an expected failure, compiling is news, the rest is a failure.

    @pytest.mark.parametrize("slug", corpus.slugs())
    def test_case(slug, request):
        case = corpus.get(slug)  # a damaged case fails here, and says why
        hold(request, case, run(case))

The mark is strict and names one exception, so pytest itself tells the three apart: `StillFails` is xfail; no exception
is ``XPASS(strict)``, which fails loudly with "fixed in this release"; any other exception is a plain failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reducer.corpus.case import Case, OutcomeRecord
from reducer.corpus.verify import Verdict, describe, expected_text, judge

if TYPE_CHECKING:
    import pytest


class StillFails(Exception):
    """The case fails as its record says."""


class BehavesDifferently(AssertionError):
    """The case fails, but not as recorded; or it compiled before and fails now."""


def hold(request: pytest.FixtureRequest, case: Case, seen: OutcomeRecord) -> None:
    """Compare a rerun of `case` with its record and end the running test accordingly.

    Raises:
        StillFails: it fails as recorded (the test is then reported as xfail).
        BehavesDifferently: it does something else than recorded.
    """
    import pytest

    verdict = judge(case, seen)
    if verdict is Verdict.NOT_JUDGED:
        pytest.skip(f"{case.slug}: {describe(seen)}")
    if verdict is Verdict.CHANGED:
        expected = expected_text(case, seen)
        raise BehavesDifferently(
            f"{case.slug} on libtpu {seen.libtpu}:\n  expected {expected}\n  seen     {describe(seen)}\n{seen.message}"
        )
    if verdict is Verdict.AS_RECORDED and seen.outcome == "compiled" and not seen.signature:
        return
    reason = f"{case.slug}: {case.signature}"
    if verdict is Verdict.FIXED:
        reason = f"fixed in this release: libtpu {seen.libtpu} compiles {case.slug}; record it and rejoice"
    request.applymarker(pytest.mark.xfail(raises=StillFails, strict=True, reason=reason))
    if verdict is Verdict.AS_RECORDED:
        raise StillFails(describe(seen))
