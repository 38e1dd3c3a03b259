"""StableHLO modules before the compiler: the oracle of the lowest tier."""

from __future__ import annotations

import re
from concurrent.futures import Future

from reducer.oracle.jobs import ModuleJob
from reducer.oracle.outcome import Result
from reducer.oracle.pool import Pool
from reducer.stablehlo.model import Module, attribute
from reducer.stablehlo.text import to_text


def module_job(module: Module, *, require_host_placement: bool = False) -> ModuleJob:
    """The job that compiles `module` for as many devices as its attributes say."""
    return ModuleJob(
        module=to_text(module).encode("utf-8", "surrogatepass"),
        partitions=count(module, "mhlo.num_partitions"),
        replicas=count(module, "mhlo.num_replicas"),
        require_host_placement=require_host_placement,
    )


def count(module: Module, name: str) -> int:
    """The number in an attribute of the module, 1 where it does not say."""
    match = re.fullmatch(r"(\d{1,9}) : i\d+", attribute(module.attributes, name) or "")
    return max(int(match[1]), 1) if match else 1


class ModuleOracle:
    """`Oracle[Module]` over a pool. `priority` orders its jobs among others of the pool, higher first."""

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
        self._priority = priority
        self._require_host_placement = require_host_placement
        self._timeout = timeout
        self._want_ledger = want_ledger

    @property
    def workers(self) -> int:
        """How many candidates are answered at once."""
        return self._pool.workers

    def submit(self, candidate: Module, *, fresh: bool = False) -> Future[Result]:
        """Queue a module; see `Oracle.submit`."""
        job = module_job(candidate, require_host_placement=self._require_host_placement)
        return self._pool.submit(
            job, fresh=fresh, priority=self._priority, timeout=self._timeout, want_ledger=self._want_ledger
        )
