"""The walks: group testing finds exactly the edits that can be made, a descent the least numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reducer.passes.base import Edits, Numbers, Proposal
from reducer.shrink.search import Search, begin

Items = tuple[int, ...]


def walk(
    propose: Callable[[Items], Proposal[Items]], start: Items, holds: Callable[[Items], bool]
) -> tuple[Items, list[Items]]:
    """Drive a walk; the best candidate, and everything that was asked."""
    best, asked = start, []
    search: Search[Items] = begin(propose, start)
    while (build := search.candidate()) is not None:
        candidate = build()
        if candidate == best:
            search = search.unchanged()
            continue
        asked.append(candidate)
        if holds(candidate):
            best = candidate
            search = search.succeeded(best)
        else:
            search = search.failed()
    return best, asked


def removing(levels: tuple[int, ...] = ()) -> Callable[[Items], Edits[Items]]:
    """A pass that removes any set of items."""

    def propose(items: Items) -> Edits[Items]:
        def apply(positions: Sequence[int]) -> Items:
            gone = set(positions)
            return tuple(x for k, x in enumerate(items) if k not in gone)

        return Edits(len(items), apply, levels)

    return propose


@given(st.data())
def test_group_testing_leaves_what_is_needed_and_asks_nothing_twice(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 60))
    core = set(data.draw(st.lists(st.integers(0, max(n - 1, 0)), max_size=8))) if n else set()
    levels = tuple(sorted(set(data.draw(st.lists(st.integers(1, max(n - 1, 1)), max_size=3))))) if n > 1 else ()
    best, asked = walk(removing(levels), tuple(range(n)), lambda items: core <= set(items))
    assert set(best) == core
    assert len(set(asked)) == len(asked)


def test_all_in_one_question_where_nothing_is_needed() -> None:
    assert walk(removing(), tuple(range(1000)), lambda _: True) == ((), [()])


@pytest.mark.parametrize(("n", "limit"), [(64, 40), (1024, 65), (16384, 90)])
def test_questions_grow_with_the_logarithm(n: int, limit: int) -> None:
    core = {n // 7, n // 3, n // 2, n - 2}
    best, asked = walk(removing(), tuple(range(n)), lambda items: core <= set(items))
    assert set(best) == core
    assert len(asked) <= limit


def lowering(floors: Items) -> Callable[[Items], Numbers[Items]]:
    def propose(items: Items) -> Numbers[Items]:
        return Numbers(items, floors, tuple)

    return propose


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(0, 300)), max_size=4))
def test_a_descent_ends_at_the_least_numbers(pairs: list[tuple[int, int]]) -> None:
    least = tuple(low for low, _ in pairs)
    start = tuple(low + more for low, more in pairs)
    best, asked = walk(lowering((1,) * len(pairs)), start, lambda v: all(x >= y for x, y in zip(v, least, strict=True)))
    assert best == least
    assert len(set(asked)) == len(asked)


@pytest.mark.parametrize(
    ("start", "least", "asked"),
    [
        (1, 1, []),
        (2, 2, [1]),
        (12, 1, [1]),
        (12, 12, [1, 6, 11]),
        (300, 129, [1, 150, 75, 149, 112, 130, 121, 125, 127, 128, 129]),
    ],
)
def test_how_a_number_is_lowered(start: int, least: int, asked: list[int]) -> None:
    best, questions = walk(lowering((1,)), (start,), lambda v: v[0] >= least)
    assert best == (least,)
    assert [q[0] for q in questions] == asked
