"""`scanshrink reduce`: make one failing program as small as it gets, at every tier it can be written at."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from reducer.cli.following import Following, panel, plain
from reducer.cli.inputs import Item, read
from reducer.cli.interrupts import Interrupts
from reducer.cli.progress import make_progress
from reducer.cli.reduced import as_fields, show
from reducer.cli.session import open_pool, parse_options, require_compatible, targets
from reducer.cli.starts import starts_of, stored_of

if TYPE_CHECKING:
    from reducer.oracle.jobs import Job
    from reducer.oracle.target import Target
    from reducer.reduction import Request

_TIERS = ("program", "placement", "stablehlo")


@click.command(cls=Command)
@click.argument("program", metavar="PROGRAM")
@target_options()
@click.option("--signature", metavar="S", help="The failure to keep; default: whatever the program does.")
@click.option("--family", metavar="F", help="Keep any failure of this family.")
@click.option("--any-failure", is_flag=True, help="Keep failing, in whatever way.")
@click.option(
    "--interesting",
    type=NamedPath(),
    metavar="SCRIPT",
    help="Keep what this program leaves with exit code 0 for; it is given each candidate's script.",
)
@click.option("--keep", multiple=True, metavar="PATTERN", help="What must survive, as dot_general. Repeatable.")
@click.option("--tier", "tiers", multiple=True, type=click.Choice(_TIERS), help="Reduce at this tier only. Repeatable.")
@click.option("--budget", type=click.IntRange(1), metavar="COMPILES", help="Stop after so many compiles.")
@click.option("--seconds", type=Seconds(min=1), metavar="SECONDS", help="Stop after so long.")
@click.option(
    "--timeout",
    type=Seconds(min=0.1),
    metavar="SECONDS",
    help="Most that a candidate may take; default: 10 times the start, at least 60.",
)
@click.option(
    "--out",
    type=NamedPath(),
    default=Path("reduced"),
    show_default=True,
    metavar="DIR",
    help="Corpus that the minimum is saved in.",
)
@jobs_option
@json_option
def reduce(
    program: str,
    libtpu: str | None,
    topology: str | None,
    options: tuple[str, ...],
    signature: str | None,
    family: str | None,
    any_failure: bool,
    interesting: Path | None,
    keep: tuple[str, ...],
    tiers: tuple[str, ...],
    budget: int | None,
    seconds: float | None,
    timeout: float | None,
    out: Path,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Make PROGRAM smaller as long as it fails in the same way.

    PROGRAM is a case, a program's .json, a capture folder, a StableHLO module (.mlir, .mlir.gz), HLO text as dumped
    before optimizations, or script.py:function, where the function returns (fn, abstract args).

    First the start is repeated in a fresh worker: exit code 1 if it does not fail, or fails otherwise than asked
    for. One that fails sometimes is reduced with votes. Then every tier is reduced, the highest first. Ctrl-C,
    --budget and --seconds end it early with the best so far saved; the same command goes on from there without
    compiling again what is known, also after a kill. SIGUSR1 prints the best so far.

    \b
    Example: scanshrink reduce tests/seed/nested.json --libtpu 0.0.50.1 --out reduced
    """
    from reducer.reduction import Reduction, Refused, Request
    from reducer.reduction.cases import wanted_of_case
    from reducer.report.markdown import markdown

    wanted = _wanted(signature, family, any_failure, interesting)
    item = read(program)
    if item.case is not None:
        wanted = wanted_of_case(item.case, wanted, item.name)
    for note in item.notes:
        say(f"note: {one_line(note)}")
    target = _target(item, libtpu, topology, options)
    if item.capture is not None:
        for note in item.capture.notes(target.libtpu):
            say(f"note: {one_line(note)}")
    request = Request(
        starts=starts_of(item, target, _lowered(target), module=set(tiers) == {"stablehlo"}),
        target=target,
        wanted=wanted,
        case=item.case,
        stored=stored_of(item),
        keep=keep,
        tiers=frozenset(tiers or _TIERS),  # type: ignore[arg-type]
        budget=budget,
        seconds=seconds,
        timeout=timeout,
        jobs=default_jobs(jobs),
        out=out,
        script=interesting,
    )
    with ExitStack() as stack:
        interrupts = stack.enter_context(Interrupts())
        progress = stack.enter_context(make_progress(plain, panel))
        watcher = Following(progress, interrupts)
        reduction = Reduction(request, open_pool, watcher, report=markdown)
        watcher.reduction = reduction
        stack.callback(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, watcher.shown))
        try:
            reduced = reduction.run()
        except Refused as error:
            _no(error.reason, error.rate, request, as_json=as_json)
    if as_json:
        emit_json("reduce", **as_fields(reduced))
    else:
        show(reduced, request)


def _wanted(signature: str | None, family: str | None, any_failure: bool, interesting: Path | None) -> Any:
    """What must stay.

    Raises:
        UsageError: more than one was named.
    """
    from reducer.reduction import wanted_of

    given = {
        "--signature": signature is not None,
        "--family": family is not None,
        "--any-failure": any_failure,
        "--interesting": interesting is not None,
    }
    named = [flag for flag, there in given.items() if there]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} contradict each other", hint="name one: the failure to keep")
    return wanted_of(
        signature=signature, family=family, any_failure=any_failure, script=str(interesting) if interesting else ""
    )


def _lowered(target: Target) -> Callable[[Job], str]:
    """Lowers a job in a worker of its own."""

    def lower(job: Job) -> str:
        from reducer.reduction.start import START_SECONDS

        with open_pool(target, 1) as pool:
            require_compatible(pool)
            return pool.submit(job, want_module=True, timeout=START_SECONDS).result().module

    return lower


def _target(item: Item, libtpu: str | None, topology: str | None, options: tuple[str, ...]) -> Target:
    """A case's own topology and options, and its release if that can be had, unless told otherwise."""
    if item.case is not None:
        libtpu = libtpu or item.case.target.libtpu
    chosen = parse_options(options) if options else item.options
    (target,) = targets([libtpu] if libtpu else [], topology or item.topology, chosen)
    return target


def _no(said: str, rate: dict[str, float], request: Request, *, as_json: bool) -> None:
    say(f"scanshrink reduce: {said}")
    if as_json:
        emit_json(
            "reduce",
            signature=None,
            target=request.target.as_json(),
            tiers={},
            reason=said,
            rate=rate,
            partial=True,
            case=None,
        )
    sys.exit(1)
