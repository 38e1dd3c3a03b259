"""Words for people."""

from __future__ import annotations


def counted(number: int, things: str) -> str:
    """``3 compiles``, ``1 compile``; `things` is the plural."""
    if number == 1:
        things = things[:-2] if things.endswith("sses") else things.removesuffix("s")
    return f"{number} {things}"
