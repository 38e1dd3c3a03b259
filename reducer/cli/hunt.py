"""`scanshrink hunt`: generate programs, compile them, shrink and save what fails.

Nothing heavy is imported before Ctrl-C is taken care of.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reducer.cli.common import (
    Command,
    NamedPath,
    Seconds,
    UsageError,
    default_jobs,
    emit_json,
    jobs_option,
    json_option,
    one_line,
    say,
    target_options,
)
from reducer.cli.interrupts import Interrupts
from reducer.cli.resuming import begin, known, save
from reducer.words import counted

if TYPE_CHECKING:
    from reducer.hunt import Summary
    from reducer.oracle.target import Target
    from reducer.oracle.verdict import Kind

DEFAULT_CORPUS = Path("finds")


@click.command(cls=Command)
@click.option("--seconds", type=Seconds(min=1), default=120.0, show_default=True, help="How long to generate.")
@click.option(
    "--grace",
    type=Seconds(min=0),
    default=60.0,
    show_default=True,
    help="Seconds more for shrinking what was found.",
)
@target_options()
@click.option("--seed", type=int, default=None, help="Draw the same programs again; default: a random one, printed.")
@jobs_option
@click.option(
    "--corpus",
    "folder",
    type=NamedPath(),
    default=DEFAULT_CORPUS,
    show_default=True,
    metavar="DIR",
    help="Where cases are saved.",
)
@click.option(
    "--exclude-known",
    "excluded",
    type=NamedPath(),
    multiple=True,
    metavar="CORPUS",
    help="Count the failures of this corpus, but do not shrink or save them again. Repeatable.",
)
@click.option("--resume", is_flag=True, help="Go on where the last hunt of this corpus (or of --seed) stopped.")
@click.option(
    "--budget", type=click.IntRange(1), default=500, show_default=True, help="Most compiles of one reduction."
)
@click.option(
    "--kinds",
    "wish",
    metavar="KIND,...",
    help="Look for these sorts of failure only: error, lost-offload, offload-costs, pair-differs, slow-compile, flaky; "
    "default: all.",
)
@click.option("--timeout", type=Seconds(min=0.1), metavar="SECONDS", help="Per compile; default 60.")
@json_option
def hunt(
    seconds: float,
    grace: float,
    libtpu: str | None,
    topology: str | None,
    options: tuple[str, ...],
    seed: int | None,
    jobs: int | None,
    folder: Path,
    excluded: tuple[Path, ...],
    resume: bool,
    budget: int,
    wish: str | None,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Find programs that XLA:TPU cannot compile, shrink each new failure, and save it as a case.

    Ctrl-C ends the hunt cleanly; everything found so far is saved, and --resume goes on from there.

    \b
    Example: scanshrink hunt --seconds 60 --libtpu 0.0.50.1 --topology v6e:2x2 --seed 7 --jobs 2
    """
    target: Target | None = None
    with Interrupts() as interrupts:
        try:
            from reducer.cli.session import parse_options, targets

            (target,) = targets([libtpu] if libtpu else [], topology, parse_options(options))
            summary = _hunt(
                target,
                interrupts,
                seconds=seconds,
                grace=grace,
                seed=seed,
                jobs=default_jobs(jobs),
                folder=folder,
                excluded=excluded,
                resume=resume,
                budget=budget,
                kinds=_kinds(wish),
                timeout=timeout,
            )
        except KeyboardInterrupt:
            # First of all a word: what JSON is made with takes seconds to import.
            if interrupts.delivered:
                say("ended at once: what was saved so far is in the corpus")
            else:
                say("ended before the first program: nothing was found, and what was saved before is as it was")
            if not as_json:
                return
            interrupts.deliver(lambda: None)
            from reducer.hunt.finds import Summary

            summary = Summary(corpus=str(folder), seed=seed or 0, interrupted=True)
        interrupts.deliver(lambda: None)
        _report(summary, target, as_json=as_json)


def _kinds(wish: str | None) -> tuple[Kind, ...]:
    """Read ``--kinds``."""
    from reducer.oracle.verdict import KINDS

    if wish is None:
        return KINDS
    chosen = [word.strip() for word in wish.split(",")]
    unknown = [word for word in chosen if word not in KINDS]
    if unknown:
        raise UsageError(
            f"--kinds: {unknown[0]!r} is no kind of failure", hint=f"there are {', '.join(KINDS)}; separate with commas"
        )
    if set(chosen) == {"flaky"}:
        raise UsageError("--kinds: flaky says how often others come", hint="name error or lost-offload beside it")
    return tuple(kind for kind in KINDS if kind in chosen)


