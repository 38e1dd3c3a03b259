"""Programs of the IR before the compiler: the oracle that hunts, reductions and checks ask."""

from __future__ import annotations

import functools
import hashlib
from concurrent.futures import Future
from pathlib import Path

import reducer.ir
import reducer.ledger
import reducer.lowering
from reducer.ir.codec import identity
from reducer.ir.equations import Program
from reducer.lowering.emit import emit
from reducer.oracle.jobs import ProgramJob
from reducer.oracle.outcome import Result
from reducer.oracle.pool import Pool


@functools.cache
def lowering_version() -> str:
    """A hash of the code that turns a program into text and reads what it owes: the cache forgets other versions."""
    digest = hashlib.sha256()
    for package in (reducer.ir, reducer.lowering, reducer.ledger):
        for path in sorted(Path(str(package.__path__[0])).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def program_job(program: Program, *, require_host_placement: bool = False) -> ProgramJob:
    """The job that lowers and compiles `program`; its text checks recorded types while it is traced.

    Raises:
        ProgramError: the program holds a primitive that cannot be written as Python.
    """
    return ProgramJob(
        source=emit(program, typed=True),
        key=f"{identity(program)}:{lowering_version()}",
        require_host_placement=require_host_placement,
    )


class ProgramOracle:
    """`Oracle[Program]` over a pool. `priority` orders its jobs among others of the pool, higher first.

    `want_ledger`: results of compiled programs hold the memory ledger.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        priority: int = 0,
        require_host_placement: bool = False,
        timeout: float | None = None,
        want_ledger: bool = False,
    ) -> None:
        self._pool = pool
        self._want_ledger = want_ledger
        self._priority = priority
        self._require_host_placement = require_host_placement
        self._timeout = timeout

    @property
    def workers(self) -> int:
        """How many candidates are answered at once."""
        return self._pool.workers

    def submit(self, candidate: Program, *, fresh: bool = False) -> Future[Result]:
        """Queue a program; see `Oracle.submit`."""
        job = program_job(candidate, require_host_placement=self._require_host_placement)
        return self._pool.submit(
            job, fresh=fresh, priority=self._priority, timeout=self._timeout, want_ledger=self._want_ledger
        )
