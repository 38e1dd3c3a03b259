"""What a pool keeps of a job in its queue."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from reducer.oracle.conversation import Want
from reducer.oracle.jobs import Job
from reducer.oracle.outcome import Result


class Task:
    """A job in the queue, with how to ask it and where the answer goes."""

    __slots__ = ("finish", "fresh", "future", "job", "timeout", "times", "want")

    def __init__(
        self,
        job: Job,
        finish: Callable[[list[Result]], Any],
        *,
        timeout: float,
        fresh: bool,
        times: int = 1,
        want: Want = Want(),  # noqa: B008  (immutable)
    ) -> None:
        self.job = job
        self.finish = finish
        self.timeout = timeout
        self.fresh = fresh
        self.times = times
        self.want = want
        self.future: Future[Any] = Future()
