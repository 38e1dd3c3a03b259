"""`scanshrink corpus certify`: certificates for the cases that have none, or one of another neighbourhood."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path

import click
import msgspec

from reducer.cli.certificates import asked_again, made_anew, oracle_of
from reducer.cli.common import (
    Command,
    NamedPath,
    default_jobs,
    emit_json,
    error_fields,
    jobs_option,
    json_option,
    one_line,
    say,
)
from reducer.cli.inputs import Item, existing, read
from reducer.cli.session import open_pool, require_compatible, targets
from reducer.cli.starts import stored_of
from reducer.corpus import Case, Corpus, Damaged
from reducer.corpus.case import Tier
from reducer.corpus.proof import NeighbourVerdict
from reducer.errors import InputError, TargetError, WorkerError
from reducer.evidence import explained, outdated
from reducer.oracle.outcome import word
from reducer.oracle.pool import Pool
from reducer.oracle.target import release_order
from reducer.oracle.verdict import failure
from reducer.report.markdown import markdown
from reducer.report.nearest import VERDICTS
from reducer.words import counted


class Certified(StrEnum):
    """What became of a case."""

    CERTIFIED = "certified"
    CURRENT = "current"
    NOT_MINIMAL = "not-minimal"
    CHANGED = "changed"
    NOT_JUDGED = "not-judged"
    DAMAGED = "damaged"


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One case: `failing` are steps to smaller programs that fail the same, `reason` is why nothing was made."""

    case: str
    verdict: Certified
    failing: tuple[str, ...] = ()
    reason: str = ""
    counts: dict[NeighbourVerdict, int] = {}


@click.command("certify", cls=Command)
@click.argument("folder", type=NamedPath(), default=Path("corpus"), metavar="[FOLDER]")
@click.option("--all", "all_", is_flag=True, help="Make those anew too that are of today's neighbourhood.")
@jobs_option
@json_option
def certify(folder: Path, all_: bool, jobs: int | None, as_json: bool) -> None:
    """Make the certificates that are missing, or older than the neighbourhood of this scanshrink.

    Each case on its own release, topology and options; what the outcome cache knows is not compiled again. Exit code 1
    if a minimum is none: a smaller neighbour of it fails the same, and it is to be reduced again.

    \b
    Example: scanshrink corpus certify corpus
    """
    store = Corpus(existing(folder), report=markdown)
    rows = []
    broken: list[WorkerError] = []
    for row in _rows(store, default_jobs(jobs), broken, everything=all_):
        rows.append(row)
        if not as_json and row.verdict is not Certified.CURRENT:
            click.echo(_line(row, store))
    rows.sort(key=lambda row: row.case)
    counts = Counter(row.verdict for row in rows)
    if as_json:
        totals = {verdict.value.replace("-", "_"): counts[verdict] for verdict in Certified}
        error = {"error": error_fields(broken[0])} if broken else {}
        results = [msgspec.to_builtins(row) for row in rows]
        emit_json("corpus certify", cases=len(rows), **totals, results=results, **error)
    else:
        listed = ", ".join(f"{counts[verdict]} {verdict.replace('-', ' ')}" for verdict in Certified if counts[verdict])
        click.echo(counted(len(rows), "cases") + (f": {listed}" if listed else ""))
    for trouble in broken:
        say(f"scanshrink corpus certify: {one_line(str(trouble))}")
    if broken:
        sys.exit(2)
    sys.exit(1 if {Certified.NOT_MINIMAL, Certified.CHANGED, Certified.DAMAGED} & counts.keys() else 0)


def _line(row: Row, store: Corpus) -> str:
    match row.verdict:
        case Certified.NOT_MINIMAL:
            again = f"scanshrink reduce {store.path(row.case)} --out {store.folder}"
            return f"NOT MINIMAL  {row.case}: {one_line(row.failing[0], 120)} fails the same; {again}"
        case Certified.CERTIFIED:
            said = ", ".join(f"{number} {VERDICTS[verdict]}" for verdict, number in row.counts.items())
            return f"certified    {row.case}: {counted(sum(row.counts.values()), 'neighbours')} ({said})"
        case verdict:
            return f"{verdict.replace('-', ' '):<11}  {row.case}: {one_line(row.reason)}"


