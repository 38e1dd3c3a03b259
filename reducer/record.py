"""A failure as a corpus case: the record, and the files beside it. Used by hunts and reductions."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import math
import platform
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from reducer.corpus import Case, CaseTarget, Found, OutcomeRecord, Start, TierMinimum, slug_for
from reducer.corpus.case import TIERS, Tier, release_name, without_paths
from reducer.corpus.runner import record_of
from reducer.ir.equations import Program
from reducer.ir.order import size
from reducer.ir.tiers import ProgramTier
from reducer.lowering.script import Recorded, fragments_of, module_script, repro_script
from reducer.oracle.beside import comparison_of
from reducer.oracle.environment import relevant_environment
from reducer.oracle.jobs import module_partitions
from reducer.oracle.outcome import Answer, Crashed, Rejected, Result, TimedOut
from reducer.oracle.signature import FLAKY, Signature, signature
from reducer.oracle.target import Target
from reducer.oracle.verdict import Kind, verdict

_FAILS = {
    "rejected": "The XLA:TPU compiler rejects this program",
    "crashed": "The XLA:TPU compiler dies of this program",
    "timed-out": "The XLA:TPU compiler does not come to an end on this program",
    "compiled": "The XLA:TPU compiler compiles this program, but what should lie in host memory stays on the device",
}


_OURS = {
    "pair-differs": "The XLA:TPU compiler compiles this program, and fails on another one that means the same",
    "offload-costs": "With its offload this program, scaled up, needs more device memory than without it",
    "slow-compile": "The XLA:TPU compiler takes far longer for this program than its size explains",
}
#: Runs of the script of a flaky failure, until one fails.
_FLAKY_RUNS = 10


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


def recorded(record: OutcomeRecord, found: Signature) -> Recorded:
    """What a script compares with: the record, in literal pieces of its message.

    Of a lost offload it is the shapes that should lie in host memory, and that loops carry on the device.
    """
    return Recorded(
        outcome=_scripted(record),
        status=found.code if record.outcome in ("rejected", "crashed") else "",
        phase=found.phase if f"[{found.phase}]" in record.message else "",
        fragments=fragments_of(found.invariant, record.message) if record.outcome != "compiled" else (),
        lost=record.lost,
        carried=record.carried,
        libtpu=record.libtpu,
        sha256=record.sha256,
    )


def _scripted(record: OutcomeRecord) -> Literal["compiled", "rejected", "crashed", "timed-out"]:
    assert record.outcome in ("compiled", "rejected", "crashed", "timed-out"), "a case holds a failure"
    return record.outcome


def compared(own: Recorded, result: Result, target: Target) -> Recorded:
    """What a script compares with where the failure is not one of the program alone."""
    if result.slow:
        return dataclasses.replace(own, slower_than=result.slow_limit)
    beside = result.beside
    if beside is None or not beside.differs:
        return own
    if beside.what == "offload-costs":
        return dataclasses.replace(own, costs=True)
    (twin,) = beside.results
    failing = verdict(twin).failure
    assert failing is not None, "the twin fails"
    return dataclasses.replace(own, beside=recorded(record_of(target, twin), failing))


def beside_of(program: Program, found: Signature) -> tuple[Program, ...]:
    """The programs that a script compiles beside the program itself."""
    comparison = comparison_of(found.code, found.text)
    return comparison.others(program) if comparison is not None else ()


def script_of(case: Case, module: str = "") -> str | None:
    """The script of a case's minimum that knows what to expect of every libtpu on record.

    Args:
        case: the case.
        module: the text of its minimum, where that is a module.

    Returns:
        None where what is on record does not say enough: of its own target, or what a lost offload lost.
    """
    own = case.expected()
    first = _known(own) if own is not None else None
    if own is None or first is None:
        return None
    here = [record for record in case.outcomes if record is not own and record.topology == own.topology]
    others = [known for record in here if (known := _known(record)) is not None]
    found = signature_of(own)
    words = words_of(own, found) if found is not None else {}
    options: Mapping[str, Any] = {"options": case.target.options, "others": others, "topology": own.topology}
    minimum = case.minimum
    if minimum.program is not None:
        return repro_script(minimum.program, first, **options, **words)
    replicas = module_partitions(module)[1]
    return module_script(module, first, partitions=minimum.partitions, replicas=replicas, **options, **words)


def _known(record: OutcomeRecord) -> Recorded | None:
    """What a script compares with, as far as the record alone tells."""
    if record.outcome == "compiled" and not record.signature:
        return Recorded("compiled", libtpu=record.libtpu, sha256=record.sha256)
    found = signature_of(record)
    if found is None or (record.outcome == "compiled" and not (record.lost or record.carried)):
        return None
    return recorded(record, found)


def signature_of(record: OutcomeRecord) -> Signature | None:
    """The signature of a recorded failure, read from its message again; None if it does not give the recorded one."""
    found: Signature | None
    match record.outcome:
        case "rejected":
            found = signature(Rejected(record.message))
        case "crashed":
            name, _, message = record.message.partition(": ")
            found = signature(Crashed(name, message))
        case "timed-out":
            found = signature(TimedOut(0.0))
        case "compiled":
            code, _, invariant = record.signature.partition(" ")
            found = Signature(code, invariant=invariant)
        case _:
            found = None
    return found if found is not None and found.text == record.signature else None


#: Seconds that a script's own process takes beside compiling: for importing JAX, and lowering.
_BESIDE_COMPILING = 10


def words_of(record: OutcomeRecord, found: Signature, answer: Answer | None = None) -> dict[str, Any]:
    """What a script says first, for people; and after which time it gives up, where that is the failure (`answer`)."""
    fails = _OURS.get(found.code, _FAILS[record.outcome])
    patience = {"timeout": math.ceil(answer.limit) + _BESIDE_COMPILING} if isinstance(answer, TimedOut) else {}
    return patience | {
        "signature": f"Signature: {found.text}",
        "description": f"{fails} (found on libtpu {record.libtpu}, {record.topology}).",
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
    kind: Kind | None = None,
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
        kind: what sort of failure it is, if the result alone does not tell.
    """
    kind = kind or verdict(result).kind
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
        compared(recorded(record, found), result, target),
        topology=target.topology,
        options=target.options,
        beside=beside_of(program, found),
        **words_of(record, found, result.answer),
    )
    files: dict[str, bytes | str] = {"repro.py": script}
    module = "program.mlir" if result.module else ""  # a worker that died of it may have taken its text along
    if module:
        files[module] = result.module
    minimum = TierMinimum(size=size(program), program=program, script="repro.py", module=module)
    before = Start(tier=tier, size=size(start), program=start) if start is not None else None
    case = case_of_minima({tier: minimum}, found, result, target, how=how, start=before, finds=finds)
    return case, files


