"""An oracle without a compiler: a Python function in its place, for tests that take milliseconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, TypeVar

from reducer.oracle.outcome import Answer, Result

C = TypeVar("C")


class FakeOracle(Generic[C]):
    """Answers each candidate by `answer(candidate)`, an answer or a whole result; counts the calls and the candidates.

    With one worker it is synchronous: `submit` returns a finished future. With more, candidates are answered by
    that many threads, so that the order of answers is not the order of questions. `key` makes a candidate
    hashable (default: itself); `seconds` is what each answer claims to have cost.

    An exception raised by `answer` is the future's exception, as a pool's `WorkerError` would be.
    """

    def __init__(
        self,
        answer: Callable[[C], Answer | Result],
        workers: int = 1,
        *,
        key: Callable[[C], Hashable] | None = None,
        seconds: Callable[[C], float] | None = None,
    ) -> None:
        assert workers >= 1
        self._answer = answer
        self._workers = workers
        self._key = key
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(workers) if workers > 1 else None
        self.calls: list[C] = []
        self.fresh_calls = 0
        self.counts: Counter[Hashable] = Counter()

    @property
    def workers(self) -> int:
        """How many candidates are answered at once."""
        return self._workers

    @property
    def unique_calls(self) -> int:
        """How many different candidates have been asked about: what a user pays for."""
        return len(self.counts)

    def submit(self, candidate: C, *, fresh: bool = False) -> Future[Result]:
        """Answer `candidate` now, or on a thread when there is more than one worker."""
        self.calls.append(candidate)
        self.fresh_calls += fresh
        self.counts[self._key(candidate) if self._key else candidate] += 1
        if self._threads is not None:
            return self._threads.submit(self._result, candidate)
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(self._result(candidate))
        except Exception as error:
            future.set_exception(error)
        return future

    def _result(self, candidate: C) -> Result:
        seconds = self._seconds(candidate) if self._seconds else 0.0
        answer = self._answer(candidate)
        return answer if isinstance(answer, Result) else Result(answer, seconds_compile=seconds, worker_pid=1)

    def close(self) -> None:
        """End the threads, if there are any."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def __enter__(self) -> FakeOracle[C]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
