"""`scanshrink reduce`: make one failing program as small as it gets."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reducer.cli.common import (
    Command,
    Seconds,
    default_jobs,
    emit_json,
    jobs_option,
    json_option,
    one_line,
    say,
    target_options,
)
from reducer.cli.inputs import Item, read
from reducer.cli.interrupts import Interrupts
from reducer.cli.session import open_pool, parse_options, require_compatible, targets
from reducer.errors import InputError
from reducer.ir.order import order_key, size
from reducer.ir.text import to_text

if TYPE_CHECKING:
    from reducer.ir.equations import Program
    from reducer.oracle.outcome import Result
    from reducer.oracle.pool import Pool
    from reducer.oracle.target import Target
    from reducer.shrink import Event

#: Repeats of the start, alone in a fresh worker, before anything is tried.
REPEATS = 3
#: Seconds the start may take: a real train step compiles for minutes on a busy machine.
START_SECONDS = 900.0
#: A candidate may take so many times what the start took, and this many seconds at least. Fixed for the whole run, so
#: that what is found does not depend on how busy the machine is later.
PATIENCE, LEAST_SECONDS = 10.0, 60.0


class _Stopped(Exception):
    """The time is up, or a person wants it to end."""


class _Reduction:
    """The state of one reduction: what is saved when it ends early."""

    def __init__(self, program: Program, result: Result, *, seconds: float | None) -> None:
        self.best, self.result = program, result
        self.compiles = 0
        self.to_fixpoint: int | None = None
        self.wanted_to_stop = False
        self._begun = time.monotonic()
        self._deadline = None if seconds is None else self._begun + seconds
        self._shown = self._begun

    @property
    def seconds(self) -> float:
        """Since the reduction began."""
        return time.monotonic() - self._begun

    def event(self, event: Event[Program]) -> None:
        """Follow the driver; raises `_Stopped` when it is to end."""
        from reducer.shrink import Accepted, PassStarted, Tried

        if isinstance(event, Accepted):
            self.best, self.result, self.compiles = event.candidate, event.result, event.compiles
            say(f"{self.seconds:5.0f} s  {event.size:4} equations, {event.compiles} compiles  {event.name}")
        elif isinstance(event, Tried):
            self.compiles = event.compiles
        elif isinstance(event, PassStarted) and time.monotonic() - self._shown > 5:
            self._shown = time.monotonic()
            say(f"{self.seconds:5.0f} s  {event.description} ({event.left} passes left in this round)")
        late = self._deadline is not None and time.monotonic() > self._deadline
        if self.wanted_to_stop or late:
            raise _Stopped

    def stop(self) -> None:
        """Called by a signal."""
        self.wanted_to_stop = True


@click.command(cls=Command)
@click.argument("program", metavar="PROGRAM")
@target_options()
@click.option("--signature", metavar="S", help="The failure to keep; default: whatever the program does.")
@click.option("--family", metavar="F", help="Keep any failure of this family.")
@click.option("--any-failure", is_flag=True, help="Keep failing, in whatever way.")
@click.option("--budget", type=click.IntRange(1), metavar="COMPILES", help="Stop after so many compiles.")
@click.option("--seconds", type=Seconds(min=1), metavar="SECONDS", help="Stop after so long.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
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
    budget: int | None,
    seconds: float | None,
    out: Path,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Make PROGRAM, a case or a program's .json, smaller as long as it fails in the same way.

    First the start is repeated in a fresh worker: exit code 1 if it does not fail, fails otherwise than asked for,
    or not each time. Ctrl-C, --budget and --seconds end it early with the best so far saved; the same command goes
    on from there without compiling again what is known.

    \b
    Example: scanshrink reduce tests/seed/nested.json --libtpu 0.0.50.1 --out reduced
    """
    from reducer.oracle.verdict import verdict

    item = read(program)
    if item.program is None:
        raise InputError(
            f"{program}: is no program", hint="give a case of the program or placement tier, or a program's .json"
        )
    target = _target(item, libtpu, topology, options)

    def wanted(result: Result) -> bool:
        found = verdict(result).failure
        if found is None or any_failure:
            return found is not None
        return found.family == family if family is not None else found.text == signature

    with open_pool(target, default_jobs(jobs)) as pool, Interrupts() as interrupts:
        require_compatible(pool)
        first = _ask(pool, item.program)
        found = verdict(first).failure
        if signature is None and found is not None:
            signature = found.text
        said = _refused(pool, item.program, first, wanted)
        if said:
            _no(said, as_json=as_json, target=target)
        state = _Reduction(item.program, first, seconds=seconds)
        interrupts.deliver(state.stop)
        minimal = _shrink(pool, item.program, wanted, budget, state)
        tier, file = _save(pool, item, target, state, out)
    fields: dict[str, Any] = {
        "size": size(state.best),
        "start_size": size(item.program),
        "order_key": [str(part) for part in order_key(state.best)[:-1]],
        "changed": state.best != item.program,
        "compiles_to_fixpoint": state.to_fixpoint,
        "compiles_total": state.compiles,
        "seconds": round(state.seconds, 2),
        "minimal": minimal,
        "file": f"{file}/repro.py",
    }
    if as_json:
        emit_json(
            "reduce",
            signature=signature,
            target=target.as_json(),
            tiers={tier: fields},
            compiles_total=state.compiles,
            seconds=fields["seconds"],
            partial=not minimal,
            case=file,
        )
        return
    click.echo(to_text(state.best))
    end = "1-minimal" if minimal else "stopped early; the same command goes on"
    click.echo(
        f"{fields['start_size']} -> {fields['size']} equations, {state.compiles} compiles, {state.seconds:.0f} s; {end}"
    )
    click.echo(f"{file}/repro.py")


