"""Runs a case on a libtpu: the case's own topology and options, the release one asks for."""

from __future__ import annotations

import importlib.metadata
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Any

import msgspec

from reducer.corpus.case import MESSAGE_CAP, Case, OutcomeRecord
from reducer.corpus.store import Corpus
from reducer.errors import InputError
from reducer.oracle.beside import BesideOracle, TimedOracle, comparison_of
from reducer.oracle.jobs import Job, ModuleJob
from reducer.oracle.outcome import Result, Skipped, clip
from reducer.oracle.pool import Pool
from reducer.oracle.signature import FLAKY, Signature
from reducer.oracle.target import Target, resolve_target
from reducer.oracle.verdict import said_of, verdict


#: Runs of a case whose failure comes and goes.
FLAKY_RUNS = 8


class Runner:
    """Compiles the minimum of a case and says what happened; use as a context manager.

    `libtpu` is what `resolve_target` takes. A pool of `workers` processes is kept for each topology and set of options
    that the cases name. Calls may come from several threads.
    """

    def __init__(self, corpus: Corpus, libtpu: str | None = None, *, workers: int = 1, **pool_options: Any) -> None:
        self._corpus = corpus
        self._libtpu = libtpu
        self._workers = workers
        self._pool_options = pool_options
        self._pools: dict[tuple[object, ...], Pool] = {}
        self._lock = threading.Lock()

    def __call__(self, case: Case) -> OutcomeRecord:
        """What happens to the case's minimum.

        Raises:
            InputError: its module cannot be read.
            TargetError, WorkerError: the compiler cannot be had.
        """
        pool = self._pool(case)
        if case.kind == "flaky":
            return self._repeated(case, pool)
        result = ask_case(pool, case, case_job(self._corpus, case)).result()
        if isinstance(result.answer, Skipped):
            raise InputError(f"{case.slug}: cannot be compared: {result.answer.reason}")
        return record_of(pool.target, result)

    def _repeated(self, case: Case, pool: Pool) -> OutcomeRecord:
        """Of a failure that comes and goes one run says nothing: flaky if any run differs from another."""
        repeats = pool.confirm(case_job(self._corpus, case), FLAKY_RUNS, want_ledger=True).result()
        failing = [result for result in repeats.results if verdict(result).failure is not None]
        record = record_of(pool.target, failing[0] if failing else repeats.results[0])
        if repeats.stable or not failing:
            return record
        found = Signature(FLAKY, invariant=record.signature)
        return msgspec.structs.replace(record, signature=found.text, family=found.family, rates=repeats.rate)

    def _pool(self, case: Case) -> Pool:
        key = (case.target.topology, *sorted(case.target.options.items()))
        with self._lock:
            if key not in self._pools:
                target = resolve_target(self._libtpu, case.target.topology, case.target.options)
                self._pools[key] = Pool(target, self._workers, **self._pool_options)
            return self._pools[key]

    def close(self) -> None:
        """End the workers."""
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()

    def __enter__(self) -> Runner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def ask_case(pool: Pool, case: Case, job: Job) -> Future[Result]:
    """Queue a case's minimum, `job`, the way its kind of failure is judged: compared, timed, or by itself."""
    program, expected = case.minimum.program, case.expected()
    comparison = comparison_of(case.kind, case.signature)
    if comparison is not None and program is not None:
        return BesideOracle(pool, comparison).submit(program)
    if case.kind == "slow-compile" and program is not None and expected is not None and expected.slow_limit:
        return TimedOracle(pool, expected.slow_limit).submit(program)
    return pool.submit(job, want_ledger=True)


def case_job(corpus: Corpus, case: Case) -> Job:
    """The job that compiles a case's minimum.

    Raises:
        InputError: its module is missing or cannot be read.
    """
    from reducer.oracle.programs import program_job

    minimum = case.minimum
    if minimum.program is not None:
        return program_job(minimum.program)
    module = corpus.read(case.slug, minimum.module)
    if not module.strip():
        raise InputError(f"{corpus.path(case.slug) / minimum.module}: is empty")
    return ModuleJob.of(module)


def record_of(target: Target, result: Result) -> OutcomeRecord:
    """What a case keeps of a result."""
    found = verdict(result).signature
    record = OutcomeRecord.of(
        target,
        result.outcome,
        signature=found.text if found is not None else "",
        family=found.family if found is not None else "",
        jaxlib=importlib.metadata.version("jaxlib"),
    )
    if not record.message:
        # A lost offload has no message of the compiler's: the ledger says what was lost.
        record = msgspec.structs.replace(record, message=clip(said_of(result), MESSAGE_CAP))
    if result.slow:
        return msgspec.structs.replace(record, slow_limit=result.slow_limit)
    ledger = result.ledger
    if verdict(result).kind != "lost-offload" or ledger is None:
        return record
    lost, carried = (
        tuple(sorted({shape for line in ledger.lost if line.carried is kind for shape in line.found}))
        for kind in (False, True)
    )
    return msgspec.structs.replace(record, lost=lost, carried=carried)
