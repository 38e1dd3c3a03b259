"""`scanshrink check`: compile programs, say what happened, one line each."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

import click

from reducer.cli import certificates
from reducer.cli.common import (
    Command,
    Seconds,
    UsageError,
    default_jobs,
    emit_json,
    error_fields,
    fail,
    jobs_option,
    json_option,
    one_line,
    say,
    target_options,
)
from reducer.cli.inputs import Item, read
from reducer.cli.pairs import Pairs, pairs_of
from reducer.cli.session import open_pool, parse_options, targets
from reducer.corpus.case import Tier
from reducer.corpus.recheck import Recheck
from reducer.corpus.runner import FLAKY_RUNS, ask_case
from reducer.errors import InputError, ScanshrinkError, TargetError
from reducer.ledger import ledger_json
from reducer.oracle.confirm import Confirmation
from reducer.oracle.naming import can_be_called, what_else
from reducer.oracle.outcome import Compiled, Crashed, Invalid, Result, Skipped, TimedOut, message_of, word
from reducer.oracle.pool import Pool
from reducer.oracle.target import Target
from reducer.oracle.verdict import said_of, verdict, verdict_of
from reducer.report.render import line as visible


@click.command(cls=Command)
@click.argument("programs", nargs=-1, required=True, metavar="PROGRAM...")
@target_options(many=True)
@click.option("--expect", metavar="OUTCOME|SIGNATURE", help="Exit 1 unless every outcome, signature or family is this.")
@click.option("--timeout", type=Seconds(min=0.1), metavar="SECONDS", help="Per program; default 60.")
@click.option(
    "--repeat",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    metavar="N",
    help="Compile each N times, in a new process; outcomes that differ are the verdict flaky.",
)
@click.option(
    "--pairs",
    is_flag=True,
    help="Also compile programs that mean the same, and the program scaled up with and without its offload.",
)
@click.option(
    "--certificate",
    is_flag=True,
    help="Of cases: ask about every neighbour of the minimum again; exit 1 unless the stored certificate holds.",
)
@jobs_option
@json_option
def check(
    programs: tuple[str, ...],
    libtpus: tuple[str, ...],
    topology: str | None,
    options: tuple[str, ...],
    expect: str | None,
    timeout: float | None,
    repeat: int,
    pairs: bool,
    certificate: bool,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Compile PROGRAM for a TPU and print outcome, signature and seconds, one line each.

    PROGRAM is a case folder or its case.json, a capture folder, a program's .json, a StableHLO module (.mlir,
    .mlir.gz), HLO text (*.before_optimizations.txt of --xla_dump_to), or script.py:function, where the function returns
    (fn, abstract args). A case or capture is checked on
    its own topology and options unless told otherwise. A program that does not trace, parse or lower is bad input:
    exit code 2, unless that is what --expect says.

    \b
    Example: scanshrink check corpus/* --libtpu 0.0.50.1 --libtpu 0.0.52
             scanshrink check train.py:step --expect compiled
    """
    if expect is not None and not can_be_called(expect):
        raise UsageError(f"--expect {one_line(expect, 80)}: nothing is called that", hint=what_else(expect))
    items, unusable = _read_all(programs)
    if unusable and (certificate or not items):
        raise unusable[0]
    for wrong in unusable:
        say(f"scanshrink check: {one_line(str(wrong))}")
    if certificate:
        if expect is not None or repeat > 1 or pairs:
            raise click.UsageError("--certificate goes with none of --expect, --repeat and --pairs")
        rechecks = certificates.recheck_all(items, libtpus, topology, options, default_jobs(jobs), timeout=timeout)
        _certificates(rechecks, as_json=as_json)
        return
    rows: list[dict[str, Any]] = []
    runs = _run(items, libtpus, topology, options, timeout, default_jobs(jobs), repeat, pairs)
    for item, target, result, repeats, beside in runs:
        row = describe(item, target, result, repeats, beside)
        rows.append(row)
        unfit = _unusable(item, result) if expect is None else None
        if unfit is not None:
            unusable.append(unfit)
            say(f"scanshrink check: {one_line(str(unfit))}")
        elif not as_json:
            click.echo(line(row))
            _show_ledger(result)
            for text in beside.lines() if beside is not None else ():
                click.echo(text)
    if expect is None and all(row["outcome"] == "incompatible" for row in rows):
        fail("check", _unfit(rows), as_json=as_json, results=rows)
    if as_json:
        error = {"error": error_fields(unusable[0])} if unusable else {}
        emit_json("check", results=rows, **error)
    if unusable:
        sys.exit(2)
    if expect is not None and not all(_as_expected(expect, row) for row in rows):
        say(f"expected {one_line(expect, 200)}")
        sys.exit(1)