def _target(item: Item, libtpu: str | None, topology: str | None, options: tuple[str, ...]) -> Target:
    """A case's own topology and options, and its release if that can be had, unless told otherwise."""
    own = item.case.target if item.case is not None else None
    if own is not None:
        topology = topology or own.topology
        libtpu = libtpu or own.libtpu
    chosen = parse_options(options) if options else tuple(sorted(own.options.items())) if own else ()
    (target,) = targets([libtpu] if libtpu else [], topology, chosen)
    return target


def _ask(pool: Pool, program: Program) -> Result:
    from reducer.oracle.programs import program_job

    return pool.submit(program_job(program), want_ledger=True, timeout=START_SECONDS).result()


def _refused(pool: Pool, program: Program, first: Result, wanted: Any) -> str:
    """Why the start cannot be reduced; empty if it fails as asked for, each time."""
    from reducer.oracle.outcome import word
    from reducer.oracle.programs import program_job
    from reducer.oracle.verdict import said_of

    if not wanted(first):
        return f"the start does not fail as asked for: {word(first.answer)} {one_line(said_of(first), 200)}".rstrip()
    again = pool.confirm(program_job(program), REPEATS, want_ledger=True, timeout=START_SECONDS).result()
    failing = sum(wanted(result) for result in again.results)
    if failing < REPEATS:
        return f"the start is flaky: it failed as asked for in {failing} of {REPEATS} repeats in a fresh worker"
    return ""


def _no(said: str, *, as_json: bool, target: Target) -> None:
    say(f"scanshrink reduce: {said}")
    if as_json:
        emit_json("reduce", signature=None, target=target.as_json(), tiers={}, reason=said, partial=True, case=None)
    sys.exit(1)


def _shrink(pool: Pool, program: Program, wanted: Any, budget: int | None, state: _Reduction) -> bool:
    """Reduce into `state`; True if the result is 1-minimal."""
    from reducer.hunt.finds import tier_of
    from reducer.oracle.outcome import Skipped
    from reducer.oracle.programs import ProgramOracle, program_job
    from reducer.shrink import shrink_program

    took = state.result.seconds_lower + state.result.seconds_compile
    limit = max(LEAST_SECONDS, PATIENCE * took)
    # A failure of a program that places something in host memory is taken for one of the placement: what places
    # nothing there is not compiled.
    job = program_job(program, require_host_placement=True)
    placed = not isinstance(pool.submit(job, timeout=START_SECONDS).result().answer, Skipped)
    try:
        shrunk = shrink_program(
            program,
            ProgramOracle(pool, require_host_placement=placed, want_ledger=True, timeout=limit),
            wanted,
            level=tier_of(program),
            budget=budget,
            events=state.event,
        )
    except _Stopped:
        return False
    state.best, state.result, state.compiles = shrunk.program, shrunk.result, shrunk.compiles
    state.to_fixpoint = shrunk.to_fixpoint
    return shrunk.minimal


def _save(pool: Pool, item: Item, target: Target, state: _Reduction, out: Path) -> tuple[str, str]:
    """Write the case; returns its tier and folder."""
    from reducer.corpus import Corpus, Found
    from reducer.hunt.finds import tier_of
    from reducer.oracle.programs import program_job
    from reducer.oracle.verdict import verdict
    from reducer.record import case_of
    from reducer.report.markdown import markdown

    assert item.program is not None
    result = pool.submit(program_job(state.best), want_module=True, want_ledger=True).result()
    found = verdict(result).failure
    if found is None:
        raise InputError("the minimum did not fail when it was to be saved: it is flaky", hint="check it with --repeat")
    tier = tier_of(state.best)
    how = Found(strategy="reduce", started_size=size(item.program), compiles_to_minimum=state.compiles)
    case, files = case_of(state.best, tier, found, result, target, how=how, start=item.program)
    return tier, str(Corpus(out, report=markdown).add(case, files).path)
