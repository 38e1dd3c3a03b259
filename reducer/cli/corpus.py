"""`scanshrink corpus`: list the cases, rerun them, render a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from reducer.cli.certify import certify
from reducer.cli.common import Group, NamedPath, default_jobs, emit_json, jobs_option, json_option, say
from reducer.cli.inputs import existing
from reducer.cli.session import warn
from reducer.corpus import Case, Corpus, Damaged
from reducer.corpus.runner import Runner
from reducer.corpus.verify import Check, Verdict, Verification, verify
from reducer.errors import InputError
from reducer.oracle.cache import OutcomeCache
from reducer.record import script_of
from reducer.report.html import write_page
from reducer.report.markdown import markdown
from reducer.report.tables import show_cases, show_verification, verification_line
from reducer.words import counted

_folder = click.argument("folder", type=NamedPath(), default=Path("corpus"), metavar="[FOLDER]")


@click.group(cls=Group)
def corpus() -> None:
    """Look at a corpus of minimal failures, and rerun it.

    \b
    Example: scanshrink corpus verify corpus --libtpu 0.0.50.1
    """


corpus.add_command(certify)


@corpus.command("list")
@_folder
@json_option
def list_(folder: Path, as_json: bool) -> None:
    """Show each case: name, tier, size, signature; damaged ones are named and skipped.

    Under "certificate" stands how many smaller neighbours the minimum has, of which none fails the same.

    \b
    Example: scanshrink corpus list corpus
    """
    entries = list(Corpus(existing(folder)))
    if not as_json:
        show_cases(entries)
        return
    cases = [
        {
            "case": c.slug,
            "kind": c.kind,
            "tier": c.tier,
            "size": c.minimum.size,
            "signature": c.signature,
            "family": c.family,
            "finds": c.finds,
            "certificates": _certificates(c),
        }
        for c in entries
        if isinstance(c, Case)
    ]
    damaged = [{"path": str(d.path), "reason": d.reason} for d in entries if isinstance(d, Damaged)]
    emit_json("corpus list", cases=cases, damaged=damaged)


def _certificates(case: Case) -> dict[str, dict[str, Any] | None]:
    return {
        tier: {
            "neighbourhood": certificate.neighbourhood,
            "neighbours": len(certificate.neighbours),
            "counts": certificate.counts(case.signature),
        }
        if (certificate := minimum.certificate) is not None
        else None
        for tier, minimum in case.tiers.items()
    }


@corpus.command("verify")
@_folder
@click.option(
    "--libtpu",
    "libtpus",
    metavar="VERSION|PATH",
    multiple=True,
    help="Release to run on; repeatable. Default: installed.",
)
@click.option("--record", is_flag=True, help="Write what was seen into the cases.")
@jobs_option
@json_option
def verify_(
    folder: Path,
    record: bool,
    libtpus: tuple[str, ...],
    jobs: int | None,
    as_json: bool,
) -> None:
    """Compile every case again, on its own topology and options: as recorded, fixed, or changed?

    Exit code 1 if a case changed or is damaged; a fixed one is good news. --record writes what was seen into the
    cases, so that their table of releases grows.

    \b
    Example: scanshrink corpus verify corpus --libtpu 0.0.52 --libtpu 0.0.50.1
    """
    store = Corpus(existing(folder), report=markdown)
    entries = list(store)
    runs = []
    for spec in libtpus or (None,):
        with OutcomeCache(warn=warn) as cache, Runner(store, spec, workers=default_jobs(jobs), cache=cache) as run:
            result = verify(entries, run, workers=default_jobs(jobs), progress=lambda c: _tell(c, quiet=as_json))
        runs.append(result)
        if record:
            for check in result.checks:
                _record(store, check)
    if as_json:
        emit_json("corpus verify", **_totals(runs))
    else:
        for result in runs:
            show_verification(result)
    sys.exit(max(result.exit_code for result in runs))


def _record(store: Corpus, check: Check) -> None:
    """Write what was seen into the case, and into its script: that knows then what to expect of this libtpu."""
    case = store.update(check.case.slug, lambda case: case.with_outcomes(check.seen))
    script = case.minimum.script
    if not script:
        return
    module = store.read(case.slug, case.minimum.module).decode("utf-8", "replace") if case.tier == "stablehlo" else ""
    text = script_of(case, module)
    if text is not None:
        store.update(case.slug, lambda case: case, {script: text})


def _tell(checked: Check | Damaged, *, quiet: bool) -> None:
    """Progress: what is as recorded. The rest is listed at the end, where it is not lost among a hundred lines."""
    if not quiet and isinstance(checked, Check) and checked.verdict is Verdict.AS_RECORDED:
        say(verification_line(checked))


def _totals(runs: list[Verification]) -> dict[str, Any]:
    """The counts of all runs together; `cases` and `damaged` are of the corpus, not of each run."""
    parts = [result.as_json() for result in runs]
    totals: dict[str, Any] = {name: parts[0][name] for name in ("cases", "damaged")}
    for name in ("as_recorded", "fixed", "changed", "not_judged"):
        totals[name] = sum(part[name] for part in parts)
    return totals | {"results": [row for part in parts for row in part["results"]]}


@corpus.command("report")
@_folder
@click.option(
    "--out", type=NamedPath(), default=Path("corpus.html"), metavar="FILE", help="Page to write."
)
@json_option
def report(folder: Path, out: Path, as_json: bool) -> None:
    """Write one self-contained HTML page: the cases, and what each does on every release recorded.

    \b
    Example: scanshrink corpus report corpus --out corpus.html
    """
    if str(out) == "-":
        raise InputError("--out -: the page is written to a file", hint="name one, or leave --out out")
    count, damaged = write_page(Corpus(existing(folder)), out)
    if as_json:
        emit_json("corpus report", page=str(out), cases=count, damaged=damaged)
    else:
        click.echo(f"{out}: {counted(count, 'cases')}" + (f", {damaged} damaged" if damaged else ""))