def _read_all(programs: Iterable[str]) -> tuple[list[Item], list[ScanshrinkError]]:
    """What can be read, and what is wrong with the rest: a damaged case among many does not hide the others."""
    items: list[Item] = []
    unusable: list[ScanshrinkError] = []
    for name in programs:
        try:
            items.append(read(name))
        except InputError as error:
            unusable.append(error)
    return items, unusable


def _certificates(rechecks_of: Iterable[tuple[Item, Target, Result, dict[Tier, Recheck]]], *, as_json: bool) -> None:
    """`--certificate`: as the command, with the certificates taken up again."""
    rows: list[dict[str, Any]] = []
    cases = []
    for item, target, result, rechecks in rechecks_of:
        assert item.case is not None
        row = describe(item, target, result)
        found = {tier: one.as_json() for tier, one in rechecks.items()}
        rows.append({**row, "certificate": found, "explanations": certificates.explanations(item.case)})
        cases.append(item.case)
        if not as_json:
            click.echo(line(row))
            certificates.show(item.case, rechecks)
    good = certificates.judge(rows, cases)
    if as_json:
        emit_json("check", results=rows)
    if not good:
        sys.exit(1)


def _as_expected(expect: str, row: dict[str, Any]) -> bool:
    return expect in (row["outcome"], row["verdict"], row["signature"], row["family"])


def _unusable(item: Item, result: Result) -> InputError | None:
    """What is wrong with a program that never came before the compiler."""
    outcome = result.outcome
    if isinstance(outcome, Invalid) or (isinstance(outcome, Crashed | TimedOut) and outcome.phase == "lower"):
        return InputError(f"{item.name}: {one_line(message_of(outcome), 400)}", hint="it never reached the compiler")
    return None


def _unfit(rows: list[dict[str, Any]]) -> TargetError:
    return TargetError(
        one_line(rows[0]["message"], 200),
        hint="give another --libtpu; `scanshrink doctor` shows what is installed",
    )


def _run(
    items: list[Item],
    libtpus: tuple[str, ...],
    topology: str | None,
    options: tuple[str, ...],
    timeout: float | None,
    jobs: int,
    repeat: int,
    pairs: bool,
) -> Iterator[tuple[Item, Target, Result, Confirmation | None, Pairs | None]]:
    """Compile every item on every target; yields in the order of targets, then items."""
    groups: dict[Target, list[Item]] = {}
    for item in items:
        chosen = parse_options(options) if options else item.options
        for target in targets(libtpus, topology or item.topology, chosen):
            for note in (*item.notes, *(item.capture.notes(target.libtpu) if item.capture is not None else ())):
                say(f"note: {one_line(note)}")
            groups.setdefault(target, []).append(item)
    for target, members in groups.items():
        with open_pool(target, min(jobs, len(members)), timeout=timeout) as pool:
            futures = [_ask(pool, item, repeat) for item in members]
            for item, future in zip(members, futures, strict=True):
                answer = future.result()
                repeats = answer if isinstance(answer, Confirmation) else None
                result = answer.results[0] if isinstance(answer, Confirmation) else answer
                if isinstance(result.answer, Skipped):
                    raise InputError(f"{item.name}: cannot be compared: {result.answer.reason}")
                yield item, target, result, repeats, _beside(item, result, pool, pairs)


