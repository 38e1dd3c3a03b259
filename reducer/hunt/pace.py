"""How long compiling takes, by the size of what is compiled: learned while a hunt goes on, to tell what is too slow.

A program is slow if compiling it takes more than `TIMES` what is usual for its size, and `LEAST` seconds at least. What
is usual is the median of the observed programs nearest in size (lines of the lowered module); of a larger program than
these, in proportion. A median does not care about a few outliers, of which slow programs are some, nor about a machine
that is busy now and then; a machine that was idle and becomes busy is why a slow program is repeated alone before it
counts, and why seconds are those of the CPU where they are fewer than the clock's.
"""

from __future__ import annotations

import math
from collections import deque
from statistics import median
from typing import Final

#: So many times what is usual is slow.
TIMES: Final = 10.0
#: Nothing that takes less is slow, in seconds: short times vary by more than a factor of ten by themselves.
LEAST: Final = 5.0
#: Programs that have to be seen before any is called slow, and the last ones that are remembered.
ENOUGH, REMEMBERED = 40, 1000
#: How many of them, nearest in size, say what is usual.
NEIGHBOURS: Final = 25


class Pace:
    """What compiling took so far, on one target."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque(maxlen=REMEMBERED)

    def limit(self, lines: int) -> float | None:
        """Seconds beyond which compiling a module of so many lines is slow; None as long as too little is known."""
        if len(self._seen) < ENOUGH:
            return None
        here = _scale(lines)
        nearest = sorted(self._seen, key=lambda one: abs(one[0] - here))[:NEIGHBOURS]
        usual = median(seconds for _, seconds in nearest)
        larger = math.exp(here - median(scale for scale, _ in nearest))
        return max(TIMES * usual * max(larger, 1.0), LEAST)

    def note(self, lines: int, seconds: float) -> None:
        """A module of so many lines took so long."""
        self._seen.append((_scale(lines), seconds))


def _scale(lines: int) -> float:
    return math.log(max(lines, 1))
