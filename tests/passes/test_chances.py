"""What is supposed of passes: of passes that exist, and never certain."""

from __future__ import annotations

from dataclasses import astuple, replace

from reducer.passes import PASSES
from reducer.passes.chances import CHANCES, with_chances
from reducer.shrink.programs import SWEEP


def test_every_figure_is_of_a_pass_there_is() -> None:
    assert set(CHANCES) <= {one.name for one in (*PASSES, SWEEP)} | {""}


def test_nothing_is_certain() -> None:
    assert all(0 < chance < 1 for chances in CHANCES.values() for chance in astuple(chances))


def test_a_pass_of_which_nothing_is_known_is_like_all_of_them() -> None:
    assert with_chances(SWEEP).chances == CHANCES["sweep"]
    assert with_chances(replace(SWEEP, name="new")).chances == CHANCES[""]