def _rows(store: Corpus, jobs: int, broken: list[WorkerError], *, everything: bool) -> Iterator[Row]:
    """What becomes of each case; those of one target are compiled in one pool of workers.

    `broken` takes in why the workers of a target gave up: what the others answered is not lost for it.
    """
    todo: list[tuple[Item, Case, list[Tier]]] = []
    for entry in store:
        if isinstance(entry, Damaged):
            yield Row(entry.path.name.encode("utf-8", "backslashreplace").decode(), Certified.DAMAGED, (), entry.reason)
            continue
        try:
            item = read(str(store.path(entry.slug)))
            tiers = [t for t, one in stored_of(item).items() if everything or outdated(entry.tiers[t].certificate, one)]
        except InputError as error:
            yield Row(entry.slug, Certified.DAMAGED, (), str(error))
            continue
        reason = _not_judged(entry)
        if not tiers:
            yield Row(entry.slug, Certified.CURRENT)
        elif reason:
            yield Row(entry.slug, Certified.NOT_JUDGED, (), reason)
        else:
            todo.append((item, entry, tiers))
    todo.sort(key=lambda one: _where(one[1]))
    for _, group in itertools.groupby(todo, key=lambda one: _where(one[1])):
        yield from _of_one_target(store, list(group), jobs, broken)


def _where(case: Case) -> tuple[object, ...]:
    target = case.target
    options = sorted((k, repr(v)) for k, v in target.options.items())
    return release_order(target.libtpu), target.libtpu, target.sha256, target.topology, options


def _not_judged(case: Case) -> str:
    """Why a certificate of the case is not to be made from the case alone; "" if it is."""
    if case.kind in ("slow-compile", "flaky"):
        return f"is a failure of kind {case.kind}, of which one compile says nothing"
    kept = any(n.outcome == "not-kept" for m in case.tiers.values() if m.certificate for n in m.certificate.neighbours)
    return "was reduced with --keep: reduce it again with the same patterns" if kept else ""


def _of_one_target(
    store: Corpus, waiting: list[tuple[Item, Case, list[Tier]]], jobs: int, broken: list[WorkerError]
) -> Iterator[Row]:
    own = waiting[0][1].target
    try:
        (target,) = targets([own.libtpu], own.topology, tuple(sorted(own.options.items())))
        if target.sha256 != own.sha256:
            raise TargetError(f"libtpu {own.libtpu} is another file here than the one it was found on")
        with open_pool(target, jobs) as pool:
            require_compatible(pool)
            while waiting:
                say(f"on libtpu {own.libtpu}, {own.topology}: {waiting[0][1].slug}")
                row = _certify(store, *waiting[0], pool)
                del waiting[0]
                yield row
    except (TargetError, WorkerError) as error:
        if isinstance(error, WorkerError):
            broken.append(error)
        for _, case, _ in waiting:
            yield Row(case.slug, Certified.NOT_JUDGED, (), str(error))


def _certify(store: Corpus, item: Item, case: Case, tiers: Iterable[Tier], pool: Pool) -> Row:
    """Make the certificates of one case, and what does not matter to it, and keep both if it fails as it says."""
    made = case
    minima = stored_of(item)
    for tier in tiers:
        # Nothing around a program that does not fail fails the same: its certificate would claim what is not so.
        result = asked_again(case, minima[tier], pool)
        found = failure(result)
        if found != case.signature:
            what = f"the minimum at the {tier} tier does not fail as its case says: {found or word(result.answer)}"
            return Row(case.slug, Certified.CHANGED, (), what)
        made = made_anew(made, tier, minima[tier], pool)
        if made.tiers[tier].program is not None:
            made = explained(made, tier, oracle_of(case, pool))

    def with_evidence(known: Case) -> Case:
        return msgspec.structs.replace(known, tiers=made.tiers) if known.tiers == case.tiers else known

    try:
        stored = store.update(case.slug, with_evidence)
    except InputError as error:
        return Row(case.slug, Certified.CHANGED, (), f"could not be stored: {error}")
    if stored.tiers != made.tiers:
        return Row(case.slug, Certified.CHANGED, (), "was changed meanwhile, and is left as it is: certify it again")
    certificates = [minimum.certificate for minimum in made.tiers.values() if minimum.certificate is not None]
    failing = tuple(
        n.step for one in certificates for n in one.neighbours if n.verdict(case.signature) == "fails-the-same"
    )
    counts: Counter[NeighbourVerdict] = Counter()
    for one in certificates:
        counts.update(one.counts(case.signature))
    return Row(
        case.slug, Certified.NOT_MINIMAL if failing else Certified.CERTIFIED, failing=failing, counts=dict(counts)
    )


__all__ = ["certify"]