def flaky_case_of(
    program: Program,
    tier: ProgramTier,
    result: Result,
    counts: Mapping[str, int],
    target: Target,
    *,
    how: Found,
    finds: int = 1,
) -> tuple[Case, dict[str, bytes | str]]:
    """As `case_of`, of a failure that comes and goes: `result` is one that fails, `counts` how often it ended how."""
    failing = verdict(result).failure
    assert failing is not None, "one of the runs failed"
    found = Signature(FLAKY, invariant=failing.text)
    runs = sum(counts.values())
    record = msgspec.structs.replace(
        record_of(target, result),
        signature=found.text,
        family=found.family,
        rates={name: round(count / runs, 3) for name, count in sorted(counts.items())},
    )
    script = repro_script(
        program,
        dataclasses.replace(recorded(record, failing), runs=_FLAKY_RUNS),
        topology=target.topology,
        options=target.options,
        signature=f"Signature: {found.text}",
        description=f"{_FAILS[record.outcome]} in some runs and not in others (found on libtpu {record.libtpu}).",
    )
    minimum = TierMinimum(size=size(program), program=program, script="repro.py")
    case = case_of_minima({tier: minimum}, found, result, target, how=how, finds=finds, kind="flaky")
    return msgspec.structs.replace(case, outcomes=(record,)), {"repro.py": script}


__all__ = [
    "case_of",
    "case_of_minima",
    "environment_of",
    "flaky_case_of",
    "recorded",
    "script_of",
    "signature_of",
    "words_of",
]
