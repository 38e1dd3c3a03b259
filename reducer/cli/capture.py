"""`scanshrink capture`: run a command as it is, and write down the modules that JAX cannot compile."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from reducer.captures import Capture
from reducer.cli.common import SCHEMA, Command, NamedPath, UsageError, error_fields, one_line, say
from reducer.errors import InputError, ScanshrinkError
from reducer.oracle.outcome import Rejected
from reducer.oracle.signature import signature
from reducer.oracle.target import installed_libtpu
from reducer.runs import Run, keeps_hook_out, run
from reducer.words import counted

_SHOWN = 10


@click.command(cls=Command, context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option(
    "--out",
    type=NamedPath(file_okay=False),
    default=Path("captures"),
    show_default=True,
    metavar="DIR",
    help="Folder of captures.",
)
@click.option("--all", "everything", is_flag=True, help="Keep modules that compile, too.")
@click.option("--match", default="", metavar="REGEX", help="Only modules whose name contains this, such as jit_step.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line on stderr.")
def capture(command: tuple[str, ...], out: Path, everything: bool, match: str, as_json: bool) -> None:
    """Run COMMAND as it is, and write each module that JAX fails to compile in it into a folder.

    Its output and exit status stay its own. Works for Lowered.compile and for plain calls of jitted functions, in
    child processes too, for an ahead-of-time topology and if the compiler takes the process down. Exit code 2 if the
    command's Python did not load the hook.

    \b
    Example: scanshrink capture --out captures -- python train.py --steps 1
             scanshrink reduce captures/jit_step-4711
    """
    _check(command, match)
    ran = run(command, out, match=match, everything=everything)
    wrong = _hook_missing(ran)
    for text in _lines(ran):
        say(f"scanshrink capture: {text}")
    if wrong is not None:
        say(f"scanshrink capture: {one_line(str(wrong))}")
    if as_json:
        say(json.dumps({"schema": SCHEMA, "command": "capture", **_fields(ran), **_error(wrong)}))
    sys.exit(2 if wrong is not None else ran.status)


def _check(command: tuple[str, ...], match: str) -> None:
    try:
        re.compile(match)
    except re.error as error:
        raise UsageError(f"--match {match!r} is no regular expression: {error}") from None
    option = keeps_hook_out(command)
    if option:
        raise UsageError(
            f"{command[0]} {option} ignores PYTHONPATH or site, through which the hook is loaded",
            hint=f"run it without {option}",
        )


def _hook_missing(ran: Run) -> ScanshrinkError | None:
    """Why nothing could have been captured, if so."""
    if not ran.processes:
        return InputError(
            "the hook did not load: the command started no Python, or one with -I, -E, -S or another PYTHONPATH",
            hint="give the python command itself",
        )
    if ran.unhooked and not ran.hooked:
        return InputError(f"the hook does not know this JAX: {ran.unhooked[0]}")
    return None


def _lines(ran: Run) -> list[str]:
    """What is said at the end, for people."""
    lines = [f"warning: {one_line(trouble, 300)}" for trouble in ran.troubles]
    if ran.interrupted:
        lost = f"; not kept, because it was being compiled: {', '.join(ran.lost)}" if ran.lost else ""
        lines.append(f"interrupted{lost}")
    elif ran.signal:
        lines.append(f"the command was killed by {ran.signal}")
    if ran.cached:
        lines.append(
            f"{counted(ran.cached, 'modules')} came out of JAX's persistent compilation cache, not compiled "
            "(JAX_ENABLE_COMPILATION_CACHE=false compiles them)"
        )
    lines += [_line(found) for found in ran.captures[:_SHOWN]]
    if len(ran.captures) > _SHOWN:
        lines.append(f"and {len(ran.captures) - _SHOWN} more")
    if ran.unmatched:
        lines.append(f"{counted(ran.unmatched, 'other modules')} failed to compile, not matching --match")
    if not ran.captures:
        lines.append(_nothing(ran))
    elif (command := _next(ran)) is not None:
        lines.append(f"next: {command}")
    return lines


def _nothing(ran: Run) -> str:
    if not ran.hooked:
        return "nothing captured: JAX was never imported"
    if not ran.compiled and not ran.failed and not ran.lost:
        return "nothing captured: nothing was compiled"
    if ran.interrupted:
        return f"nothing captured: {counted(ran.compiled, 'modules')} compiled until then"
    return f"nothing captured: {counted(ran.compiled, 'modules')} compiled, {ran.failed} failed"


def _line(found: Capture) -> str:
    where = f"{found.partitions * found.replicas} x {found.device_kind or found.platform or 'unknown device'}"
    return f"{shown(found)}: {found.name}, {where}: {one_line(_what(found), 240)}"


def _what(found: Capture) -> str:
    if found.outcome == "compiled":
        return "compiles"
    known = signature(Rejected(found.error.message)) if found.outcome == "failed" else None
    return known.text if known is not None else found.error.message or found.error.type


def shown(found: Capture) -> str:
    """The folder as a user would type it."""
    folder = Path(found.folder)
    try:
        return str(folder.relative_to(Path.cwd()))
    except ValueError:
        return str(folder)


def _next(ran: Run) -> str | None:
    first = next((found for found in ran.captures if found.outcome != "compiled"), None)
    if first is None:
        return None
    there, here = first.environment.libtpu, installed_libtpu()
    other = first.platform == "tpu" and there and (here is None or here[0] != there)
    return f"scanshrink reduce {shlex.quote(shown(first))}" + (f" --libtpu {shlex.quote(there)}" if other else "")


def _fields(ran: Run) -> dict[str, Any]:
    return {
        "status": ran.status,
        "signal": ran.signal or None,
        "interrupted": ran.interrupted,
        "captures": [
            {
                "folder": found.folder,
                "name": found.name,
                "outcome": found.outcome,
                "partitions": found.partitions,
                "replicas": found.replicas,
                "device_kind": found.device_kind,
                "topology": found.topology or None,
                "message": found.error.message,
                "seconds": round(found.seconds, 3),
                "pid": found.pid,
            }
            for found in ran.captures
        ],
        "processes": ran.processes,
        "compiled": ran.compiled,
        "failed": ran.failed,
        "unmatched": ran.unmatched,
        "cached": ran.cached,
        "warnings": list(ran.troubles),
        "next": _next(ran),
    }


def _error(wrong: ScanshrinkError | None) -> dict[str, Any]:
    return {"error": error_fields(wrong)} if wrong is not None else {}
