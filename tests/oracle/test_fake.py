"""The oracle without a compiler."""

import threading

import pytest

from reducer.errors import WorkerError
from reducer.oracle.base import Oracle
from reducer.oracle.fake import FakeOracle
from reducer.oracle.outcome import Compiled, Memory, Rejected, Result


def even(number: int) -> Compiled | Rejected:
    return Compiled(Memory()) if number % 2 == 0 else Rejected("odd")


def ask(oracle: Oracle[int], number: int) -> Result:
    return oracle.submit(number).result()


def test_synchronous():
    oracle = FakeOracle(even)
    assert oracle.workers == 1
    assert ask(oracle, 3).answer == Rejected("odd")
    assert ask(oracle, 3).answer == Rejected("odd")
    assert isinstance(oracle.submit(4, fresh=True).result().answer, Compiled)
    assert (oracle.calls, oracle.unique_calls, oracle.fresh_calls) == ([3, 3, 4], 2, 1)


def test_claimed_seconds_and_keys():
    oracle = FakeOracle(lambda xs: even(len(xs)), key=tuple, seconds=len)
    assert oracle.submit([1, 2, 3]).result().seconds_compile == 3
    assert oracle.unique_calls == 1


def test_an_error_is_the_futures():
    def broken(_: int) -> Rejected:
        raise WorkerError("no worker")

    with pytest.raises(WorkerError, match="no worker"):
        FakeOracle(broken).submit(1).result()


def test_threads_answer_out_of_order():
    gate = threading.Event()

    def answer(number: int) -> Rejected:
        if number == 0:
            gate.wait(30)
        return Rejected(str(number))

    with FakeOracle(answer, workers=2) as oracle:
        first, second = oracle.submit(0), oracle.submit(1)
        assert second.result().answer == Rejected("1")
        assert not first.done()
        gate.set()
        assert first.result().answer == Rejected("0")
