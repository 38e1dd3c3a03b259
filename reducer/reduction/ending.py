"""The end of a reduction: the minima once more in a fresh worker, their certificates, the case, the other failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final

import msgspec

from reducer.corpus import Case, Corpus, notes
from reducer.corpus.atomic import storing
from reducer.corpus.case import TIERS, Tier
from reducer.corpus.notes import noted
from reducer.errors import InputError
from reducer.evidence import certified, certified_module, explained, run_beside_twin
from reducer.files import write_file
from reducer.ir.codec import identity
from reducer.ir.equations import Program
from reducer.oracle.outcome import Result
from reducer.oracle.verdict import failure
from reducer.reduction.context import Run
from reducer.reduction.descent import level_of
from reducer.reduction.model import Progress, Reduced, SideCase, Stage, Stopped
from reducer.reduction.saving import case_of_stages, side_case
from reducer.reduction.smaller import save_smaller

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
    rate = next(iter(run.stages.values())).confirmed.rate
    run.stages = {tier: run.stages[tier] for tier in TIERS if tier in run.stages}
    partial = stopped or not all(stage.minimal for stage in run.stages.values())
    # To a script what does not fail may be interesting: it is no part of a case.
    failing = {tier: stage for tier, stage in run.stages.items() if stage.final is not None and failure(stage.final)}
    folder, files = _save_plain(run, {tier: run.stages[tier] for tier in run.stages if tier not in failing})
    saved: _Saved | None = None
    finds: list[SideCase] = []
    smaller: dict[Tier, str] = {}
    if failing:
        saved = _Saved(run, report, failing, partial=partial)
        folder = str(saved.path)
        files |= {tier: f"{folder}/{minimum.script}" for tier, minimum in saved.case.tiers.items()}
        if not stopped:
            try:
                if run.request.certificate and not partial and run.script is None:
                    evident = _with_evidence(run, saved.own)
                    saved.complete(evident)
                    smaller = save_smaller(run, evident)
                _save_finds(run, report, saved.case.signature, finds)
            except Stopped:
                partial = True
                run.watcher.say("ended before all was recorded; the minimum is saved, and the same command goes on")
    run.unfinished.remove()
    if not partial:
        run.journal.end()
    minima = saved.case.tiers if saved is not None else {}
    return Reduced(
        signature=saved.case.signature if saved is not None else "",
        target=run.target,
        stages=run.stages,
        files=files,
        unreached=run.unreached,
        finds=tuple(finds),
        dropped=tuple(run.dropped),
        confirmations=run.confirmations,
        seconds=run.clock.seconds,
        partial=partial,
        folder=folder,
        rate=rate,
        explanations={tier: minimum.explanations for tier, minimum in minima.items()},
        certificates={tier: m.certificate for tier, m in minima.items() if m.certificate is not None},
        smaller=smaller,
    )


def _found_by(known: Case, case: Case) -> Case:
    """The case of a reduction that was ended early, with what the whole of it took instead of its first part."""
    same = known.found is not None and case.found is not None and known.found.strategy == case.found.strategy
    if notes.REDUCTION_ENDED not in known.notes or not same:
        return known
    return msgspec.structs.replace(known, found=case.found)


def _failing_again(run: Run, stage: Stage) -> Result | None:
    """The answer that is saved; None if it does not fail as wanted, however often it is asked."""
    for number in range(max(stage.confirmed.votes.most, _TIMES)):
        final = run.final_of(stage.level, stage.best, number, limit=stage.confirmed.limit)
        if run.script is not None or run.wanted(final):
            return final
    return None


class _Saved:
    """The case in the corpus: saved before anything is found out about it, so that nothing can be lost any more.

    `own` is what was saved, `case` what the corpus holds, which had a smaller one of it perhaps.
    """

    def __init__(self, run: Run, report: Report, stages: Mapping[Tier, Stage], *, partial: bool) -> None:
        compiles = sum(stage.compiles for stage in stages.values())
        case, self._files = case_of_stages(stages, run.target, run.request, partial=partial, compiles=compiles)
        self.own = case
        self._corpus = Corpus(run.request.out, report=report)
        # A run that goes on has met no other failure than the one it began with, nor has one that takes a case of
        # this corpus up again.
        before = run.request.case
        again = before is not None and any(c.slug == before.slug for c in self._corpus.find(*case.key))
        stored = self._corpus.add(case, self._files, count=not run.journal.known and not again)
        self.case, self.path = stored.case, stored.path
        if not partial and all(map(self._is_ours, case.tiers)):
            self.case = self._corpus.update(self.case.slug, lambda known: noted(_found_by(known, case)))

    def complete(self, evident: Case) -> None:
        """Add certificates and explanations, except to what another run has made smaller."""
        ours = [tier for tier in self.own.tiers if self._is_ours(tier)]

        def with_evidence(known: Case) -> Case:
            tiers = {
                tier: msgspec.structs.replace(
                    known.tiers[tier],
                    certificate=evident.tiers[tier].certificate,
                    explanations=evident.tiers[tier].explanations,
                )
                for tier in ours
            }
            known = msgspec.structs.replace(known, tiers={**known.tiers, **tiers})
            if next(iter(known.tiers)) not in ours:  # what ran on the CPU is not what the case is known by
                return known
            notes = tuple(dict.fromkeys((*known.notes, *evident.notes)))
            return msgspec.structs.replace(known, equivalence=evident.equivalence, notes=notes)

        self.case = self._corpus.update(self.case.slug, with_evidence)

    def _is_ours(self, tier: Tier) -> bool:
        """Whether what the corpus holds at a tier is what was saved, and not a smaller one that it had."""
        own, there = self.own.tiers[tier], self.case.tiers[tier]
        if own.program is not None and there.program is not None:
            return identity(own.program) == identity(there.program)
        if not own.module or not there.module:
            return False
        module = self._files[own.module]
        data = module if isinstance(module, bytes) else module.encode("utf-8", "backslashreplace")
        return self._corpus.read(self.case.slug, there.module) == data


def _save_plain(run: Run, stages: Mapping[Tier, Stage]) -> tuple[str, dict[Tier, str]]:
    """What is interesting to a script, and no failure of the compiler's, is no case: just files."""
    if not stages:
        return "", {}
    key = level_of(run.request.start).key(run.request.start)
    folder = run.request.out / f"_interesting-{key[:8]}"
    files: dict[Tier, str] = {}
    with storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for tier, stage in stages.items():
            name, text = run.judged(stage.level, stage.best, stage.confirmed.result)
            data = {f"{tier}-{name}": text.encode("utf-8", "backslashreplace")}
            data |= {f"{tier}-{file}": content for file, content in (stage.level.file(stage.best),)}
            for file, content in data.items():
                write_file(folder / file, content)
            files[tier] = str(folder / f"{tier}-{name}")
    return str(folder), files


