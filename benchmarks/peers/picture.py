"""Curves of all contenders as an SVG: equations left after so many compiles, one panel for each size class."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from html import escape

from peers.contest import Score
from peers.starts import LEVELS

_WIDTH, _HEIGHT = 400, 300
_LEFT, _TOP, _RIGHT, _BOTTOM = 48, 46, 12, 44
_COLOURS = (
    "#d62728", "#1f77b4", "#17becf", "#2ca02c", "#9467bd", "#ff7f0e", "#bcbd22", "#8c564b", "#e377c2", "#7f7f7f",
)  # fmt: skip
#: A contender with fewer starts of a class has no curve there: it would be of other starts than the rest.
_FEWEST = 3

#: A colour, and points: compiles, equations.
Curve = tuple[str, list[tuple[int, float]]]


def reached(score: Score, compiles: int) -> int:
    """Equations of the smallest failing program after so many compiles."""
    return next((left for spent, left in reversed(score.history) if spent <= compiles), score.start_size)


def curve(scores: Sequence[Score]) -> list[tuple[int, float]]:
    """(compiles, median of equations left), from the first compile to the last one that changes it."""
    spent = sorted({1, *(n for score in scores for n, _ in score.history)})
    points: list[tuple[int, float]] = []
    for n in spent:
        left = statistics.median(reached(score, n) for score in scores)
        if not points or left != points[-1][1]:
            points.append((n, left))
    return points


def picture(scores: Sequence[Score], order: Sequence[str]) -> str:
    """The SVG. Contenders have the colours of their places in `order`."""
    found = [(level, curves) for level in LEVELS if (curves := _curves(scores, level, order))]
    legend = _HEIGHT + 16 + 22 * -(-len(order) // 4)
    parts = [panel(level, curves, i * _WIDTH) for i, (level, curves) in enumerate(found)]
    width = _WIDTH * len(found)
    for i, name in enumerate(order):
        x, y = 20 + i % 4 * width / 4, _HEIGHT + 20 + 22 * (i // 4)
        parts.append(f'<path d="M{x:g} {y - 4:g}h24" stroke="{_COLOURS[i]}" stroke-width="2.5"/>')
        parts.append(f'<text x="{x + 30:g}" y="{y:g}">{escape(name)}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {legend}" font-family="sans-serif"'
    ground = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join([f'{head} font-size="12" fill="#222">', ground, *parts, "</svg>\n"])


def _curves(scores: Sequence[Score], level: str, order: Sequence[str]) -> list[Curve]:
    by_name = [[s for s in scores if s.level == level and s.contender == name] for name in order]
    return [(_COLOURS[i], curve(mine)) for i, mine in enumerate(by_name) if len(mine) >= _FEWEST]


def panel(level: str, curves: Sequence[Curve], left: int) -> str:
    """One size class: both axes logarithmic, a dot where nothing is gained any more."""
    most = max(points[-1][0] for _, points in curves)
    top = max(points[0][1] for _, points in curves)
    plot_w, plot_h = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(compiles: float) -> float:
        return left + _LEFT + plot_w * math.log(compiles) / math.log(most * 1.1)

    def y(equations: float) -> float:
        return _TOP + plot_h * (1 - math.log(equations / 2) / math.log(top / 2 * 1.1))

    below = _TOP + plot_h
    parts = [
        f'<text x="{left + _LEFT}" y="18" font-weight="bold">{level.capitalize()} of equations</text>',
        f'<path d="M{left + _LEFT} {_TOP}v{plot_h}h{plot_w}" fill="none" stroke="#222"/>',
        f'<text x="{left + _LEFT + plot_w / 2:g}" y="{below + 34}" text-anchor="middle">compiles</text>',
        f'<text x="{left + 8}" y="{_TOP - 8}">equations</text>',
    ]
    for n in _ticks(1, most * 1.1):
        parts.append(f'<path d="M{x(n):.1f} {below}v4" stroke="#222"/>')
        parts.append(f'<text x="{x(n):.1f}" y="{below + 17}" text-anchor="middle">{n}</text>')
    for n in _ticks(2, top * 1.1):
        parts.append(f'<path d="M{left + _LEFT} {y(n):.1f}h{plot_w}" stroke="#ddd"/>')
        parts.append(f'<text x="{left + _LEFT - 5}" y="{y(n) + 4:.1f}" text-anchor="end">{n}</text>')
    # The first one is drawn last, on top.
    for colour, points in reversed(curves):
        steps = "".join(f"H{x(n):.1f}V{y(size):.1f}" for n, size in points[1:])
        start = f"M{x(points[0][0]):.1f} {y(points[0][1]):.1f}"
        parts.append(f'<path d="{start}{steps}" fill="none" stroke="{colour}" stroke-width="2.5" opacity="0.85"/>')
        parts.append(f'<circle cx="{x(points[-1][0]):.1f}" cy="{y(points[-1][1]):.1f}" r="3.5" fill="{colour}"/>')
    return "\n".join(parts)


def _ticks(least: int, most: float) -> Iterator[int]:
    """1, 2, 5, 10, 20, 50, ... between two figures."""
    for power in range(5):
        for digit in (1, 2, 5):
            if least <= digit * 10**power <= most:
                yield digit * 10**power
