"""A failure as a corpus case: the record, and the files beside it. Used by hunts and reductions."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping
from typing import Any, Literal

from reducer.corpus import Case, CaseTarget, Found, OutcomeRecord, Start, TierMinimum, slug_for
from reducer.corpus.case import TIERS, Tier, release_name, without_paths
from reducer.corpus.runner import record_of
from reducer.ir.equations import Program
from reducer.ir.order import size
from reducer.ir.tiers import ProgramTier
from reducer.ledger import Ledger
from reducer.lowering.script import Recorded, fragments_of, repro_script
from reducer.oracle.environment import relevant_environment
from reducer.oracle.outcome import Result
from reducer.oracle.signature import Signature
from reducer.oracle.target import Target
from reducer.oracle.verdict import verdict

_FAILS = {
    "rejected": "The XLA:TPU compiler rejects this program",
    "crashed": "The XLA:TPU compiler dies of this program",
    "timed-out": "The XLA:TPU compiler does not come to an end on this program",
    "compiled": "The XLA:TPU compiler compiles this program, but what should lie in host memory stays on the device",
}


def environment_of(target: Target) -> dict[str, str]:
    """What a maintainer asks for: versions, and the variables that change what the compiler does, without folders."""
    versions = {name: importlib.metadata.version(name) for name in ("jax", "jaxlib")}
    return {
        "python": platform.python_version(),
        **versions,
        "libtpu": f"{release_name(target.libtpu)} (sha256 {target.sha256})",
        "platform": platform.platform(),
        **{name: without_paths(value) for name, value in relevant_environment().items()},
    }


def recorded(record: OutcomeRecord, found: Signature, ledger: Ledger | None = None) -> Recorded:
    """What a script compares with: the record, in literal pieces of its message.

    Of a lost offload (`ledger`) it is the shapes that should lie in host memory, and that loops carry on the device.
    """
    return Recorded(
        outcome=_scripted(record),
        status=found.code if record.outcome in ("rejected", "crashed") else "",
        phase=found.phase if f"[{found.phase}]" in record.message else "",
        fragments=fragments_of(found.invariant, record.message) if record.outcome != "compiled" else (),
        lost=_shapes(ledger, carried=False),
        carried=_shapes(ledger, carried=True),
        libtpu=record.libtpu,
        sha256=record.sha256,
    )


def _shapes(ledger: Ledger | None, *, carried: bool) -> tuple[str, ...]:
    lost = ledger.lost if ledger is not None else ()
    return tuple(sorted({shape for line in lost if line.carried is carried for shape in line.found}))


def _scripted(record: OutcomeRecord) -> Literal["compiled", "rejected", "crashed", "timed-out"]:
    assert record.outcome in ("compiled", "rejected", "crashed", "timed-out"), "a case holds a failure"
    return record.outcome


def words_of(record: OutcomeRecord, found: Signature, target: Target) -> dict[str, Any]:
    """What a script says first, for people."""
    return {
        "signature": f"Signature: {found.text}",
        "description": f"{_FAILS[record.outcome]} (found on libtpu {record.libtpu}, {target.topology}).",
    }


def case_of_minima(
    minima: Mapping[Tier, TierMinimum],
    found: Signature,
    result: Result,
    target: Target,
    *,
    how: Found,
    start: Start | None = None,
    finds: int = 1,
    notes: tuple[str, ...] = (),
) -> Case:
    """The case of minima that fail with `found` on `target`; `result` is the answer about the one of the highest tier.

    Args:
        minima: by tier, with the names of their files.
        found: the signature.
        result: as said.
        target: what they were compiled for.
        how: how it was found.
        start: the find before reduction.
        finds: how often the failure was met.
        notes: for people.
    """
    kind = verdict(result).kind
    assert kind is not None, "a case holds a failure"
    highest = next(tier for tier in TIERS if tier in minima)
    return Case(
        slug=slug_for(found.slug, kind=kind, signature=found.text, tier=highest),
        kind=kind,
        signature=found.text,
        family=found.family,
        target=CaseTarget.of(target),
        tiers={tier: minima[tier] for tier in TIERS if tier in minima},
        outcomes=(record_of(target, result),),
        found=how,
        finds=finds,
        environment=environment_of(target),
        notes=notes,
        start=start,
    )


def case_of(
    program: Program,
    tier: ProgramTier,
    found: Signature,
    result: Result,
    target: Target,
    *,
    how: Found,
    start: Program | None = None,
    finds: int = 1,
) -> tuple[Case, dict[str, bytes | str]]:
    """The case of a program that fails with `found` on `target`, and its files by name.

    Args:
        program: the minimum so far, of `tier`.
        tier: the level it is written at.
        found: its signature.
        result: the oracle's answer about it, with the module's text if it can be had.
        target: what it was compiled for.
        how: how it was found.
        start: the find before reduction.
        finds: how often the failure was met.
    """
    record = record_of(target, result)
    script = repro_script(
        program,
        recorded(record, found, result.ledger),
        topology=target.topology,
        options=target.options,
        **words_of(record, found, target),
    )
    files: dict[str, bytes | str] = {"repro.py": script}
    module = "program.mlir" if result.module else ""  # a worker that died of it may have taken its text along
    if module:
        files[module] = result.module
    minimum = TierMinimum(size=size(program), program=program, script="repro.py", module=module)
    before = Start(tier=tier, size=size(start), program=start) if start is not None else None
    case = case_of_minima({tier: minimum}, found, result, target, how=how, start=before, finds=finds)
    return case, files


__all__ = ["case_of", "case_of_minima", "environment_of", "recorded", "words_of"]
