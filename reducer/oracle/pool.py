"""The pool: N warm worker processes of one target, a queue before them, an outcome cache before that.

A worker that aborts, hangs or eats memory is an outcome, and is replaced; no job is lost. What the pool promises:

* A job is blamed for its worker's death only after the worker said that it had read it; a death before that
  (while idle) is not the job's, which goes to another worker.
* A worker killed from outside (SIGKILL, SIGTERM, ... not by the pool) has its job tried once more: the compiler
  does not send these, an operator or a short machine does.
* When ``x + 1`` does not compile either, the target is `Incompatible`, and every job's answer says so.
  When no worker can be started at all, every future raises the same `WorkerError` or `TargetError`.
* A crash or a time-out enters the outcome cache only from a job submitted as `fresh`.
* A `fresh` job is answered at a place of its own beside the N others, alone in a new worker; the next new worker is
  started there ahead of the next such job, so that none of the others stops for it.
"""

from __future__ import annotations

import heapq
import itertools
import os
import threading
from concurrent.futures import Future
from types import TracebackType

from reducer.errors import ScanshrinkError, TargetError, WorkerError
from reducer.oracle.cache import OutcomeCache
from reducer.oracle.confirm import Confirmation
from reducer.oracle.conversation import Want, known_answer
from reducer.oracle.counters import Counters, PoolStats
from reducer.oracle.jobs import Job
from reducer.oracle.outcome import Incompatible, Result
from reducer.oracle.slot import Limits, Slot
from reducer.oracle.startup import START_SECONDS
from reducer.oracle.target import Target
from reducer.oracle.task import Task

DEFAULT_TIMEOUT = 60.0
RECYCLE_JOBS = 1000
RECYCLE_MEMORY = 2 << 30
_JOIN_SECONDS = 10.0


def require_compatible(pool: Pool) -> None:
    """Wait for the first worker.

    Raises:
        TargetError: the libtpu does not work with this jaxlib.
        WorkerError: no worker can be started.
    """
    unfit = pool.wait_ready()
    if unfit is not None:
        message = " ".join(unfit.message.split())
        raise TargetError(
            message if len(message) <= 200 else message[:197] + "...",
            hint="try a newer release; `scanshrink doctor` shows what is installed",
        )


