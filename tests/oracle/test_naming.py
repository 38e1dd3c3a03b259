"""What results can be called: every signature and family there is, and no slip of the pen."""

from __future__ import annotations

import pytest

from reducer.oracle.families import FAMILIES
from reducer.oracle.naming import OUTCOMES, can_be_called, what_else
from reducer.oracle.outcome import Crashed, Rejected, TimedOut
from reducer.oracle.signature import Signature, signature
from reducer.oracle.verdict import KINDS

from .test_labelled import FAILURES


def test_whatever_failed_can_be_called_what_it_is_called() -> None:
    outcomes = [failure.outcome for failure in FAILURES]
    outcomes += [TimedOut(1.0), TimedOut(1.0, "lower"), Rejected(""), Rejected("odd"), Rejected("INTERNAL: ")]
    outcomes += [Crashed(name, "") for name in ("SIGSEGV", "exit 1", "signal 66", "memory-cap")]
    outcomes += [Crashed("SIGABRT", "x.cc:3] Check failed: a", "lower")]
    found = [signature(outcome) for outcome in outcomes]
    found += [Signature("pair-differs", invariant="with the barrier: lane-slice"), Signature("flaky", invariant="X")]
    assert [one for one in found if one is not None and not can_be_called(one.text)] == []
    assert [one.family for one in found if one is not None and not can_be_called(one.family)] == []


def test_words() -> None:
    words = {*OUTCOMES, *(name for name, _ in FAMILIES), *KINDS} - {"error"}
    assert [word for word in sorted(words) if not can_be_called(word)] == []


@pytest.mark.parametrize(
    "text", ["", "bogus", "Compiled", "bitcast", "rejectd", "INTERNALLY", "Sublane-slice", "segfault", "timeout"]
)
def test_slips(text: str) -> None:
    assert not can_be_called(text)


def test_what_was_meant() -> None:
    assert what_else("timedout") == "did you mean timed-out?"
    assert what_else("Sublane-slice").startswith("did you mean sublane-slice")
