"""A start as text, as lines and as JSON, one item for each part; and back to the parts that are left."""

from __future__ import annotations

import json
import re
from typing import Any

from peers.parts import Parts

_ENDS = re.compile(r"[;{}\n]")


class Outline:
    """The texts of one start. Reading one back gives the numbers of the parts in it, None if it is damaged.

    A damaged text is no program, as a damaged line of a real language would be none: the item must be there whole.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._numbers = {part.text: part.number for part in parts.parts}

    def text(self) -> str:
        """One line for each part; what is in a region stands in braces, indented."""
        lines: list[str] = []

        def visit(numbers: tuple[int, ...], indent: str) -> None:
            for number in numbers:
                part = self._parts.parts[number]
                lines.append(f"{indent}{part.text}{' {' if part.children else ';'}")
                if part.children:
                    visit(part.children, indent + "  ")
                    lines.append(indent + "}")

        visit(self._parts.top, "")
        return "\n".join(lines) + "\n"

    def lines(self) -> list[str]:
        """One line for each part, without braces."""
        return [part.text + ";\n" for part in self._parts.parts]

    def json(self) -> str:
        """A list for each region: its own text, then what is in it."""

        def tree(number: int) -> Any:
            part = self._parts.parts[number]
            return [part.text, *map(tree, part.children)] if part.children else part.text

        return json.dumps([tree(number) for number in self._parts.top])

    def of_text(self, data: bytes) -> frozenset[int] | None:
        """The parts of what is left of `text` or `lines`."""
        try:
            items = [" ".join(item.split()) for item in _ENDS.split(data.decode())]
        except UnicodeDecodeError:
            return None
        return self._numbers_of([item for item in items if item])

    def of_json(self, data: bytes) -> frozenset[int] | None:
        """The parts of what is left of `json`, however deep they stand now."""
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return None
        items: list[Any] = []
        open_ = [value]
        while open_:
            one = open_.pop()
            if isinstance(one, list):
                open_ += one
            else:
                items.append(one)
        return self._numbers_of(items)

    def _numbers_of(self, items: list[Any]) -> frozenset[int] | None:
        if not all(isinstance(item, str) and item in self._numbers for item in items):
            return None
        return frozenset(self._numbers[item] for item in items)