def _hunt(
    target: Target,
    interrupts: Interrupts,
    *,
    seconds: float,
    grace: float,
    seed: int | None,
    jobs: int,
    folder: Path,
    excluded: tuple[Path, ...],
    resume: bool,
    budget: int,
    kinds: tuple[Kind, ...],
    timeout: float | None,
) -> Summary:
    from reducer.cli.progress import make_progress
    from reducer.cli.session import open_pool, require_compatible
    from reducer.corpus import Corpus
    from reducer.hunt import Hunt, Source
    from reducer.hunt.besides import Besides
    from reducer.hunt.workshop import RealWorkshop
    from reducer.oracle.beside import BesideOracle
    from reducer.oracle.programs import ProgramOracle
    from reducer.reduction.saving import remove_if_empty, require_writable
    from reducer.report.markdown import markdown
    from strategies import hunting

    left_out = known(excluded)
    want_ledger = any(kind not in ("error", "flaky") for kind in kinds)
    seed, batch, backlog = begin(folder, seed, resume=resume, target=target)
    with contextlib.ExitStack() as stack:
        if require_writable(folder, "--corpus"):
            stack.callback(remove_if_empty, folder)
        progress = stack.enter_context(make_progress())
        progress.say(f"hunting on {target}, seed {seed}; starting {counted(jobs, 'workers')} ...")
        pool = stack.enter_context(open_pool(target, jobs, timeout=timeout))
        source = Source(hunting(), seed, start=batch)
        stack.callback(source.close)
        require_compatible(pool)
        engine = Hunt(
            source,
            ProgramOracle(pool, require_host_placement=True, want_ledger=want_ledger),
            RealWorkshop(
                pool,
                Corpus(folder, report=markdown),
                seed=seed,
                known=left_out,
                budget=budget,
                want_ledger=want_ledger,
                want_flaky="flaky" in kinds,
            ),
            seconds=seconds,
            grace=grace,
            seed=seed,
            corpus=str(folder),
            notify=lambda line: progress.say(one_line(line, 220)),
            progress=progress.show,
            checkpoint=lambda: save(folder, seed, source.batch + 1, target, engine.pending()),
            busy_seconds=lambda: pool.busy_seconds,
            compiles=lambda: pool.stats().compiled,
            backlog=backlog,
            kinds=kinds,
            besides=Besides(lambda comparison: BesideOracle(pool, comparison), kinds),
        )

        def end() -> None:
            engine.interrupt()
            if interrupts.count == 1:
                progress.say("ending: saving what was found (Ctrl-C again does not wait for that)")

        interrupts.deliver(end)
        try:
            return engine.run()
        finally:
            left = engine.pending()
            save(folder, seed, source.batch + 1, target, left)
            if left:
                what = "1 find is" if len(left) == 1 else f"{len(left)} finds are"
                progress.say(f"{what} not fully shrunk; --resume --seed {seed} goes on with what is left")


def _report(summary: Summary, target: Target | None, *, as_json: bool) -> None:
    import msgspec

    if as_json:
        emit_json("hunt", target=target.as_json() if target else None, **msgspec.to_builtins(summary))
        return
    from reducer.report.tables import show_failures

    click.echo(
        f"{counted(summary.generated, 'programs')}, {summary.compiled} compiled, {summary.failing} failing in "
        f"{summary.seconds:.0f} s; seed {summary.seed}; workers busy {summary.worker_busy_fraction:.0%}"
    )
    waiting = summary.excused.get("unconfirmed", 0)
    if waiting:
        click.echo(
            f"not counted: {counted(waiting, 'failing programs')} whose failure is not confirmed; what was not "
            f"repeated yet, --resume --seed {summary.seed} goes on with"
        )
    if summary.signatures or not waiting:
        show_failures(summary.signatures)
    for flaky in summary.flaky:
        seen = ", ".join(f"{count}x {name}" for name, count in flaky.repeats.items())
        met = counted(flaky.finds, "finds")
        said = f"flaky, not counted: {flaky.signature} ({met}; repeated: {seen}) {flaky.case}"
        click.echo(one_line(said, 400).rstrip())
