"""From finished tiers to a case: scripts, modules, and the other failures that were met on the way."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from reducer.corpus import Case, Found, OutcomeRecord, Start, TierMinimum, notes
from reducer.corpus.case import TIERS, Tier
from reducer.corpus.runner import record_of
from reducer.errors import InputError, StorageError
from reducer.ir.equations import Program
from reducer.oracle.outcome import Result
from reducer.oracle.signature import Signature
from reducer.oracle.target import Target
from reducer.oracle.verdict import verdict
from reducer.record import beside_of, case_of_minima, compared, recorded, words_of
from reducer.reduction.model import Request, Stage

Files = dict[str, bytes | str]

UNREDUCED: Final = notes.REDUCTION_ENDED
MET: Final = notes.MET
_PROBE: Final = 4096


def require_writable(folder: Path, option: str = "--out") -> bool:
    """Find out before compiling, not after; True if the folder had to be made. `option` is what named it.

    Raises:
        StorageError: nothing can be written there.
    """
    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, prefix=".probe-") as probe:
            probe.write(b"x" * _PROBE)
    except OSError as error:
        reason = "it, or what should hold it, is a file" if isinstance(error, FileExistsError) else error.strerror
        raise StorageError(f"cannot write to {folder}: {reason}", hint=f"choose another {option}") from None
    return new


def remove_if_empty(folder: Path) -> None:
    """Take a folder away again that nothing was written to."""
    if folder.is_dir() and not any(folder.iterdir()):
        os.rmdir(folder)


def file_names(tiers: Mapping[Tier, object]) -> dict[Tier, tuple[str, str]]:
    """Script and module of each tier. The one that a case is known by has the usual names."""
    names: dict[Tier, tuple[str, str]] = {}
    for tier in TIERS:
        if tier in tiers:
            plain = not names and tier != "stablehlo"
            names[tier] = ("repro.py", "program.mlir") if plain else (f"repro_{tier}.py", f"{tier}.mlir")
    return names


def pieces(stage: Stage, final: Result, target: Target, script: str, module: str) -> tuple[TierMinimum, Files]:
    """What a case keeps of a tier, and its files."""
    record, found = record_of(target, final), verdict(final).failure
    assert found is not None, "a case holds a failure"
    return _written(stage.level, stage.best, final, record, found, target, script, module)


def _written(
    level: Any,
    candidate: Any,
    final: Result,
    record: OutcomeRecord,
    found: Signature,
    target: Target,
    script: str,
    module: str,
) -> tuple[TierMinimum, Files]:
    words = words_of(record, found, final.answer)
    if isinstance(candidate, Program):
        words["beside"] = beside_of(candidate, found)
    expected = compared(recorded(record, found), final, target)
    files: Files = {script: level.script(candidate, expected, target, **words)}
    lowered = level.lowered(candidate, final)
    if lowered:
        files[module] = lowered
    minimum: TierMinimum = level.minimum(candidate, script=script, module=module if lowered else "")
    return minimum, files


def case_of_stages(
    stages: Mapping[Tier, Stage], target: Target, request: Request, *, partial: bool, compiles: int
) -> tuple[Case, Files]:
    """The case of what was reduced; each stage has its final answer."""
    minima: dict[Tier, TierMinimum] = {}
    files: Files = {}
    for tier, (script, module) in file_names(stages).items():
        stage = stages[tier]
        assert stage.final is not None
        minima[tier], of_tier = pieces(stage, stage.final, target, script, module)
        files |= of_tier
    highest = stages[next(iter(minima))]
    assert highest.final is not None
    found = verdict(highest.final).failure
    assert found is not None
    start, start_files = _start(request)
    case = case_of_minima(
        minima,
        found,
        highest.final,
        target,
        how=_how(request, start.size, compiles),
        start=start,
        notes=(*_kept(request), *((UNREDUCED,) if partial else ())),
    )
    return case, files | start_files


def _kept(request: Request) -> tuple[str, ...]:
    return (f"Minimal among what keeps, as was asked for: {', '.join(request.keep)}.",) if request.keep else ()


def _how(request: Request, start_size: int, compiles: int) -> Found:
    before = request.case.found if request.case is not None else None
    if before is not None:
        return msgspec.structs.replace(before, compiles_to_minimum=compiles)
    return Found(strategy="reduce", started_size=start_size, compiles_to_minimum=compiles)


def _start(request: Request) -> tuple[Start, Files]:
    """The find before reduction: of a case that has been reduced before, the first one."""
    from reducer.reduction.descent import level_of

    before = request.case.start if request.case is not None else None
    if before is not None and before.program is not None:
        return before, {}
    level = level_of(request.start)
    if isinstance(request.start, Program):
        return Start(tier=level.name, size=level.size(request.start), program=request.start), {}
    name, data = "start.mlir.gz", gzip.compress(level.text(request.start).encode("utf-8", "backslashreplace"), mtime=0)
    return Start(tier="stablehlo", size=level.size(request.start), file=name), {name: data}


def side_case(level: Any, candidate: Any, final: Result, target: Target, of: str) -> tuple[Case, Files]:
    """The case of another failure, which is not shrunk.

    Raises:
        InputError: it did not fail when it was repeated.
    """
    record, found = record_of(target, final), verdict(final).failure
    if found is None:
        raise InputError("it did not fail again")
    names = file_names({level.name: None})[level.name]
    minimum, files = _written(level, candidate, final, record, found, target, *names)
    how = Found(strategy=f"met while reducing {of}", started_size=level.size(candidate))
    return case_of_minima({level.name: minimum}, found, final, target, how=how, notes=(MET,)), files
