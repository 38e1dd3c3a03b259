"""`scanshrink hunt`: generate programs, compile them, shrink and save what fails."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import click
import msgspec

from reducer.cli.common import Command, default_jobs, emit_json, jobs_option, json_option, one_line, target_options
from reducer.cli.progress import make_progress
from reducer.cli.session import open_pool, require_compatible, targets
from reducer.corpus import Case, Corpus
from reducer.errors import InputError, StorageError
from reducer.hunt import Hunt, Source, Summary
from reducer.hunt.finds import Find
from reducer.hunt.state import latest_seed, load_state, pending_finds, save_state
from reducer.hunt.workshop import RealWorkshop
from reducer.oracle.programs import ProgramOracle
from reducer.oracle.target import Target
from reducer.report.markdown import markdown
from reducer.report.tables import show_failures

DEFAULT_CORPUS = Path("finds")


@click.command(cls=Command)
@click.option("--seconds", type=click.FloatRange(min=1), default=120.0, show_default=True, help="How long to generate.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds more for reductions under way when generating ends.",
)
@target_options()
@click.option("--seed", type=int, default=None, help="Draw the same programs again; default: a random one, printed.")
@jobs_option
@click.option(
    "--corpus",
    "folder",
    type=click.Path(path_type=Path),
    default=DEFAULT_CORPUS,
    show_default=True,
    metavar="DIR",
    help="Where cases are saved.",
)
@click.option(
    "--exclude-known",
    "excluded",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="CORPUS",
    help="Count the failures of this corpus, but do not shrink or save them again. Repeatable.",
)
@click.option("--resume", is_flag=True, help="Go on where the last hunt of this corpus (or of --seed) stopped.")
@click.option(
    "--budget", type=click.IntRange(1), default=None, metavar="COMPILES", help="Most compiles of one reduction."
)
@click.option("--timeout", type=click.FloatRange(min=0.1), metavar="SECONDS", help="Per compile; default 60.")
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
    budget: int | None,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Find programs that XLA:TPU cannot compile, shrink each new failure, and save it as a case.

    Ctrl-C ends the hunt cleanly; everything found so far is saved, and --resume goes on from there.

    \b
    Example: scanshrink hunt --seconds 60 --libtpu 0.0.50.1 --topology v6e:2x2 --seed 7 --jobs 2
    """
    (target,) = targets([libtpu] if libtpu else [], topology, options)
    known = _known(excluded)
    seed, batch, backlog = _begin(folder, seed, resume=resume, target=target)
    _require_writable(folder)
    corpus = Corpus(folder, report=markdown)
    progress = make_progress()
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(open_pool(target, default_jobs(jobs), timeout=timeout))
        from strategies import hunting

        source = Source(hunting(), seed, start=batch)
        stack.callback(source.close)
        stack.enter_context(progress)
        progress.say(f"hunting on {target} with {pool.workers} workers, seed {seed}")
        require_compatible(pool)
        engine = Hunt(
            source,
            ProgramOracle(pool, require_host_placement=True),
            RealWorkshop(pool, corpus, seed=seed, known=known, budget=budget),
            seconds=seconds,
            grace=grace,
            seed=seed,
            corpus=str(folder),
            notify=lambda line: progress.say(one_line(line, 220)),
            progress=progress.show,
            busy_seconds=lambda: pool.busy_seconds,
            backlog=backlog,
        )
        try:
            summary = engine.run()
        finally:
            _save(folder, seed, source.batch + 1, target, engine.pending())
    _report(summary, target, as_json=as_json)


def _known(excluded: tuple[Path, ...]) -> frozenset[str]:
    for folder in excluded:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such corpus", hint="--exclude-known names a folder of cases")
    return frozenset(entry.signature for folder in excluded for entry in Corpus(folder) if isinstance(entry, Case))


def _begin(folder: Path, seed: int | None, *, resume: bool, target: Target) -> tuple[int, int, list[Find]]:
    """Seed, first batch, and finds left over."""
    if not resume:
        return (random.randrange(1 << 31) if seed is None else seed), 0, []
    last = latest_seed(folder) if seed is None else seed
    if last is None:
        raise InputError(f"no hunt to resume in {folder}", hint="leave out --resume to start one")
    state = load_state(folder, last)
    if state.target != str(target):
        raise InputError(
            f"the hunt with seed {last} ran on {state.target}, not on {target}",
            hint="give the same --libtpu, --topology and --option, or start a new hunt",
        )
    return last, state.batch, pending_finds(state)


def _require_writable(folder: Path) -> None:
    """Find out before hunting, not after."""
    probe = folder / ".writable"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise StorageError(f"cannot write to {folder}: {error.strerror}", hint="choose another --corpus") from None


def _save(folder: Path, seed: int, batch: int, target: Target, pending: list[Find]) -> None:
    try:
        save_state(folder, seed=seed, batch=batch, target=str(target), pending=pending)
    except OSError as error:
        raise StorageError(f"cannot save the hunt's state in {folder}: {error.strerror}") from None


def _report(summary: Summary, target: Target, *, as_json: bool) -> None:
    if as_json:
        emit_json("hunt", target=target.as_json(), **msgspec.to_builtins(summary))
        return
    _closing(summary)


def _closing(summary: Summary) -> None:
    click.echo(
        f"{summary.generated} programs, {summary.compiled} compiled, {summary.failing} failing in "
        f"{summary.seconds:.0f} s; seed {summary.seed}; workers busy {summary.worker_busy_fraction:.0%}"
    )
    show_failures(summary.signatures)