class _Stoppable:
    """An oracle that asks no more when the run is to end: `submit` raises `Stopped`."""

    def __init__(self, run: Run, oracle: Any) -> None:
        self._run = run
        self._oracle = oracle
        self.workers: int = oracle.workers

    def submit(self, candidate: Any, *, fresh: bool = False) -> Future[Result]:
        self._run.stop_if_asked()
        answer: Future[Result] = self._oracle.submit(candidate, fresh=fresh)
        return answer


def _with_evidence(run: Run, case: Case) -> Case:
    """The case with a certificate at each tier, and explanations at those of programs.

    Raises:
        Stopped: the run is to end.
    """
    for tier, stage in run.stages.items():
        asking = run.asking(stage, placed=False)
        free = run.asking(stage, placed=False, kept=False) if run.request.keep else asking
        oracle = _Stoppable(run, asking)
        try:
            if not isinstance(stage.best, Program):
                case = certified_module(case, stage.best, oracle, keeps=stage.keeps, events=_following(run, stage))
                continue
            case = certified(case, tier, oracle, keeps=stage.keeps, events=_following(run, stage))
            run.watcher.say(f"trying other values of what is left at the {tier} tier")
            # Which values matter to the failure, not to the person who reduces it.
            case = explained(case, tier, _Stoppable(run, free), wanted=run.wanted)
        finally:
            run.confirmations += asking.more + (0 if free is asking else free.more)
    return run_beside_twin(case)


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


def _save_finds(run: Run, report: Report, signature: str, saved: list[SideCase]) -> None:
    """Offer the other failures to the corpus: those that repeat in a fresh worker. `saved` takes in each.

    Raises:
        Stopped: the run is to end.
    """
    corpus = Corpus(run.request.out, report=report)
    for stage in run.stages.values():
        for label, find in sorted(stage.finds.items()):
            run.stop_if_asked()
            final = run.final_of(stage.level, find.candidate, limit=stage.confirmed.limit)
            place = ""
            if failure(final) == label:
                case, files = side_case(stage.level, find.candidate, final, run.target, signature)
                place = str(corpus.add(case, files, count=not run.journal.known).path)
            saved.append(SideCase(label, stage.tier, stage.level.size(find.candidate), place))
