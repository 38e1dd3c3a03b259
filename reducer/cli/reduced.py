"""What a reduction came to, for people and machines."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from reducer.cli.common import one_line
from reducer.words import counted

if TYPE_CHECKING:
    from reducer.corpus.case import Tier
    from reducer.reduction import Reduced, Request


def as_fields(reduced: Reduced) -> dict[str, Any]:
    """What it came to, as ``--json`` gives it."""
    tiers = {}
    for tier, stage in reduced.stages.items():
        tiers[tier] = {
            "size": stage.level.size(stage.best),
            "start_size": stage.level.size(stage.start),
            "order_key": [str(part) for part in stage.level.order(stage.best)],
            "changed": stage.changed,
            "compiles_to_fixpoint": stage.to_fixpoint,
            "compiles_total": stage.compiles,
            "seconds": round(stage.seconds, 2),
            "minimal": stage.minimal,
            "smaller": reduced.smaller.get(tier),
            "file": reduced.files[tier],
            "explanations": {one.parameter: one.still_fails for one in reduced.explanations.get(tier, ())},
            "certificate": None,
        }
        if (certificate := reduced.certificates.get(tier)) is not None:
            tiers[tier]["certificate"] = {
                "neighbourhood": certificate.neighbourhood,
                "neighbours": len(certificate.neighbours),
                "counts": certificate.counts(reduced.signature),
            }
    failing, runs = reduced.rate
    return {
        "signature": reduced.signature or None,
        "target": reduced.target.as_json(),
        "tiers": tiers,
        "unreached": reduced.unreached,
        "finds": [
            {"signature": find.signature, "tier": find.tier, "size": find.size, "case": find.case or None}
            for find in reduced.finds
        ],
        "dropped": list(reduced.dropped),
        "start": {"failing": failing, "runs": runs},
        "confirmations": reduced.confirmations,
        "compiles_total": reduced.compiles,
        "seconds": round(reduced.seconds, 2),
        "partial": reduced.partial,
        "case": reduced.folder,
    }


def show(reduced: Reduced, request: Request) -> None:
    """What it came to, for people."""
    from reducer.report.nearest import certificate_text

    if reduced.signature:
        click.echo(f"the failure: {one_line(reduced.signature, 300)}\n")
    for tier, stage in reduced.stages.items():
        click.echo(f"{tier} tier:")
        click.echo(stage.level.text(stage.best))
        for one in reduced.explanations.get(tier, ()):
            click.echo(f"  {one_line(one.parameter, 120)}: {one_line(one.still_fails, 160)}")
        before, after = stage.level.size(stage.start), stage.level.size(stage.best)
        if tier in reduced.certificates:
            click.echo(certificate_text(reduced.certificates[tier], reduced.signature))
        smaller, compiles = counted(after, stage.level.unit), counted(stage.compiles, "compiles")
        click.echo(f"{before} -> {smaller}, {compiles}, {stage.seconds:.0f} s; {_end(reduced, tier)}\n")
        if request.script is not None and after == 0:
            click.echo(f"nothing is left: does {request.script} look at the file it is given?\n")
        if tier in reduced.smaller:
            click.echo(f"to go on with what fails the same: {_further(reduced, tier, request)}\n")
    for tier, why in reduced.unreached.items():
        click.echo(f"no {tier} tier: {one_line(why)}")
    for name in reduced.dropped:
        click.echo(f"not needed: {name}")
    for find in reduced.finds:
        where = find.case or "did not fail again, and is not saved"
        click.echo(f"met on the way: {one_line(find.signature, 160)} ({find.size} at the {find.tier} tier): {where}")
    if saved := [find.case for find in reduced.finds if find.case]:
        command = shlex.join(["scanshrink", "reduce", saved[0], "--out", str(request.out)])
        click.echo(f"these are as they were met; {command} makes one small")
    if request.budget is not None and reduced.partial:
        click.echo("the budget counts what earlier runs of the same reduction compiled: a larger one goes on")
    click.echo(f"{counted(reduced.compiles, 'compiles')} in all, {reduced.seconds:.0f} s")
    if not reduced.signature:
        click.echo("the minimum does not fail: it is no case, and these files are all that is kept")
    for file in reduced.files.values():
        click.echo(file)
    if reduced.signature:
        click.echo(f"{reduced.folder}/report.md")
        if not reduced.partial:
            click.echo(f"next: scanshrink bisect {shlex.quote(reduced.folder)} (since which release it fails)")


def _end(reduced: Reduced, tier: Tier) -> str:
    if reduced.stages[tier].minimal:
        return "1-minimal"
    if tier in reduced.smaller:
        return "not 1-minimal: a smaller neighbour fails the same, as the certificate found"
    return "stopped early; the same command goes on"


def _further(reduced: Reduced, tier: Tier, request: Request) -> str:
    """The command that reduces what a certificate found, on the target and with the patterns of this reduction."""
    target = reduced.target
    words = ["scanshrink", "reduce", reduced.smaller[tier], "--libtpu", target.libtpu, "--topology", target.topology]
    for name, value in target.options:
        words += ["--option", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    for pattern in request.keep:
        words += ["--keep", pattern]
    return shlex.join([*words, "--out", str(request.out)])
