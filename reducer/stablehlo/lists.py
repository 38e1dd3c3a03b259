"""Lists inside the text of attributes: split where they are, never inside of what they hold."""

from __future__ import annotations

from reducer.errors import ProgramError

_OPEN = dict(zip("([{<", ")]}>", strict=True))


def split(text: str) -> list[str]:
    """The items of a list's inside, commas within brackets and strings left alone."""
    items, start, closing = [], 0, ""
    at = 0
    while at < len(text):
        char = text[at]
        if char == '"':
            at += 1
            while at < len(text) and text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        elif char in _OPEN:
            closing += _OPEN[char]
        elif closing and char == closing[-1]:
            closing = closing[:-1]
        elif char == "," and not closing:
            items.append(text[start:at].strip())
            start = at + 1
        at += 1
    last = text[start:].strip()
    return [*items, last] if last or items else []


_PER_VALUE = ("#sdy.sharding_per_value<[", "]>")


def shardings(text: str) -> list[str]:
    """The shardings of an ``#sdy.sharding_per_value``, one for each value.

    Raises:
        ProgramError: the text is none.
    """
    first, last = _PER_VALUE
    if not (text.startswith(first) and text.endswith(last)):
        raise ProgramError("not a list of shardings")
    return split(text[len(first) : -len(last)])


def per_value(items: list[str]) -> str:
    """The reverse of `shardings`."""
    return f"{_PER_VALUE[0]}{', '.join(items)}{_PER_VALUE[1]}"
