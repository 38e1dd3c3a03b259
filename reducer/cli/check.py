"""`scanshrink check`: compile programs, say what happened, one line each."""

from __future__ import annotations

import sys
from typing import Any

import click

from reducer.cli.common import Command, default_jobs, emit_json, jobs_option, json_option, one_line, target_options
from reducer.cli.inputs import Item, read
from reducer.cli.session import open_pool, targets
from reducer.oracle.outcome import Compiled, Incompatible, Invalid, Result, message_of, word
from reducer.oracle.signature import is_out_of_memory, is_user_error, signature
from reducer.oracle.target import Target


@click.command(cls=Command)
@click.argument("programs", nargs=-1, required=True, metavar="PROGRAM...")
@target_options(many=True)
@click.option("--expect", metavar="OUTCOME|SIGNATURE", help="Exit 1 unless every outcome, signature or family is this.")
@click.option("--timeout", type=click.FloatRange(min=0.1), metavar="SECONDS", help="Per program; default 60.")
@jobs_option
@json_option
def check(
    programs: tuple[str, ...],
    libtpus: tuple[str, ...],
    topology: str | None,
    options: tuple[str, ...],
    expect: str | None,
    timeout: float | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Compile PROGRAM for a TPU and print outcome, signature and seconds, one line each.

    PROGRAM is a case folder or its case.json, a program's .json, a StableHLO module (.mlir, .mlir.gz), or
    script.py:function, where the function returns (fn, abstract args). A case is checked on its own topology and
    options unless told otherwise.

    \b
    Example: scanshrink check corpus/* --libtpu 0.0.50.1 --libtpu 0.0.52
             scanshrink check train.py:step --expect compiled
    """
    items = [read(name) for name in programs]
    rows: list[dict[str, Any]] = []
    matched = True
    for item, target, result in _run(items, libtpus, topology, options, timeout, default_jobs(jobs)):
        row = describe(item, target, result)
        rows.append(row)
        if expect is not None:
            matched &= expect in (row["outcome"], row["verdict"], row["signature"], row["family"])
        if not as_json:
            click.echo(line(row))
    if as_json:
        emit_json("check", results=rows)
    if expect is not None and not matched:
        click.echo(f"expected {expect}", err=True)
        sys.exit(1)


def _run(
    items: list[Item],
    libtpus: tuple[str, ...],
    topology: str | None,
    options: tuple[str, ...],
    timeout: float | None,
    jobs: int,
) -> Any:
    """Compile every item on every target; yields in the order of targets, then items."""
    groups: dict[Target, list[Item]] = {}
    for item in items:
        own = item.case.target if item.case is not None else None
        where = topology or (own.topology if own else None)
        flags = options or (tuple(f"{k}={v}" for k, v in own.options.items()) if own else ())
        for target in targets(libtpus, where, flags):
            groups.setdefault(target, []).append(item)
    for target, members in groups.items():
        with open_pool(target, min(jobs, len(members)), timeout=timeout) as pool:
            futures = [pool.submit(item.job) for item in members]
            for item, future in zip(members, futures, strict=True):
                yield item, target, future.result()


def verdict(result: Result) -> str:
    """Our word for an outcome: ok, failed, user-error, or not-measurable where the compiler was never judged."""
    outcome = result.outcome
    if isinstance(outcome, Compiled):
        return "ok"
    if isinstance(outcome, Invalid) or is_user_error(outcome):
        return "user-error"
    if isinstance(outcome, Incompatible) or is_out_of_memory(outcome):
        return "not-measurable"
    return "failed"


def describe(item: Item, target: Target, result: Result) -> dict[str, Any]:
    """One result, as ``--json`` gives it."""
    outcome = result.outcome
    found = signature(outcome)
    return {
        "program": item.name,
        "target": target.as_json(),
        "outcome": word(outcome),
        "verdict": verdict(result),
        "signature": found.text if found else None,
        "family": found.family if found else None,
        "message": message_of(outcome),
        "memory": _memory(outcome),
        "ledger": None,
        "rate": None,
        "seconds": round(result.seconds_lower + result.seconds_compile, 3),
    }


def _memory(outcome: object) -> dict[str, int | None] | None:
    if not isinstance(outcome, Compiled):
        return None
    return {field: getattr(outcome.memory, field) for field in outcome.memory.__struct_fields__}


def line(row: dict[str, Any]) -> str:
    """One result, for people."""
    what = row["signature"] or (row["message"] if row["outcome"] in ("invalid", "incompatible") else "")
    memory = row["memory"] or {}
    if memory.get("host_temp") is not None:
        what = f"host temp {memory['host_temp']} B, device temp {memory.get('temp')} B"
    where = f"libtpu {row['target']['libtpu']}"
    return one_line(f"{row['program']}  {where}  {row['outcome']}  {row['seconds']:.2f} s  {what}", 300).rstrip()
