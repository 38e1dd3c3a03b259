"""What compiling usually takes, by size."""

from __future__ import annotations

from reducer.hunt.pace import ENOUGH, LEAST, REMEMBERED, TIMES, Pace


def seen(count: int = ENOUGH, lines: int = 100, seconds: float = 2.0) -> Pace:
    pace = Pace()
    for _ in range(count):
        pace.note(lines, seconds)
    return pace


def test_nothing_is_said_before_enough_was_seen() -> None:
    assert seen(ENOUGH - 1).limit(100) is None
    assert seen(ENOUGH).limit(100) == TIMES * 2.0


def test_short_times_have_a_limit_of_their_own() -> None:
    assert seen(seconds=0.1).limit(100) == LEAST


def test_larger_programs_take_longer_in_proportion_smaller_ones_as_long() -> None:
    pace = seen()
    assert round(pace.limit(300) or 0, 6) == TIMES * 6.0
    assert pace.limit(10) == TIMES * 2.0
    assert pace.limit(0) == TIMES * 2.0


def test_what_is_usual_is_that_of_the_nearest_in_size() -> None:
    pace = seen()
    for _ in range(ENOUGH):
        pace.note(10_000, 50.0)
    assert pace.limit(100) == TIMES * 2.0
    assert pace.limit(9_000) == TIMES * 50.0


def test_outliers_do_not_matter() -> None:
    pace = seen()
    for _ in range(10):
        pace.note(100, 1e6)
    assert pace.limit(100) == TIMES * 2.0


def test_the_past_is_forgotten() -> None:
    pace = seen()
    for _ in range(REMEMBERED):
        pace.note(100, 3.0)
    assert pace.limit(100) == TIMES * 3.0
