"""Words that reports and progress share."""

from __future__ import annotations

import pytest

from reducer.words import counted


@pytest.mark.parametrize(
    ("number", "things", "said"),
    [
        (0, "compiles", "0 compiles"),
        (1, "compiles", "1 compile"),
        (2, "compiles", "2 compiles"),
        (1, "passes", "1 pass"),
        (1, "cases", "1 case"),
        (1, "failing programs", "1 failing program"),
    ],
)
def test_one_thing_and_more(number: int, things: str, said: str) -> None:
    assert counted(number, things) == said
