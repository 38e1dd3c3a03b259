"""What every command shares: target options, the error contract, JSON output.

Exit codes: 0 = did what was asked, 1 = the answer is no, 2 = bad usage or input. An error is one line on stderr, and
with ``--json`` also ``{"schema": 1, "command": ..., "error": {"kind", "message", "hint"}}`` on stdout.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from reducer.errors import ScanshrinkError

SCHEMA = 1
F = TypeVar("F", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose typed errors become one line and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command under the error contract."""
        try:
            return super().invoke(ctx)
        except ScanshrinkError as error:
            fail(self.name or "", error, as_json=bool(ctx.params.get("as_json")))
        except BrokenPipeError:
            # The reader of our output went away (as `head` does); nothing is left to say.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)


def fail(command: str, error: ScanshrinkError, *, as_json: bool) -> None:
    """Print the error by the contract and leave with exit code 2."""
    if as_json:
        emit_json(command, error={"kind": error.kind, "message": error.message, "hint": error.hint})
    click.echo(f"scanshrink {command}: {one_line(str(error))}", err=True)
    sys.exit(2)


def one_line(text: str, limit: int = 500) -> str:
    """The text on one line, cut at `limit` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."


def emit_json(command: str, **fields: Any) -> None:
    """Print the one JSON object a command ends with."""
    click.echo(json.dumps({"schema": SCHEMA, "command": command, **fields}))


def target_options(*, many: bool = False) -> Callable[[F], F]:
    """Add ``--libtpu`` (repeatable if `many`), ``--topology`` and ``--option``."""

    def add(command: F) -> F:
        options = [
            click.option(
                "--libtpu",
                "libtpus" if many else "libtpu",
                metavar="VERSION|PATH",
                multiple=many,
                help="libtpu release (fetched on first use) or path of a libtpu.so; default: the installed one."
                + (" Repeatable." if many else ""),
            ),
            click.option("--topology", metavar="NAME", default=None, help="TPU topology; default v5e:2x2."),
            click.option(
                "--option",
                "options",
                metavar="NAME=VALUE",
                multiple=True,
                help="XLA compiler option. Repeatable.",
            ),
        ]
        return functools.reduce(lambda f, option: option(f), reversed(options), command)

    return add


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object; progress goes to stderr.")
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=None,
    metavar="N",
    help="Worker processes; default: the number of cores.",
)


def default_jobs(jobs: int | None) -> int:
    """`jobs`, or the number of cores this process may use."""
    return jobs or len(os.sched_getaffinity(0))
