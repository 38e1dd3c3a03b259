"""The end of a reduction: the minima once more in a fresh worker, their certificates, the case, the other failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from reducer.corpus import Case, Corpus, Explanation
from reducer.corpus.atomic import storing
from reducer.corpus.case import Tier
from reducer.errors import InputError
from reducer.evidence import certified, certified_module, explained
from reducer.files import write_file
from reducer.ir.equations import Program
from reducer.oracle.outcome import Result
from reducer.oracle.verdict import failure
from reducer.reduction.context import Run
from reducer.reduction.model import Progress, Reduced, SideCase, Stage, Stopped
from reducer.reduction.saving import case_of_stages, side_case

Report = Callable[[Case], str] | None

#: How often a minimum is asked again before it is said to be flaky, beside as often as it was voted on.
_TIMES: Final = 2


def finish(run: Run, report: Report, *, stopped: bool) -> Reduced:
    """Save everything, and say what it came to.

    Raises:
        InputError: the minimum does not fail any more.
        StorageError: the corpus cannot be written.
    """
    for stage in list(run.stages.values()):
        stage.final = _failing_again(run, stage)
        if stage.final is None:
            if len(run.stages) == 1:
                raise InputError(
                    "the minimum did not fail when it was to be saved: it is flaky", hint="check it with --repeat"
                )
            del run.stages[stage.tier]
            run.cannot(stage.tier, "its minimum did not fail again in a fresh worker")
    partial = stopped or not all(stage.minimal for stage in run.stages.values())
    first = next(iter(run.stages.values()))
    assert first.final is not None
    signature = failure(first.final) or ""
    explanations: dict[Tier, tuple[Explanation, ...]] = {}
    if signature:
        case, folder = _save(run, report, partial=partial)
        files: dict[Tier, str] = {tier: f"{folder}/{minimum.script}" for tier, minimum in case.tiers.items()}
        explanations = {tier: minimum.explanations for tier, minimum in case.tiers.items()}
        finds = () if stopped else _save_finds(run, report, signature)
    else:
        folder, files = _save_plain(run)
        finds = ()
    run.unfinished.remove()
    if not partial:
        run.journal.end()
    return Reduced(
        signature=signature,
        target=run.target,
        stages=run.stages,
        files=files,
        unreached=run.unreached,
        finds=finds,
        dropped=tuple(run.dropped),
        confirmations=run.confirmations,
        seconds=run.clock.seconds,
        partial=partial,
        folder=folder,
        rate=first.confirmed.rate,
        explanations=explanations,
    )


def _failing_again(run: Run, stage: Stage) -> Result | None:
    """The answer that is saved; None if it does not fail as wanted, however often it is asked."""
    for number in range(max(stage.confirmed.votes.most, _TIMES)):
        final = run.final_of(stage.level, stage.best, number)
        if run.script is not None or run.wanted(final):
            return final
    return None


def _save(run: Run, report: Report, *, partial: bool) -> tuple[Case, str]:
    request = run.request
    compiles = sum(stage.compiles for stage in run.stages.values())
    case, files = case_of_stages(run.stages, run.target, request, partial=partial, compiles=compiles)
    if request.certificate and not partial and run.script is None:
        case = _with_evidence(run, case)
    stored = Corpus(request.out, report=report).add(case, files)
    return stored.case, str(stored.path)


def _save_plain(run: Run) -> tuple[str, dict[Tier, str]]:
    """What is interesting to a script, and no failure of the compiler's, is no case: just files."""
    first = next(iter(run.stages.values()))
    folder = run.request.out / f"_interesting-{first.level.key(run.request.start)[:8]}"
    files: dict[Tier, str] = {}
    with storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for tier, stage in run.stages.items():
            name, text = run.judged(stage.level, stage.best, stage.confirmed.result)
            data = {f"{tier}-{name}": text.encode("utf-8", "backslashreplace")}
            data |= {f"{tier}-{file}": content for file, content in (stage.level.file(stage.best),)}
            for file, content in data.items():
                write_file(folder / file, content)
            files[tier] = str(folder / f"{tier}-{name}")
    return str(folder), files


def _with_evidence(run: Run, case: Case) -> Case:
    """The case with a certificate at each tier, and explanations at those of programs, unless the run is ended."""
    for tier, stage in run.stages.items():
        asking = run.asking(stage, placed=False)
        try:
            if not isinstance(stage.best, Program):
                case = certified_module(case, stage.best, asking, events=_following(run, stage))
                continue
            case = certified(case, tier, asking, events=_following(run, stage))
            run.watcher.say(f"trying other values of what is left at the {tier} tier")
            case = explained(case, tier, asking)
        except Stopped:
            return case
        finally:
            run.confirmations += asking.more
    return case


def _following(run: Run, stage: Stage) -> Callable[[Any, int, int], None]:
    """Shows how far a certificate is; raises `Stopped` when the run is to end."""

    def follow(_: Any, number: int, total: int) -> None:
        run.watcher.show(
            Progress(
                seconds=run.clock.seconds,
                tier=stage.tier,
                unit=stage.level.unit,
                start_size=stage.level.size(stage.start),
                size=stage.level.size(stage.best),
                compiles=stage.compiles,
                rate=0.0,
                doing="record every neighbour of the minimum",
                tried=number,
                total=total,
                left=0,
            )
        )
        run.stop_if_asked()

    return follow


def _save_finds(run: Run, report: Report, signature: str) -> tuple[SideCase, ...]:
    """Offer the other failures to the corpus: those that repeat in a fresh worker."""
    saved = []
    corpus = Corpus(run.request.out, report=report)
    for stage in run.stages.values():
        for label, find in sorted(stage.finds.items()):
            final = run.final_of(stage.level, find.candidate)
            place = ""
            if failure(final) == label:
                case, files = side_case(stage.level, find.candidate, final, run.target, signature)
                place = str(corpus.add(case, files).path)
            saved.append(SideCase(label, stage.tier, stage.level.size(find.candidate), place))
    return tuple(saved)
