"""Searching an ordered list of releases for where an answer changes."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from reducer.bisect import Boundary, bisect


def probe(states: str) -> tuple[list[str], Callable[[str], str | None], list[str]]:
    """Releases r0, r1, ... in the states that the letters say, "-" for none; and which were asked."""
    asked: list[str] = []
    releases = [f"r{at}" for at in range(len(states))]

    def ask(release: str) -> str | None:
        asked.append(release)
        state = states[int(release[1:])]
        return None if state == "-" else state

    return releases, ask, asked


def test_one_change():
    releases, ask, asked = probe("aaaaaaabbbbbbbbb")
    assert bisect(releases, ask).boundaries == (Boundary("r6", "r7", "a", "b"),)
    assert len(asked) == 2 + 4


def test_ends_that_agree():
    releases, ask, asked = probe("aaaabbaaaa")
    found = bisect(releases, ask)
    assert found.boundaries == ()
    assert asked == ["r0", "r9"]
    assert found.tried == ("r0", "r9")


def test_several_changes():
    releases, ask, _ = probe("aaabbbbcc")
    assert bisect(releases, ask).boundaries == (Boundary("r2", "r3", "a", "b"), Boundary("r6", "r7", "b", "c"))


def test_what_cannot_be_judged_is_skipped():
    releases, ask, _ = probe("--aa---bb-")
    found = bisect(releases, ask)
    assert found.boundaries == (Boundary("r3", "r7", "a", "b", ("r4", "r5", "r6")),)
    assert found.skipped == ("r0", "r1", "r4", "r5", "r6", "r9")


def test_nothing_can_be_judged():
    releases, ask, _ = probe("---")
    found = bisect(releases, ask)
    assert (found.boundaries, found.tried, found.skipped) == ((), (), ("r0", "r1", "r2"))


def test_one_release_can_be_judged():
    releases, ask, asked = probe("-a-")
    assert bisect(releases, ask).boundaries == ()
    assert sorted(asked) == releases


def test_cheap_releases_of_the_middle_half_come_first():
    releases, ask, asked = probe("aaaaabbbb")
    bisect(releases, ask, cheap={"r6", "r1"})
    assert asked[2:4] == ["r6", "r3"]


@given(st.text("abc-", min_size=2, max_size=24))
def test_every_boundary_is_one(states: str):
    releases, ask, asked = probe(states)
    found = bisect(releases, ask)
    assert len(asked) == len(set(asked))
    for b in found.boundaries:
        low, high = int(b.last[1:]), int(b.first[1:])
        assert (states[low], states[high]) == (b.before, b.after)
        assert b.before != b.after
        assert set(states[low + 1 : high]) <= {"-"}
    assert all(a.after == b.before for a, b in itertools.pairwise(found.boundaries))
    judged = [state for state in states if state != "-"]
    assert bool(found.boundaries) == (bool(judged) and judged[0] != judged[-1])
