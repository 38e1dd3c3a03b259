"""The tables of the comparison, and what is reached of what was wanted."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence

from common import table

from peers.contest import Score, Start
from peers.ours import OURS
from peers.starts import LEVELS

_HEADS = (
    "", "starts", "compiles", "p90", "modules", "size", "largest", "to 90%", "seconds", "scanshrink so small after",
    "not 1-minimal", "same signature", "stopped",
)  # fmt: skip
_EQUAL_HEADS = (
    "", "starts", "peer's end : scanshrink at its size", "≥ 4", "both at that size", "≥ 4",
    "scanshrink's end : peer's end", "scanshrink smaller / equal / larger", "peer stopped",
)  # fmt: skip
_KINDS = ("hunt", "seed", "captured", "embedded")
#: Times as many compiles as scanshrink that are wanted of every other reducer.
WANTED = 4
_OURS_HEADS = (
    "",
    "starts",
    "to fixpoint",
    "with everything",
    "most",
    "within 3x + 150",
    "1 worker, s",
    "2 workers, s",
    "faster",
    "in the median",
    "with certificate and explanations, s",
    "bytes",
)


def p90(values: Sequence[float]) -> float:
    """The least value that nine in ten do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-9 * len(ordered) // 10) - 1)]


def median(scores: Sequence[Score], value: Callable[[Score], float | None]) -> str:
    """The median of what is known."""
    known = [v for v in map(value, scores) if v is not None]
    return f"{statistics.median(known):g}" if known else "-"


def spent_until(score: Score, size: int) -> int | None:
    """Compiles until a contender had so few equations; None if it never did."""
    return next((n for n, reached in score.history if reached <= size), None)


def row(name: str, scores: Sequence[Score], ours: dict[str, Score]) -> tuple[object, ...]:
    """One contender on one size class."""
    looked = [s for s in scores if s.violations is not None]
    caught = [spent_until(ours[s.start], s.size) for s in scores if s.start in ours]
    known = [n for n in caught if n is not None]
    behind = len(caught) - len(known)
    return (
        name,
        len(scores),
        median(scores, lambda s: s.compiles),
        f"{p90([s.compiles for s in scores]):g}",
        median(scores, lambda s: s.lowered),
        median(scores, lambda s: s.size),
        max(s.size for s in scores),
        median(scores, lambda s: s.to_90),
        median(scores, lambda s: round(s.seconds)),
        "" if name == OURS or not caught else _caught(known, behind),
        f"{sum(bool(s.violations) for s in looked)} of {len(looked)}",
        f"{sum(s.same for s in scores) / len(scores):.0%}",
        sum(not s.ended for s in scores),
    )


def at_equal_size(level: str, scores: Iterable[Score], order: Sequence[str]) -> str:
    """Each peer beside scanshrink, start by start, at the size of the peer's own result.

    Where scanshrink never becomes so small, the ratio is 0. Where the peer was stopped, its end is where it was.
    """
    mine = [s for s in scores if s.level == level]
    ours = {s.start: s for s in mine if s.contender == OURS}
    rows = []
    for name in order:
        pairs = [(s, ours[s.start]) for s in mine if s.contender == name and s.start in ours]
        if name == OURS or not pairs:
            continue
        there = [(peer, spent_until(our, peer.size)) for peer, our in pairs]
        to_end = [peer.compiles / n if n else 0.0 for peer, n in there]
        to_size = [(spent_until(peer, peer.size) or peer.compiles) / n if n else 0.0 for peer, n in there]
        smaller, larger = (sum(sign * our.size < sign * peer.size for peer, our in pairs) for sign in (1, -1))
        rows.append(
            (
                name,
                len(pairs),
                f"{statistics.median(to_end):.1f}",
                f"{sum(r >= WANTED for r in to_end) / len(to_end):.0%}",
                f"{statistics.median(to_size):.1f}",
                f"{sum(r >= WANTED for r in to_size) / len(to_size):.0%}",
                f"{statistics.median(our.compiles / peer.compiles for peer, our in pairs):.1f}",
                f"{smaller} / {len(pairs) - smaller - larger} / {larger}",
                sum(not peer.ended for peer, _ in pairs),
            )
        )
    return table(_EQUAL_HEADS, rows)


def _caught(known: Sequence[int], behind: int) -> str:
    return ", ".join([f"{statistics.median(known):g}"] * bool(known) + [f"never: {behind}"] * bool(behind))


def smallest(level: str, scores: Iterable[Score], order: Sequence[str]) -> str:
    """Who ends smallest in the median."""
    mine = [s for s in scores if s.level == level]
    medians = {
        name: statistics.median(found) for name in order if (found := [s.size for s in mine if s.contender == name])
    }
    least = min(medians.values())
    first = ", ".join(name for name, size in medians.items() if size == least)
    others = [size for size in medians.values() if size != least]
    then = f"; the next reaches {min(others):g}" if others else ""
    return f"The smallest in the median: {first}, {least:g} equations{then}."