def _ask(pool: Pool, item: Item, repeat: int) -> Future[Confirmation] | Future[Result]:
    """Queue an item; a case the way its kind of failure is judged, so that one that comes and goes is repeated."""
    flaky = item.case is not None and item.case.kind == "flaky"
    if repeat > 1 or flaky:
        return pool.confirm(item.job, max(repeat, FLAKY_RUNS if flaky else 1), want_ledger=True)
    return pool.submit(item.job, want_ledger=True) if item.case is None else ask_case(pool, item.case, item.job)


def _beside(item: Item, result: Result, pool: Pool, wanted: bool) -> Pairs | None:
    """What `--pairs` adds; scripts and modules have no twins."""
    return pairs_of(item.program, result, pool) if wanted and item.program is not None else None


def _show_ledger(result: Result) -> None:
    """The table of what was offloaded, under the line of a program that compiles."""
    if isinstance(result.answer, Compiled) and result.ledger is not None:
        from reducer.report.tables import show_ledger

        show_ledger(result.ledger, result.answer.memory)


def describe(
    item: Item,
    target: Target,
    result: Result,
    repeats: Confirmation | None = None,
    beside: Pairs | None = None,
) -> dict[str, Any]:
    """One result, as ``--json`` gives it; the first of its `repeats` where there were any."""
    outcome = result.outcome
    judged = verdict_of(item.program, result) if item.program is not None else verdict(result)
    found = judged.signature
    said = beside.word(judged) if beside is not None else judged.word
    if repeats is not None and not repeats.stable:
        said = "flaky"
    message = said_of(result) or judged.reason
    if result.slow_limit is not None and judged.word == "ok":
        # A faster machine is no better compiler.
        said = "not-measurable"
        message = (
            f"compiling took {result.seconds_compile:.1f} s; more than {result.slow_limit:.1f} s were slow where it "
            "was found, which says nothing of another machine"
        )
    return {
        "program": item.name,
        "target": target.as_json(),
        "outcome": word(outcome),
        "verdict": said,
        "signature": found.text if found else None,
        "family": found.family if found else None,
        "message": message,
        "memory": _memory(outcome),
        "ledger": ledger_json(result.ledger) if result.ledger is not None else None,
        **({"pairs": beside.as_json()} if beside is not None else {}),
        "rate": repeats.rate if repeats is not None else None,
        "seconds": round(result.seconds_lower + result.seconds_compile, 3),
    }


def _memory(outcome: object) -> dict[str, int | None] | None:
    if not isinstance(outcome, Compiled):
        return None
    return {field: getattr(outcome.memory, field) for field in outcome.memory.__struct_fields__}


def line(row: dict[str, Any]) -> str:
    """One result, for people."""
    what = row["signature"] or (row["message"] if row["outcome"] == "invalid" else "")
    if row["verdict"] == "nothing-to-offload":
        what = f"nothing to offload: {row['message']}"
    if row["verdict"] == "not-measurable" and row["ledger"] is not None and not row["ledger"]["reason"]:
        what = f"not judged: {row['message']}"
    if row["verdict"] == "flaky":
        what = "flaky: " + "; ".join(f"{share:.0%} {name}" for name, share in row["rate"].items())
    if row["outcome"] == "incompatible":
        what = "this jaxlib and this libtpu cannot work together"
    memory = row["memory"] or {}
    if memory.get("host_temp") is not None:
        figures = f"host temp {memory['host_temp']} B, device temp {memory.get('temp')} B"
        what = f"{what}, {figures}" if what else figures
    words = (row["program"], f"libtpu {row['target']['libtpu']}", row["outcome"], f"{row['seconds']:.2f} s", what)
    return "  ".join(visible(word, 240) for word in words if word)
