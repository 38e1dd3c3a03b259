"""Drawing: a thin layer over Hypothesis' `draw` that keeps a program to a few dozen choices.

Hypothesis stores the choices of one example in a buffer of 8 KiB, and a choice costs some ten microseconds, so a
plan is drawn from tables, one choice each, rather than from nested strategies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

#: What `@st.composite` hands to its function.
Draw = Callable[[st.SearchStrategy[Any]], Any]


@lru_cache(maxsize=4096)
def _one_of(options: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(options)


@lru_cache(maxsize=256)
def _below(n: int) -> st.SearchStrategy[int]:
    return st.integers(0, n - 1)


def often(**weights: int) -> tuple[str, ...]:
    """A table in which each word stands as often as its weight; the first one is what examples shrink to."""
    return tuple(word for word, n in weights.items() for _ in range(n))


class Source:
    """Draws, with swarm flags: each example first bans some of the optional features.

    The *banned* set is what is drawn, and it shrinks to the empty set: a shrunk example may use everything.
    """

    def __init__(self, draw: Draw, features: Sequence[str] = ()) -> None:
        self.draw = draw
        mask = draw(_below(2 ** len(features))) if features else 0
        self.banned = frozenset(name for i, name in enumerate(features) if mask >> i & 1)

    def allows(self, feature: str) -> bool:
        """True if this example may use an optional feature."""
        return feature not in self.banned

    def pick(self, options: Sequence[T]) -> T:
        """One of the options; the first is the simplest."""
        if len(options) == 1:
            return options[0]
        choice: T = self.draw(_one_of(tuple(options)))
        return choice

    def chance(self, one_in: int, feature: str = "") -> bool:
        """True once in `one_in`; never (and without a draw) if the feature is banned. Shrinks to False."""
        return not (feature and feature in self.banned) and bool(self.draw(_below(one_in)) == one_in - 1)

    def some(self, options: Sequence[T]) -> tuple[T, ...]:
        """A subset, in order, by one choice. Shrinks to the empty one. At most 16 options."""
        assert len(options) <= 16
        mask = self.draw(_below(2 ** len(options)))
        return tuple(option for i, option in enumerate(options) if mask >> i & 1)