def of_level(level: str, scores: Iterable[Score], order: Sequence[str]) -> str:
    """One size class: every contender on the starts it was run on; medians."""
    mine = [s for s in scores if s.level == level]
    ours = {s.start: s for s in mine if s.contender == OURS}
    by_name = {name: [s for s in mine if s.contender == name] for name in order}
    return table(_HEADS, [row(name, found, ours) for name, found in by_name.items() if found])


def our_row(level: str, scores: Sequence[Score]) -> tuple[object, ...]:
    """What all of a reduction costs, and what a second worker brings."""
    one, two = (sum(s) for s in zip(*((s.seconds, s.seconds_2 or 0.0) for s in scores), strict=True))
    both = [s.with_evidence or (s.seconds, s.seconds_2 or 0.0) for s in scores]
    whole, whole_2 = (sum(s) for s in zip(*both, strict=True))
    return (
        level,
        len(scores),
        median(scores, lambda s: s.compiles),
        median(scores, lambda s: s.total),
        max(s.total or 0 for s in scores),
        f"{sum((s.total or 0) <= 3 * s.compiles + 150 for s in scores)} of {len(scores)}",
        f"{one:.0f}",
        f"{two:.0f}",
        f"{one / two:.2f}",
        f"{statistics.median(s.seconds / (s.seconds_2 or s.seconds) for s in scores):.2f}",
        f"{whole:.0f} / {whole_2:.0f}: {whole / whole_2:.2f}",
        "the same" if all(s.same_bytes for s in scores) else "differ",
    )


def growth(scores: Sequence[Score], order: Sequence[str]) -> str:
    """Compiles on finds embedded in about 100 and in 2,000 equations, of the finds that a contender reduced in both."""
    rows = []
    for name in order:
        by_start = {s.start: s for s in scores if s.contender == name and " in " in s.start}
        finds = {start.rsplit(" in ", 1)[0] for start in by_start}
        pairs = [
            (small, large)
            for find in sorted(finds)
            for small in [s for s in by_start.values() if s.start.startswith(f"{find} in ") and s.level == LEVELS[1]]
            for large in [s for s in by_start.values() if s.start.startswith(f"{find} in ") and s.level == LEVELS[2]]
        ]
        if pairs:
            small, large = (statistics.median(s.compiles for s in some) for some in zip(*pairs, strict=True))
            rows.append((name, len(pairs), f"{small:g}", f"{large:g}", f"{large / small:.1f}x"))
    return table(("", "finds", "in hundreds", "in thousands", "growth"), rows)


def starts_table(scores: Sequence[Score], order: Sequence[str]) -> str:
    """Every start: its size, and the compiles and size of each contender."""
    cells = {(s.start, s.contender): f"{s.compiles}{'' if s.ended else '+'} → {s.size}" for s in scores}
    ranked = sorted({(LEVELS.index(s.level), s.start, s.start_size) for s in scores})
    names = [name for name in order if any(s.contender == name for s in scores)]
    rows = [(start, size, *(cells.get((start, name), "") for name in names)) for _, start, size in ranked]
    return table(("start", "equations", *names), rows)


def what_starts(starts: Sequence[Start]) -> str:
    """What is reduced: a row for each size class, and one for all."""
    rows = []
    for level in (*LEVELS, "all"):
        mine = [s for s in starts if level in (s.level, "all")]
        if mine:
            kinds = [sum(s.kind == kind for s in mine) for kind in _KINDS]
            sizes = f"{min(s.size for s in mine)}-{max(s.size for s in mine)}"
            rows.append((level, len(mine), *kinds, sizes, len({s.label for s in mine}), len({s.libtpu for s in mine})))
    return table(("", "starts", *_KINDS, "equations", "signatures", "releases"), rows)


def sections(scores: Sequence[Score], order: Sequence[str], starts: Sequence[Start]) -> str:
    """All of it."""
    text = f"## scanshrink beside other reducers\n\n### The starts\n\n{what_starts(starts)}\n"
    text += "\n![equations left after so many compiles, median of the starts](reducers.svg)\n"
    for level in LEVELS:
        if any(s.level == level for s in scores):
            text += f"\n### {level.capitalize()} of equations\n\n{of_level(level, scores, order)}\n"
            text += f"\n{smallest(level, scores, order)}\n"
            text += "\nCompiles of each beside scanshrink's on the same starts, medians of the ratios:\n\n"
            text += f"{at_equal_size(level, scores, order)}\n"
    ours = {level: [s for s in scores if s.contender == OURS and s.level == level] for level in LEVELS}
    rows = [our_row(level, found) for level, found in ours.items() if found]
    text += f"\n### All that a reduction costs, and a second worker\n\n{table(_OURS_HEADS, rows)}\n"
    text += f"\n### Growth\n\n{growth(scores, order)}\n"
    text += f"\n### Every start\n\nCompiles → equations; + where it was stopped.\n\n{starts_table(scores, order)}\n"
    return text


__all__ = ["OURS", "of_level", "p90", "sections"]