def default_memory_limit(workers: int) -> int:
    """Return the resident bytes a worker may use: its share of 70% of the machine, between 2 and 16 GiB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(2 << 30, min(16 << 30, int(total * 0.7) // workers))


class Pool:
    """Worker processes for `target`; use as a context manager. All methods may be called from any thread."""

    def __init__(
        self,
        target: Target,
        workers: int = 1,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        memory_limit: int | None = None,
        recycle_jobs: int = RECYCLE_JOBS,
        recycle_memory: int = RECYCLE_MEMORY,
        cache: OutcomeCache | None = None,
        start_seconds: float = START_SECONDS,
        command: list[str] | None = None,
    ) -> None:
        """`timeout` is seconds for each of a job's two phases; `memory_limit` resident bytes of one worker.

        A worker is replaced after `recycle_jobs` jobs, or when it holds `recycle_memory` bytes after one.
        `command` (for tests) replaces the interpreter and its program.
        """
        assert workers >= 1
        self.target = target
        self.timeout = timeout
        self._workers = workers
        self._cache = cache.view(target) if cache is not None else None
        self._queue: list[tuple[int, int, Task]] = []
        self._fresh_queue: list[tuple[int, int, Task]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._closed = False
        self._unfit: ScanshrinkError | Incompatible | None = None
        self._ready = False
        self._counters = Counters()
        limits = Limits(
            memory=memory_limit or default_memory_limit(workers),
            recycle_jobs=recycle_jobs,
            recycle_memory=recycle_memory,
            start_seconds=start_seconds,
        )
        self._slots = [Slot(target, limits, self._cache, self._counters.note, command) for _ in range(workers)]
        self._fresh_slot = Slot(target, limits, self._cache, self._counters.note_fresh, command)
        self._fresh_thread: threading.Thread | None = None
        self._threads = [
            threading.Thread(target=self._serve, args=(slot,), name=f"oracle-{number}", daemon=True)
            for number, slot in enumerate(self._slots)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def workers(self) -> int:
        """How many jobs are answered at once."""
        return self._workers

    @property
    def queue_depth(self) -> int:
        """Jobs waiting; cancelled ones not counted."""
        with self._changed:
            return sum(not task.future.cancelled() for _, _, task in (*self._queue, *self._fresh_queue))

    @property
    def busy_seconds(self) -> float:
        """Worker time spent lowering and compiling so far, in seconds over all workers."""
        return self.stats().busy_seconds

    def stats(self) -> PoolStats:
        """Return the counters."""
        return self._counters.stats(self.queue_depth)

    def submit(
        self,
        job: Job,
        *,
        timeout: float | None = None,
        priority: int = 0,
        fresh: bool = False,
        want_module: bool = False,
        want_ledger: bool = False,
        want_time: bool = False,
    ) -> Future[Result]:
        """Queue `job`; a job of higher `priority` goes first, equals in order of submission.

        `fresh`: alone in a new worker, whatever the cache says. `want_module`: have the module's text in the
        result; the cache then answers only what comes after lowering. `want_ledger`: have the memory ledger in the
        result of a program that compiles. `want_time`: compile it, however much of it is known. A queued future can
        be cancelled.

        What a program does is never an exception of the future, only `WorkerError` or `TargetError` are: no
        worker can be had, or the pool was closed.
        """
        task = Task(
            job,
            lambda results: results[0],
            timeout=self.timeout if timeout is None else timeout,
            fresh=fresh,
            want=Want(want_module, want_ledger, want_time),
        )
        if self._cache is not None and not fresh and not want_module and not want_time:
            known = known_answer(self._cache, job, task.timeout, want_ledger=want_ledger)
            if known is not None:
                task.future.set_running_or_notify_cancel()
                self._finish(task, [known])
                return task.future
        self._enqueue(task, priority)
        return task.future

    def confirm(
        self,
        job: Job,
        times: int = 2,
        *,
        timeout: float | None = None,
        priority: int = 0,
        want_ledger: bool = False,
    ) -> Future[Confirmation]:
        """Queue `times` repeats of `job`, alone in a new worker (in another new one after each death)."""
        limit = self.timeout if timeout is None else timeout
        task = Task(job, Confirmation.of, timeout=limit, fresh=True, times=times, want=Want(ledger=want_ledger))
        self._enqueue(task, priority)
        return task.future

    def wait_ready(self) -> Incompatible | None:
        """Wait for the first worker. Returns None, or the answer every job will get.

        Raises `WorkerError` or `TargetError` when no worker can be started.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._unfit is not None or self._closed)
            unfit = self._unfit
        if isinstance(unfit, ScanshrinkError):
            raise unfit
        return unfit

    def close(self) -> None:
        """Cancel what is queued, end the workers at once, and fail what was running with a `WorkerError`."""
        with self._changed:
            self._closed = True
            waiting = [task for _, _, task in (*self._queue, *self._fresh_queue)]
            self._queue.clear()
            self._fresh_queue.clear()
            self._changed.notify_all()
        for task in waiting:
            task.future.cancel()
        for slot in (*self._slots, self._fresh_slot):
            slot.stop()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _enqueue(self, task: Task, priority: int) -> None:
        with self._changed:
            if self._closed:
                raise WorkerError("the pool is closed")
            queue = self._fresh_queue if task.fresh else self._queue
            heapq.heappush(queue, (-priority, next(self._order), task))
            if task.fresh and self._fresh_thread is None:
                self._fresh_thread = threading.Thread(target=self._serve_fresh, name="oracle-fresh", daemon=True)
                self._threads.append(self._fresh_thread)
                self._fresh_thread.start()
            # All of them: the one that is woken may wait at the other queue.
            self._changed.notify_all()

    def _take(self, queue: list[tuple[int, int, Task]]) -> Task | None:
        with self._changed:
            while True:
                while queue:
                    task = heapq.heappop(queue)[2]
                    if task.future.set_running_or_notify_cancel():
                        self._counters.taken()
                        return task
                if self._closed:
                    return None
                self._changed.wait()

    def _serve(self, slot: Slot) -> None:
        """Run one slot's thread: start its worker ahead of the first job, then serve until closed."""
        try:
            self._become_ready(slot)
            while (task := self._take(self._queue)) is not None:
                self._answer(slot, task)
        finally:
            slot.close()

    def _serve_fresh(self) -> None:
        """Run the thread of the place for fresh jobs: a new worker is ready before the next one comes."""
        slot = self._fresh_slot
        try:
            while (task := self._take(self._fresh_queue)) is not None:
                self._answer(slot, task)
                slot.close()
                slot.prepare()
        finally:
            slot.close()

    def _become_ready(self, slot: Slot) -> None:
        unfit = slot.prepare()
        with self._changed:
            if unfit is None:
                self._ready = True
            elif self._unfit is None and not self._closed:
                self._unfit = unfit
            self._changed.notify_all()

    def _answer(self, slot: Slot, task: Task) -> None:
        failed: BaseException | None = None
        results: list[Result] = []
        try:
            results += (
                slot.ask(task.job, task.timeout, fresh=task.fresh, first=index == 0, want=task.want)
                for index in range(task.times)
            )
        except ScanshrinkError as error:
            failed = error
        except BaseException as error:
            # A bug of ours: whoever waits is told, and the queue is served further, by another worker.
            failed = error
            slot.close()
        self._counters.left()
        if failed is not None:
            task.future.set_exception(failed)
        else:
            self._finish(task, results)

    def _finish(self, task: Task, results: list[Result]) -> None:
        self._counters.answered(results)
        task.future.set_result(task.finish(results))
