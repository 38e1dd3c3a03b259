"""Long lines of emitted text, broken inside their brackets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

#: Longest line, where brackets allow a choice.
WIDTH: Final = 100

_OPEN, _CLOSE = "([{", ")]}"


def fold(line: str, width: int = WIDTH) -> list[str]:
    """Break one line of code inside its longest brackets, as often as needed; a line without any stays."""
    if len(line) <= width:
        return [line]
    groups = list(_groups(line))
    if not groups:
        return [line]
    start, end, commas, pluses = max(groups, key=lambda group: group[1] - group[0])
    breaks, separator = (commas, ",") if commas else (pluses, "")
    edges = [start + 1, *breaks, end]
    items = [line[a:b].strip(" ,") for a, b in pairwise(edges)]
    indent = line[: len(line) - len(line.lstrip())]
    rows = _fill([item + separator for item in items if item], indent + "    ", width)
    head, tail = line[: start + 1], indent + line[end:]
    return [head, *(part for row in rows for part in fold(row, width)), *fold(tail, width)]


def _fill(items: list[str], indent: str, width: int) -> list[str]:
    rows: list[str] = []
    for item in items:
        if rows and len(rows[-1]) + 1 + len(item) <= width:
            rows[-1] += f" {item}"
        else:
            rows.append(indent + item)
    return rows


def _groups(line: str) -> Iterator[tuple[int, int, list[int], list[int]]]:
    """Outermost brackets of a line: where they open and close, and the commas and pluses directly inside."""
    depth, start, quote = 0, 0, ""
    commas: list[int] = []
    pluses: list[int] = []
    skip = False
    for i, char in enumerate(line):
        if skip:
            skip = False
        elif quote:
            skip = char == "\\"
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in _OPEN:
            depth += 1
            if depth == 1:
                start, commas, pluses = i, [], []
        elif char in _CLOSE:
            # The rest of a line that was broken before starts with a bracket of its own.
            if depth == 1:
                yield start, i, commas, pluses
            depth = max(depth - 1, 0)
        elif depth == 1 and char == ",":
            commas.append(i)
        elif depth == 1 and line[i - 1 : i + 2] == " + ":
            pluses.append(i)
