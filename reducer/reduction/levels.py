"""What differs between tiers: how a candidate is named, measured, compiled, written out and shrunk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from reducer.corpus.case import Tier, TierMinimum
from reducer.ir.codec import encode, identity
from reducer.ir.equations import Program
from reducer.ir.order import order_key, size
from reducer.ir.text import to_text
from reducer.ir.tiers import ProgramTier
from reducer.lowering.script import Recorded, repro_script
from reducer.oracle.base import Oracle
from reducer.oracle.jobs import Job
from reducer.oracle.outcome import Result
from reducer.oracle.programs import program_job
from reducer.oracle.target import Target
from reducer.reduction.keep import keeps
from reducer.shrink import Event, Shrunk, shrink_program

C = TypeVar("C")


class Level(Protocol[C]):
    """How candidates of one tier are handled. `unit` is what their size counts."""

    name: Tier
    unit: str

    def key(self, candidate: C) -> str:
        """Its identity."""
        ...

    def size(self, candidate: C) -> int:
        """Its size, in `unit`."""
        ...

    def order(self, candidate: C) -> Sequence[Any]:
        """Where it stands in the total order, without what only breaks ties."""
        ...

    def text(self, candidate: C) -> str:
        """It, readable."""
        ...

    def job(self, candidate: C, *, require_host_placement: bool = False) -> Job:
        """The job that compiles it. Raises `ProgramError` for what cannot be written."""
        ...

    def script(self, candidate: C, found: Recorded, target: Target, **words: Any) -> str:
        """A script that compiles it with JAX and libtpu alone, and compares with `found`."""
        ...

    def judged(self, candidate: C, found: Recorded, target: Target) -> tuple[str, str]:
        """Name and text of the file that an interestingness script is given."""
        ...

    def keeps(self, patterns: Sequence[str], start: C) -> Callable[[C], bool]:
        """Whether a candidate has what `--keep` names. Raises `InputError` for a pattern that names nothing."""
        ...

    def file(self, candidate: C) -> tuple[str, bytes]:
        """Name and bytes of a file it can be read back from."""
        ...

    def lowered(self, candidate: C, final: Result) -> str:
        """The text of the module that was compiled, given the answer about it; empty if it is not known."""
        ...

    def minimum(self, candidate: C, *, script: str, module: str) -> TierMinimum:
        """What a case keeps of it; `script` and `module` name its files."""
        ...

    def shrink(
        self,
        start: C,
        oracle: Oracle[C],
        wanted: Callable[[Result], bool],
        *,
        placed: bool,
        budget: int | None,
        label: Callable[[Result], str | None],
        events: Callable[[Event[C]], None],
    ) -> Shrunk[C]:
        """Make it as small as it gets."""
        ...


class ProgramLevel(msgspec.Struct, frozen=True):
    """Programs of the IR, at one of their two tiers."""

    name: ProgramTier = "program"
    unit: str = "equations"

    def key(self, candidate: Program) -> str:
        """See `Level`; likewise what follows."""
        return identity(candidate)

    def size(self, candidate: Program) -> int:  # noqa: D102
        return size(candidate)

    def order(self, candidate: Program) -> Sequence[Any]:  # noqa: D102
        return order_key(candidate)[:-1]

    def text(self, candidate: Program) -> str:  # noqa: D102
        return to_text(candidate)

    def job(self, candidate: Program, *, require_host_placement: bool = False) -> Job:  # noqa: D102
        return program_job(candidate, require_host_placement=require_host_placement)

    def script(self, candidate: Program, found: Recorded, target: Target, **words: Any) -> str:  # noqa: D102
        options: Mapping[str, Any] = dict(target.options)
        return repro_script(candidate, found, topology=target.topology, options=options, **words)

    def judged(self, candidate: Program, found: Recorded, target: Target) -> tuple[str, str]:  # noqa: D102
        return "repro.py", self.script(candidate, found, target)

    def keeps(self, patterns: Sequence[str], start: Program) -> Callable[[Program], bool]:  # noqa: D102
        return keeps(patterns, start)

    def file(self, candidate: Program) -> tuple[str, bytes]:  # noqa: D102
        return "program.json", encode(candidate)

    def lowered(self, candidate: Program, final: Result) -> str:  # noqa: ARG002, D102
        return final.module

    def minimum(self, candidate: Program, *, script: str, module: str) -> TierMinimum:  # noqa: D102
        return TierMinimum(size=size(candidate), program=candidate, script=script, module=module)

    def shrink(  # noqa: D102
        self,
        start: Program,
        oracle: Oracle[Program],
        wanted: Callable[[Result], bool],
        *,
        placed: bool,
        budget: int | None,
        label: Callable[[Result], str | None],
        events: Callable[[Event[Program]], None],
    ) -> Shrunk[Program]:
        return shrink_program(
            start,
            oracle,
            wanted,
            level=self.name,
            placed=placed,
            budget=budget,
            label=label,
            events=events,
        )
