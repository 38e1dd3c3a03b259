"""StableHLO modules as candidates of a reduction: see `levels.Level`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from reducer.corpus.case import TierMinimum
from reducer.lowering.script import Recorded, module_script
from reducer.oracle.base import Oracle
from reducer.oracle.jobs import Job
from reducer.oracle.modules import count, module_job
from reducer.oracle.outcome import Result
from reducer.oracle.target import Target
from reducer.reduction.keep import keeps_in_module
from reducer.shrink import Event, Shrunk
from reducer.shrink.modules import shrink_module
from reducer.stablehlo import Module, to_text
from reducer.stablehlo.order import identity, order_key, size


class ModuleLevel(msgspec.Struct, frozen=True):
    """Modules."""

    name: Literal["stablehlo"] = "stablehlo"
    unit: str = "operations"

    def key(self, candidate: Module) -> str:
        """See `Level`; likewise what follows."""
        return identity(candidate)

    def size(self, candidate: Module) -> int:  # noqa: D102
        return size(candidate)

    def order(self, candidate: Module) -> Sequence[Any]:  # noqa: D102
        return order_key(candidate)[:-1]

    def text(self, candidate: Module) -> str:  # noqa: D102
        return to_text(candidate).rstrip()

    def job(self, candidate: Module, *, require_host_placement: bool = False) -> Job:  # noqa: D102
        return module_job(candidate, require_host_placement=require_host_placement)

    def script(self, candidate: Module, found: Recorded, target: Target, **words: Any) -> str:  # noqa: D102
        return module_script(
            to_text(candidate),
            found,
            topology=target.topology,
            options=dict(target.options),
            partitions=count(candidate, "mhlo.num_partitions"),
            replicas=count(candidate, "mhlo.num_replicas"),
            **words,
        )

    def judged(self, candidate: Module, found: Recorded, target: Target) -> tuple[str, str]:  # noqa: ARG002, D102
        return "module.mlir", to_text(candidate)

    def keeps(self, patterns: Sequence[str], start: Module) -> Callable[[Module], bool]:  # noqa: D102
        return keeps_in_module(patterns, start)

    def file(self, candidate: Module) -> tuple[str, bytes]:  # noqa: D102
        return "module.mlir", to_text(candidate).encode("utf-8", "backslashreplace")

    def lowered(self, candidate: Module, final: Result) -> str:  # noqa: ARG002, D102
        return to_text(candidate)

    def minimum(self, candidate: Module, *, script: str, module: str) -> TierMinimum:  # noqa: D102
        key = tuple(part for part in order_key(candidate) if isinstance(part, int))
        return TierMinimum(
            size=size(candidate),
            script=script,
            module=module,
            order_key=key,
            partitions=count(candidate, "mhlo.num_partitions"),
        )

    def shrink(  # noqa: D102
        self,
        start: Module,
        oracle: Oracle[Module],
        wanted: Callable[[Result], bool],
        *,
        placed: bool,  # noqa: ARG002 - a module says so in its text, and costs no lowering
        budget: int | None,
        label: Callable[[Result], str | None],
        events: Callable[[Event[Module]], None],
    ) -> Shrunk[Module]:
        return shrink_module(start, oracle, wanted, budget=budget, label=label, events=events)
