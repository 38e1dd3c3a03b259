"""`scanshrink check --certificate`: take up the certificates of cases again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from reducer.cli.common import one_line, say
from reducer.cli.inputs import Item
from reducer.cli.session import open_pool, parse_options, require_compatible, targets
from reducer.cli.starts import stored_of
from reducer.corpus.case import Case, Tier
from reducer.corpus.recheck import Recheck, recheck
from reducer.corpus.runner import ask_case
from reducer.errors import InputError
from reducer.evidence import certified, certified_module
from reducer.ir.equations import Program
from reducer.oracle.base import Oracle
from reducer.oracle.beside import BesideOracle, comparison_of
from reducer.oracle.modules import ModuleOracle
from reducer.oracle.outcome import Result
from reducer.oracle.pool import Pool
from reducer.oracle.programs import ProgramOracle
from reducer.oracle.target import Target
from reducer.report.nearest import VERDICTS, evidence_lines
from reducer.stablehlo import Module
from reducer.words import counted

#: Most differences listed for people.
_LISTED = 5


def cases_of(items: Sequence[Item]) -> list[Case]:
    """The cases behind the arguments, each with a certificate at some tier.

    Raises:
        InputError: one is no case, or has none.
    """
    found = []
    for item in items:
        if item.case is None:
            raise InputError(f"{item.name}: is no case", hint="only a case has a certificate")
        if not any(minimum.certificate for minimum in item.case.tiers.values()):
            path = Path(item.name).absolute()
            folder = path if path.is_dir() else path.parent
            # Into its own corpus: elsewhere another case would have the certificate.
            again = f"scanshrink reduce {item.name} --out {os.path.relpath(folder.parent)}"
            raise InputError(f"{item.name}: has no certificate", hint=f"`{again}` makes one")
        found.append(item.case)
    return found


def recheck_all(
    items: Sequence[Item],
    libtpus: Sequence[str],
    topology: str | None,
    options: Sequence[str],
    jobs: int,
    *,
    timeout: float | None = None,
) -> Iterator[tuple[Item, Target, Result, dict[Tier, Recheck]]]:
    """Every case with what its minimum does now and its certificates taken up again, by tier.

    Each on its own target unless told otherwise: a certificate is about one compiler. The outcome cache is left out,
    which would only repeat what the certificate was made of.
    """
    for item, case in zip(items, cases_of(items), strict=True):
        own = case.target
        chosen = parse_options(options) if options else tuple(sorted(own.options.items()))
        for target in targets(libtpus or [own.libtpu], topology or own.topology, chosen):
            with open_pool(target, jobs, timeout=timeout, use_cache=False) as pool:
                require_compatible(pool)
                result = ask_case(pool, case, item.job).result()
                yield item, target, result, dict(_recheck(item, case, pool))


def _recheck(item: Item, case: Case, pool: Pool) -> Iterator[tuple[Tier, Recheck]]:
    for tier, minimum in case.tiers.items():
        if minimum.certificate is None:
            continue
        now = made_anew(case, tier, stored_of(item)[tier], pool).tiers[tier].certificate
        assert now is not None
        yield tier, recheck(minimum.certificate, now, case.signature)


def asked_again(case: Case, minimum: Program | Module, pool: Pool) -> Result:
    """What one of a case's minima does now, judged as its neighbours are."""
    if isinstance(minimum, Module):
        return ModuleOracle(pool, want_ledger=True).submit(minimum).result()
    return oracle_of(case, pool).submit(minimum).result()


def made_anew(case: Case, tier: Tier, minimum: Program | Module, pool: Pool) -> Case:
    """The case with the certificate of one of its minima, asked for anew."""
    if isinstance(minimum, Module):
        return certified_module(case, minimum, ModuleOracle(pool, want_ledger=True))
    return certified(case, tier, oracle_of(case, pool))


def oracle_of(case: Case, pool: Pool) -> Oracle[Program]:
    """What judges programs the way the case's failure is told: alone, or compared with others."""
    compared = comparison_of(case.kind, case.signature)
    return ProgramOracle(pool, want_ledger=True) if compared is None else BesideOracle(pool, compared)


def show(case: Case, rechecks: dict[Tier, Recheck]) -> None:
    """One line for each tier, what differs, and what the case says does not matter."""
    for tier, found in rechecks.items():
        counts = ", ".join(f"{n} {VERDICTS[verdict]}" for verdict, n in found.counts.items())
        holds = "the certificate holds" if found.holds else "the certificate does NOT hold"
        click.echo(f"  {tier}: {holds}: {counted(sum(found.counts.values()), 'neighbours')} ({counts})")
        wrong = [f"fails the same: {step}" for step in found.failing]
        wrong += [f"{step}: {what}" for step, what in found.differing.items()]
        for text in wrong[:_LISTED]:
            click.echo(f"    {one_line(text, 240)}")
        if len(wrong) > _LISTED:
            click.echo(f"    and {len(wrong) - _LISTED} more")
        for text in evidence_lines(msgspec.structs.replace(case.tiers[tier], certificate=None), ""):
            click.echo(f"  {text}")


def explanations(case: Case) -> dict[str, dict[str, str]]:
    """What the case says of each parameter of each minimum, for machines."""
    return {tier: {e.parameter: e.still_fails for e in m.explanations} for tier, m in case.tiers.items()}


def judge(rows: Sequence[dict[str, Any]], cases: Sequence[Case]) -> bool:
    """True if every minimum still fails as its case says, and every certificate holds; says what does not."""
    good = True
    for row, case in zip(rows, cases, strict=True):
        if row["signature"] != case.signature:
            say(f"{row['program']}: does not fail as its case says")
            good = False
        good = good and all(found["holds"] for found in row["certificate"].values())
    return good
