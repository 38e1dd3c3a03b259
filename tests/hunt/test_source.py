"""Programs drawn ahead by a thread of their own."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
from hypothesis import strategies as st

from reducer.hunt import Source, source
from reducer.ir.equations import Program

from .fakes import program

LENGTHS = st.integers(0, 10_000).map(lambda n: program(1, strategy=str(n)))


def drawn(seed: int, count: int, *, start: int = 0) -> list[Program]:
    programs = Source(LENGTHS, seed, start=start)
    try:
        return [next(programs) for _ in range(count)]
    finally:
        programs.close()


def test_the_same_seed_draws_the_same_programs() -> None:
    assert drawn(7, 60) == drawn(7, 60)


def test_another_seed_draws_others() -> None:
    assert drawn(7, 60) != drawn(8, 60)


def test_a_later_batch_is_where_a_hunt_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "BATCH", 20)
    whole = drawn(7, 45)
    later = drawn(7, 20, start=1)
    assert any(later == whole[i : i + 20] for i in range(1, 26))


def test_the_batch_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "BATCH", 3)
    programs = Source(LENGTHS, 1, ahead=1)
    for _ in range(10):
        next(programs)
    assert programs.batch >= 2
    programs.close()


def test_no_more_is_drawn_ahead_than_asked() -> None:
    full = threading.Event()
    count = 0

    def counted(n: int) -> Program:
        nonlocal count
        count += 1
        if count == 4:  # three are queued, and the fourth waits for a place
            full.set()
        return program(1, strategy=str(n))

    programs = Source(st.integers().map(counted), 1, ahead=3)
    assert full.wait(60)
    programs.close()
    assert count <= 5


def test_a_closed_source_ends() -> None:
    programs = Source(LENGTHS, 1)
    next(programs)
    programs.close()
    programs.close()
    with pytest.raises(StopIteration):
        next(programs)


def test_polling_does_not_wait() -> None:
    started, go = threading.Event(), threading.Event()

    def slow(n: int) -> Program:
        started.set()
        assert go.wait(60)
        return program(1, strategy=str(n))

    programs = Source(st.integers().map(slow), 1)
    assert started.wait(60)
    assert programs.poll() is None
    go.set()
    assert isinstance(next(programs), Program)
    programs.close()


def broken(_: int) -> Program:
    raise RuntimeError("a strategy's bug")


def test_an_error_of_a_strategy_surfaces() -> None:
    programs = Source(st.integers().map(broken), 1)
    with pytest.raises(RuntimeError, match="a strategy's bug"):
        next(programs)


def test_an_error_of_a_strategy_surfaces_when_polling() -> None:
    programs = Source(st.integers().map(broken), 1)
    programs._thread.join(60)
    with pytest.raises(RuntimeError, match="a strategy's bug"):
        programs.poll()


def test_the_thread_does_not_keep_a_closed_source_alive() -> None:
    programs = Source(LENGTHS, 1)
    next(programs)
    thread = programs._thread
    programs.close()
    thread.join(60)
    assert not thread.is_alive()
    gone = weakref.ref(programs)
    del programs
    gc.collect()
    assert gone() is None
