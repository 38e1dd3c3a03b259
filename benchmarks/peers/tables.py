"""The tables of the comparison, and what is reached of what was wanted."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from common import table

from peers.contest import Score
from peers.ours import OURS
from peers.starts import LEVELS

_HEADS = (
    "contender", "starts", "compiles: median", "p90", "size: median (max)", "to 90%", "own end", "not 1-minimal",
    "same signature", "wall, s",
)  # fmt: skip


def p90(values: Sequence[float]) -> float:
    """The least value that nine in ten do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-9 * len(ordered) // 10) - 1)]


def _row(name: str, scores: Sequence[Score]) -> tuple[object, ...]:
    compiles = [s.compiles for s in scores]
    sizes = [s.size for s in scores]
    looked = [s for s in scores if s.violations is not None]
    return (
        name,
        len(scores),
        f"{statistics.median(compiles):g}",
        f"{p90(compiles):g}",
        f"{statistics.median(sizes):g} ({max(sizes)})",
        f"{statistics.median(s.to_90 for s in scores):g}",
        f"{sum(s.ended for s in scores)} of {len(scores)}",
        f"{sum(bool(s.violations) for s in looked)} of {len(looked)}",
        f"{sum(s.same for s in scores) / len(scores):.0%}",
        f"{statistics.median(s.seconds for s in scores):.0f}",
    )


def of_level(level: str, scores: Iterable[Score], order: Sequence[str]) -> str:
    """One size class: all contenders, each on the starts it was run on."""
    mine = [s for s in scores if s.level == level]
    by_name = {name: [s for s in mine if s.contender == name] for name in order}
    return table(_HEADS, [_row(name, found) for name, found in by_name.items() if found])


def sections(scores: Sequence[Score], order: Sequence[str]) -> str:
    """All of it."""
    text = "## Reducers on the same starts\n"
    for level in LEVELS:
        if any(s.level == level for s in scores):
            text += f"\n### {level.capitalize()} of equations\n\n{of_level(level, scores, order)}\n"
    return text


__all__ = ["OURS", "of_level", "p90", "sections"]
