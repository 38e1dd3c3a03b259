"""`check --pairs`: a program beside the twins that mean the same, and beside itself without the offload."""

from __future__ import annotations

from typing import Any

import msgspec

from reducer.errors import ProgramError
from reducer.ir.equations import Program
from reducer.lowering.equivalence import largest_difference
from reducer.oracle.outcome import Compiled, Result, word
from reducer.oracle.pool import Pool
from reducer.oracle.programs import program_job
from reducer.oracle.verdict import Verdict, verdict
from reducer.twins import saved_on_device, scaled_up, twins


class Pair(msgspec.Struct, frozen=True):
    """A twin and what became of it.

    `agrees`: None where one of the two says nothing about the compiler. Of twins that disagree, `largest_difference` is
    that of their results on the CPU, on the same inputs; None with the reason in `not_run`.
    """

    name: str
    outcome: str
    verdict: str
    signature: str | None
    agrees: bool | None
    largest_difference: float | None = None
    not_run: str = ""

    @property
    def said(self) -> str:
        """How it compares, in a few words."""
        if self.agrees is not False:
            return "not comparable" if self.agrees is None else "agrees"
        if self.largest_difference is None:
            return f"DIFFERS; {self.not_run}"
        return f"DIFFERS; on the CPU both compute the same to within {self.largest_difference:.3g}"


class Cost(msgspec.Struct, frozen=True):
    """Temporary device memory in bytes at a size that costs HBM: with the offload, and with the same values saved.

    `reason` says why there are no figures.
    """

    offloaded: int | None = None
    saved: int | None = None
    reason: str = ""

    @property
    def costs(self) -> bool:
        """Whether the offload needs more device memory than no offload."""
        return self.offloaded is not None and self.saved is not None and self.offloaded > self.saved


class Pairs(msgspec.Struct, frozen=True):
    """Everything `check --pairs` adds to a result."""

    pairs: tuple[Pair, ...] = ()
    cost: Cost = Cost()

    def word(self, own: Verdict) -> str:
        """The verdict, these taken into account: a failure stays what it is."""
        if own.word not in ("ok", "nothing-to-offload"):
            return own.word
        if self.cost.costs:
            return "offload-costs"
        return "pair-differs" if any(pair.agrees is False for pair in self.pairs) else own.word

    def as_json(self) -> dict[str, Any]:
        """As machines read it."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data

    def lines(self) -> list[str]:
        """For people, one line each."""
        lines = [f"  pair, {pair.name}: {pair.signature or pair.verdict} ({pair.said})" for pair in self.pairs]
        if self.cost.reason:
            return [*lines, f"  cost of the offload: not measured: {self.cost.reason}"]
        judged = "the offload COSTS device memory" if self.cost.costs else "the offload saves device memory"
        if self.cost.offloaded == self.cost.saved:
            judged = "no difference"
        figures = f"{self.cost.offloaded} B offloaded, {self.cost.saved} B saved on the device"
        return [*lines, f"  device temp, scaled up: {figures}: {judged}"]


def pairs_of(program: Program, result: Result, pool: Pool) -> Pairs:
    """Compile the twins of a program, and compare with its own result.

    Raises:
        WorkerError, TargetError: the compiler cannot be had any more.
    """
    derived = list(twins(program))
    futures = [pool.submit(program_job(twin.program), want_ledger=True) for twin in derived]
    found = tuple(_pair(twin.name, result, future.result()) for twin, future in zip(derived, futures, strict=True))
    compared = (
        _compared(pair, program, twin.program) if pair.agrees is False else pair
        for pair, twin in zip(found, derived, strict=True)
    )
    return Pairs(tuple(compared), _cost(program, pool))


def _compared(pair: Pair, program: Program, twin: Program) -> Pair:
    """That two programs mean the same is not taken from their derivation: both are run."""
    try:
        return msgspec.structs.replace(pair, largest_difference=largest_difference(program, twin))
    except ProgramError as error:
        return msgspec.structs.replace(pair, not_run=error.message)


def _pair(name: str, own: Result, other: Result) -> Pair:
    mine, judged = verdict(own), verdict(other)
    comparable = all(one.word in ("ok", "failed", "lost-offload") for one in (mine, judged))
    return Pair(
        name=name,
        outcome=word(other.answer),
        verdict=judged.word,
        signature=judged.signature.text if judged.signature is not None else None,
        agrees=mine.word == judged.word if comparable else None,
    )


def _cost(program: Program, pool: Pool) -> Cost:
    try:
        large = scaled_up(program)
        both = large, saved_on_device(large)
    except ProgramError as error:
        return Cost(reason=error.message)
    results = [future.result() for future in [pool.submit(program_job(one)) for one in both]]
    offloaded, saved = (r.answer.memory.temp if isinstance(r.answer, Compiled) else None for r in results)
    if offloaded is None or saved is None:
        ways = ("offloaded", "saved on the device")
        said = [f"{way} it is {word(result.answer)}" for way, result in zip(ways, results, strict=True)]
        return Cost(reason=f"scaled up, {' and '.join(said)}")
    return Cost(offloaded, saved)
