"""The simulated clock: what a second worker brings, without waiting for anything."""

from __future__ import annotations

from concurrent.futures import wait
from typing import Any

import pytest

from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.types import Type

DURATIONS = (4.0, 1.0, 2.0, 8.0)


def program(number: int) -> Program:
    b = Builder()
    return Program(b.block(b.op("sin", b.param(Type("float32", (number + 1,))))))


class Known:
    """A recorder: the program of number n takes ``DURATIONS[n]`` seconds, its module is `modules[n]`."""

    def __init__(self, modules: str) -> None:
        self.modules = modules

    def outcome(self, asked: Program) -> Any:
        from peers.recording import Recorded

        n = asked.block.params[0].type.shape[0] - 1
        return Recorded(str(n), "rejected", "x", self.modules[n], 0.5, DURATIONS[n])

    def seconds_of(self, recorded: Any, *, first: bool) -> float:
        return float(recorded.lower + (recorded.compile if first else 0.0))


@pytest.fixture
def oracle() -> Any:
    from peers.clock import SimulatedOracle

    return lambda workers, modules="abcd": SimulatedOracle(Known(modules), workers)  # type: ignore[arg-type]


def test_one_worker_takes_one_question_after_the_other(oracle: Any) -> None:
    one = oracle(1)
    first, second = one.submit(program(0)), one.submit(program(1))
    assert not first.done()
    first.result()
    assert (one.now, first.done(), second.done()) == (4.5, True, False)
    second.result()
    assert one.now == 6.0


def test_two_workers_work_side_by_side(oracle: Any) -> None:
    two = oracle(2)
    futures = [two.submit(program(n)) for n in range(3)]
    # 0: from 0 to 4.5. 1: from 0 to 1.5. 2 on the same worker: from 1.5 to 4.
    futures[0].result()
    assert (two.now, futures[1].done(), futures[2].done()) == (4.5, True, True)


def test_what_no_worker_has_begun_can_be_withdrawn(oracle: Any) -> None:
    one = oracle(1)
    first, second, third = (one.submit(program(n)) for n in (1, 3, 2))
    assert not first.cancel()
    assert second.cancel()
    third.result()
    assert one.now == 1.5 + 2.5


def test_a_module_is_compiled_once(oracle: Any) -> None:
    one = oracle(1, "aacd")
    one.submit(program(0)).result()
    one.submit(program(1)).result()
    assert one.now == 4.5 + 0.5


def test_waiting_for_all_does_not_wait_for_ever(oracle: Any) -> None:
    one = oracle(1)
    done, not_done = wait([one.submit(program(0)), one.submit(program(1))])
    assert (len(done), len(not_done)) == (2, 0)
