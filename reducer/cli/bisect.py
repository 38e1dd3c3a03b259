"""`scanshrink bisect`: since which release does a program fail, and is it fixed?"""

from __future__ import annotations

import sys
from typing import Any

import click

from reducer.bisect import Bisection, bisect
from reducer.cli import session
from reducer.cli.common import Command, Seconds, emit_json, json_option, one_line, say
from reducer.cli.inputs import Item, read
from reducer.corpus.runner import ask_case
from reducer.errors import InputError, TargetError
from reducer.oracle.outcome import Invalid
from reducer.oracle.releases import cached_releases, list_releases
from reducer.oracle.target import RELEASE, installed_libtpu, release_order
from reducer.oracle.verdict import verdict
from reducer.words import counted

#: Older ones do not work with any jaxlib that scanshrink supports.
OLDEST = "0.0.22"


@click.command("bisect", cls=Command)
@click.argument("program", metavar="PROGRAM")
@click.option("--from", "oldest", metavar="VERSION", help=f"First release; default: {OLDEST}.")
@click.option("--to", "newest", metavar="VERSION", help="Last release; default: the installed one.")
@click.option("--fetched", is_flag=True, help="Only releases that are on this machine, the installed one included.")
@click.option(
    "--by",
    type=click.Choice(["family", "signature"]),
    default="family",
    show_default=True,
    help="What must change: a signature does with every rewording of a message.",
)
@click.option("--topology", metavar="NAME", help="TPU topology; default: the case's, or v5e:2x2.")
@click.option("--timeout", type=Seconds(min=0.1), metavar="SECONDS", help="Per release; default 60.")
@json_option
def bisect_command(
    program: str,
    oldest: str | None,
    newest: str | None,
    fetched: bool,
    by: str,
    topology: str | None,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Find the libtpu releases between which PROGRAM begins to fail, fails in another way, or is fixed.

    PROGRAM is as for `scanshrink check`. Releases are fetched as they are needed (some 500 MB each, kept); those that
    do not work with the installed jaxlib are skipped. Between two releases on which the same happens nothing is
    looked for. Exit code 1 if there is no boundary.

    \b
    Example: scanshrink bisect corpus/bitcast-memory-space-4ea629f9 --from 0.0.36 --to 0.0.52
    """
    item = read(program)
    if item.case is not None and item.case.kind in ("flaky", "slow-compile"):
        raise InputError(
            f"{program}: is a failure of kind {item.case.kind}, which one compile on each release does not tell",
            hint="`scanshrink check --repeat 20` on the releases of interest",
        )
    here = frozenset(cached_releases()) | ({installed[0]} if (installed := installed_libtpu()) else set())
    releases = _range(oldest or OLDEST, newest or _installed(), here if fetched else None)
    probe = _Probe(item, topology, timeout, by)
    found = bisect(releases, probe, cheap=here)
    if not found.tried and probe.invalid is not None:
        raise probe.invalid
    if not found.tried:
        raise TargetError(
            f"none of the {len(releases)} releases from {releases[0]} to {releases[-1]} works with this jaxlib",
            hint="give a newer --from or --to",
        )
    if as_json:
        _emit(found, here)
    else:
        _show(found)
    sys.exit(0 if found.boundaries else 1)


def _installed() -> str:
    installed = installed_libtpu()
    if installed is None:
        raise TargetError("no libtpu is installed", hint="name the last release with --to")
    return installed[0]


def _range(oldest: str, newest: str, only: frozenset[str] | None) -> list[str]:
    for version in (oldest, newest):
        if not RELEASE.match(version):
            raise InputError(f"{version!r} is no libtpu release", hint='such as "0.0.50.1"')
    low, high = release_order(oldest), release_order(newest)
    if low >= high:
        raise InputError(f"{oldest} does not come before {newest}", hint="--from names the older release")
    known = sorted(only, key=release_order) if only is not None else list_releases()
    between = [release for release in known if low <= release_order(release) <= high]
    if len(between) < 2:
        what = "fetched" if only is not None else "known"
        raise InputError(f"fewer than two {what} releases from {oldest} to {newest}", hint="scanshrink libtpu list")
    return between


class _Probe:
    """Compiles the item on one release after the other."""

    def __init__(self, item: Item, topology: str | None, timeout: float | None, by: str) -> None:
        self._item, self._topology, self._timeout, self._by = item, topology, timeout, by
        self.invalid: InputError | None = None
        self._judged = False

    def __call__(self, release: str) -> str | None:
        """The failure's family or signature, "ok", or None where it cannot be judged.

        Raises:
            InputError: the program does not come before the compiler on any release so far.
            TargetError, StorageError: the release cannot be had.
        """
        item = self._item
        (target,) = session.targets([release], self._topology or item.topology, item.options)
        try:
            with session.open_pool(target, 1, timeout=self._timeout) as pool:
                session.require_compatible(pool)
                case = item.case
                asked = pool.submit(item.job, want_ledger=True) if case is None else ask_case(pool, case, item.job)
                result = asked.result()
        except TargetError as error:
            say(f"{release:12} skipped: {one_line(error.message, 160)}")
            return None
        if isinstance(result.answer, Invalid):
            # An older libtpu may answer so that JAX gives up; on two releases alone it is the program's fault.
            invalid = InputError(
                f"{item.name}: {one_line(result.answer.message, 300)}", hint="it never reached the compiler"
            )
            if self.invalid is not None and not self._judged:
                raise invalid
            self.invalid = invalid
            say(f"{release:12} skipped: {one_line(result.answer.message, 160)}")
            return None
        self._judged = True
        found = verdict(result)
        if found.failure is not None:
            state = found.failure.family if self._by == "family" else found.failure.text
        elif found.word == "not-measurable" and not found.reason.startswith("it compiles"):
            say(f"{release:12} skipped: {one_line(found.reason, 160)}")
            return None
        else:
            state = "ok" if found.word == "not-measurable" else found.word
        say(f"{release:12} {one_line(state, 160)}")
        return state


def _emit(found: Bisection, before: frozenset[str]) -> None:
    rows: list[dict[str, Any]] = [
        {"last": b.last, "first": b.first, "from": b.before, "to": b.after, "between": list(b.skipped)}
        for b in found.boundaries
    ]
    emit_json(
        "bisect",
        boundaries=rows,
        tried={release: found.states[release] for release in found.tried},
        skipped=list(found.skipped),
        fetched=sorted(set(cached_releases()) - before, key=release_order),
    )


def _show(found: Bisection) -> None:
    for b in found.boundaries:
        unsure = f" ({counted(len(b.skipped), 'releases')} between them cannot be judged)" if b.skipped else ""
        click.echo(f"{b.last} {one_line(b.before, 120)}  ->  {b.first} {one_line(b.after, 120)}{unsure}")
    if not found.boundaries:
        tried = found.tried
        state = one_line(found.states[tried[0]] or "", 160)
        click.echo(f"no boundary: {state} on {tried[0]} as on {tried[-1]}")
