"""Signatures on real failures whose bug is known (`labelled/README.md`): none merged, hardly any split."""

from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

import msgspec
import pytest

from reducer.oracle.outcome import Crashed, Outcome, Rejected
from reducer.oracle.signature import is_finding, signature


class Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    bug: str
    release: str
    program: str
    outcome: Outcome


FAILURES = msgspec.json.decode((Path(__file__).parent / "labelled" / "failures.json").read_bytes(), type=list[Failure])
RELEASES = sorted({failure.release for failure in FAILURES})

#: Families of more than one bug, and why.
SHARED = {
    # The same program fails for the one, then the other, then the first again from release to release.
    "sublane-slice": {"sublane-update-chunk", "sublane-update-packing"},
}


def merged(pairs):
    """Pairs of bugs that have a key in common, of (bug, key) pairs."""
    bugs = defaultdict(set)
    for bug, key in pairs:
        bugs[key].add(bug)
    return {pair for found in bugs.values() for pair in combinations(sorted(found), 2)}


def over_split(pairs):
    """Keys beyond one per bug, divided by the bugs, of (bug, key) pairs."""
    keys = defaultdict(set)
    for bug, key in pairs:
        keys[bug].add(key)
    return sum(len(found) - 1 for found in keys.values()) / len(keys)


def test_the_measures_can_fail():
    assert merged([("a", "1"), ("b", "1"), ("b", "2"), ("c", "3")]) == {("a", "b")}
    assert over_split([("a", "1"), ("a", "2"), ("b", "1"), ("b", "1")]) == 0.5


def test_the_set_is_large_and_varied():
    assert len(FAILURES) >= 60
    assert len({failure.bug for failure in FAILURES}) >= 15
    assert len(RELEASES) == 6
    assert min(Counter(failure.release for failure in FAILURES).values()) >= 20
    signals = {failure.outcome.signal for failure in FAILURES if isinstance(failure.outcome, Crashed)}
    assert signals == {"SIGABRT", "SIGSEGV"}
    for failure in FAILURES:
        assert isinstance(failure.outcome, Rejected | Crashed)
        assert is_finding(failure.outcome)
        assert not any(place in failure.outcome.message for place in ("/home", "/tmp", "/root", "/work", "/usr"))


@pytest.mark.parametrize("release", RELEASES)
def test_signatures_within_a_release(release):
    pairs = [(failure.bug, text_of(failure)) for failure in FAILURES if failure.release == release]
    assert merged(pairs) == set()
    assert over_split(pairs) <= 0.1


def test_no_two_bugs_have_one_signature_on_any_releases():
    assert merged((failure.bug, text_of(failure)) for failure in FAILURES) == set()


def test_families_across_releases():
    bugs, families = defaultdict(set), defaultdict(set)
    for failure in FAILURES:
        family = signature(failure.outcome).family
        bugs[family].add(failure.bug)
        families[failure.bug].add(family)
    assert {bug: found for bug, found in families.items() if len(found) > 1} == {}
    assert {family: found for family, found in bugs.items() if len(found) > 1} == SHARED


def text_of(failure):
    found = signature(failure.outcome)
    assert found is not None
    return found.text
