"""`scanshrink libtpu`: which releases there are, which are on this machine, fetch one."""

from __future__ import annotations

import click

from reducer.cli.common import Group, emit_json, json_option
from reducer.errors import InputError
from reducer.oracle.releases import QUOTA, cached_releases, fetch_release, list_releases, releases_folder
from reducer.oracle.target import RELEASE, installed_libtpu


@click.group(cls=Group)
def libtpu() -> None:
    """List and fetch libtpu releases.

    \b
    Example: scanshrink libtpu fetch 0.0.50.1
    """


@libtpu.command("list")
@json_option
def list_(as_json: bool) -> None:
    """Show every release pip knows of, and which are on this machine.

    \b
    Example: scanshrink libtpu list
    """
    installed = installed_libtpu()
    here = set(cached_releases())
    releases = list_releases()
    current = installed[0] if installed else None
    if as_json:
        emit_json(
            "libtpu list", releases=releases, installed=current, cached=sorted(here), folder=str(releases_folder())
        )
        return
    for release in releases:
        marks = [mark for mark, on in (("installed", release == current), ("fetched", release in here)) if on]
        click.echo(f"{release:12} {', '.join(marks)}".rstrip())
    click.echo(f"fetched releases lie in {releases_folder()} (at most {QUOTA >> 30} GiB are kept)", err=True)


@libtpu.command("fetch")
@click.argument("versions", nargs=-1, required=True, metavar="VERSION...")
@json_option
def fetch(versions: tuple[str, ...], as_json: bool) -> None:
    """Download releases through pip into the cache folder; only libtpu.so is kept.

    \b
    Example: scanshrink libtpu fetch 0.0.42.1 0.0.50.1
    """
    for version in versions:
        if not RELEASE.match(version):
            raise InputError(f"{version!r} is no release", hint="such as 0.0.50.1; `scanshrink libtpu list` shows them")
    fetched = {}
    for version in versions:
        fetched[version] = str(fetch_release(version))
        if not as_json:
            click.echo(f"{version:12} {fetched[version]}")
    if as_json:
        emit_json("libtpu fetch", fetched=fetched)
