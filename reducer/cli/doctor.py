"""`scanshrink doctor`: can this machine compile for TPU, and with what?"""

from __future__ import annotations

import sys

import click
import msgspec

from reducer.cli.common import Command, emit_json, json_option, one_line
from reducer.oracle.doctor import Diagnosis, diagnose


@click.command(cls=Command)
@click.option(
    "--libtpu", metavar="VERSION|PATH", default=None, help="Release or file to try; default: the installed one."
)
@json_option
def doctor(libtpu: str | None, as_json: bool) -> None:
    """Say whether this machine can compile for TPU, with which jax, jaxlib, libtpu and topologies.

    Exit code 1 if it cannot; each problem comes with what to do about it.

    \b
    Example: scanshrink doctor --libtpu 0.0.50.1
    """
    diagnosis = diagnose(libtpu)
    if as_json:
        emit_json("doctor", can_compile=diagnosis.can_compile, **msgspec.to_builtins(diagnosis))
    else:
        _show(diagnosis)
    sys.exit(0 if diagnosis.can_compile else 1)


def _show(diagnosis: Diagnosis) -> None:
    override = diagnosis.tpu_library_path
    rows = (
        ("python", f"{diagnosis.python} on {diagnosis.platform}"),
        ("jax", diagnosis.jax or "missing"),
        ("jaxlib", diagnosis.jaxlib or "missing"),
        ("libtpu", diagnosis.libtpu or "missing"),
        ("loaded", diagnosis.loaded_path or "nothing"),
        ("sha256", diagnosis.loaded_sha256 or "-"),
        ("TPU_LIBRARY_PATH", f"{override} (in the shell; workers are given their own)" if override else "not set"),
        ("topologies", " ".join(diagnosis.topologies) or "none works"),
        ("fetched releases", " ".join(diagnosis.cached_releases) or "none"),
        ("cache", diagnosis.cache),
    )
    for name, value in rows:
        click.echo(f"{name:17} {value}")
    # One libtpu that does not fit has one reason, met once for each topology.
    told: dict[str, str] = {}
    for problem in diagnosis.problems:
        word = "PROBLEM" if problem.fatal else "note"
        hint = f" ({problem.hint})" if problem.hint else ""
        told.setdefault(problem.message[:60], f"{word}: {one_line(problem.message, 300)}{hint}")
    for text in told.values():
        click.echo(text)
    click.echo("this machine can compile for TPU" if diagnosis.can_compile else "this machine cannot compile for TPU")
