"""Examples shrink open: towards nothing banned, and towards small programs."""

from __future__ import annotations

import pytest
from hypothesis import Phase, find, settings
from hypothesis import strategies as st

import strategies
from reducer.ir.equations import BARRIER, Checkpoint, Scan
from reducer.ir.order import size
from reducer.ir.walk import equations
from strategies._source import Source

FEATURES = tuple("abcdefghijklmnop")
# Without the explain phase: it runs variations after shrinking, and `find` returns what it saw last.
PHASES = (Phase.generate, Phase.shrink)
SETTINGS = settings(database=None, derandomize=True, max_examples=4000, deadline=None, phases=PHASES)


def test_banned_features_shrink_to_none():
    @st.composite
    def sources(draw):
        source = Source(draw, FEATURES)
        return source.banned, source.pick(("simple", "other"))

    assert find(sources(), lambda _: True, settings=SETTINGS) == (frozenset(), "simple")
    assert find(sources(), lambda s: s[1] == "other", settings=SETTINGS) == (frozenset(), "other")
    # A ban that is needed stays, and it alone.
    assert find(sources(), lambda s: "c" in s[0], settings=SETTINGS) == (frozenset("c"), "simple")


def test_a_ban_makes_no_example_shorter():
    @st.composite
    def chances(draw):
        source = Source(draw, FEATURES)
        return source.banned, [source.chance(2, feature) for feature in FEATURES]

    # If it did, the shortest example would be the one with everything banned.
    banned, drawn = find(chances(), lambda _: True, settings=SETTINGS)
    assert (banned, any(drawn)) == (frozenset(), False)
    banned, drawn = find(chances(), lambda c: any(c[1]), settings=SETTINGS)
    assert (banned, sum(drawn)) == (frozenset(), 1)


@pytest.mark.parametrize("name", ["programs", "layer_stacks", "placements", "hunting"])
def test_the_simplest_program_is_small(name):
    assert size(find(getattr(strategies, name)(), lambda _: True, settings=SETTINGS)) <= 5


def test_hypothesis_own_shrinker_gets_close():
    def trip_count_one(program):
        inner = [
            (path, eqn)
            for path, _, eqn in equations(program)
            if isinstance(eqn, Scan) and eqn.length == 1 and eqn.metadata == BARRIER and path
        ]
        return bool(inner) and any(isinstance(e, Checkpoint) for _, _, e in equations(program))

    assert size(find(strategies.layer_stacks(), trip_count_one, settings=SETTINGS)) <= 6
