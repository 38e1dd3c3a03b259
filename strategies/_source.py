"""Drawing: a thin layer over Hypothesis' `draw` that keeps a program to a few dozen choices.

Hypothesis stores the choices of one example in a buffer of 8 KiB, and a choice costs some ten microseconds, so a
plan is drawn from tables, one choice each, rather than from nested strategies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

#: What `@st.composite` hands to its function.
Draw = Callable[[st.SearchStrategy[Any]], Any]


@lru_cache(maxsize=1 << 14)
def _one_of(turn: int, options: tuple[Any, ...]) -> st.SearchStrategy[tuple[int, Any]]:
    """One of the options, as a strategy that differs from turn to turn.

    While generating, Hypothesis follows each example with five that copy choices between draws of equal strategies.
    In a program that mostly gives one seen before: only a third of all examples were distinct. Where no strategy is
    drawn from twice there is nothing to copy.
    """
    return st.sampled_from([(turn, option) for option in options])


def often(**weights: int) -> tuple[str, ...]:
    """A table in which each word stands as often as its weight; the first one is what examples shrink to."""
    return tuple(word for word, n in weights.items() for _ in range(n))


class Source:
    """Draws, with swarm flags: each example first bans some of the optional features.

    The *banned* set is what is drawn, and it shrinks to the empty set: a shrunk example may use everything. For
    that a ban must not make an example shorter, so what is banned is still drawn, from options all alike.
    """

    def __init__(self, draw: Draw, features: Sequence[str] = ()) -> None:
        self.draw = draw
        self._turns: Counter[tuple[Any, ...]] = Counter()
        self.banned = frozenset(self.some(features))

    def allows(self, feature: str) -> bool:
        """True if this example may use an optional feature."""
        return feature not in self.banned

    def pick(self, options: Sequence[T]) -> T:
        """One of the options; the first is the simplest. Drawn even where there is only one: see `Source`."""
        # Hypothesis mixes integers of 100 and more that it finds in the source of loaded modules into what it draws:
        # with longer tables a seed would mean other programs once another module is imported.
        assert len(options) < 100
        # It makes no choice between one option.
        table = tuple(options) if len(options) > 1 else (options[0], options[0])
        turn = self._turns[table]
        self._turns[table] += 1
        choice: T = self.draw(_one_of(turn, table))[1]
        return choice

    def chance(self, one_in: int, feature: str = "") -> bool:
        """True once in `one_in`; never if the feature is banned. Shrinks to False."""
        return self.pick((False,) * (one_in - 1) + (feature not in self.banned,))

    def some(self, options: Sequence[T]) -> tuple[T, ...]:
        """A subset, in order, by one choice for each six options. Shrinks to the empty one."""
        chosen: tuple[T, ...] = ()
        for start in range(0, len(options), 6):
            part = options[start : start + 6]
            mask = self.pick(range(2 ** len(part)))
            chosen += tuple(option for i, option in enumerate(part) if mask >> i & 1)
        return chosen
