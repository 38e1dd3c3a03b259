"""What every command shares: target options, the error contract, JSON output.

Exit codes: 0 = did what was asked, 1 = the answer is no, 2 = bad usage or input, 130 = Ctrl-C. An error is one line
on stderr, and with ``--json`` also ``{"schema": 1, "command": ..., "error": {"kind", "message", "hint"}}`` on stdout.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from reducer.errors import ScanshrinkError

SCHEMA = 1
INTERRUPTED = 130
F = TypeVar("F", bound=Callable[..., Any])


class UsageError(ScanshrinkError):
    """A command line that cannot be understood."""

    kind = "usage"


class Command(click.Command):
    """A command whose typed errors become one line and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command under the error contract."""
        command = ctx.command_path.partition(" ")[2] or (self.name or "")
        as_json = bool(ctx.params.get("as_json"))
        try:
            with nobody_reads():
                result = super().invoke(ctx)
                if sys.stdout is not None:
                    sys.stdout.flush()
                return result
        except ScanshrinkError as error:
            fail(command, error, as_json=as_json)
        except KeyboardInterrupt:
            say(f"scanshrink {command}: interrupted")
            sys.exit(INTERRUPTED)


@contextlib.contextmanager
def nobody_reads() -> Iterator[None]:
    """Leave with exit code 0 when the reader of our output goes away, as `head` does: nothing is left to say.

    click would make an exit code of 1 of it, which is an answer here.
    """
    try:
        yield
    except BrokenPipeError:
        silence_stdout()
        raise click.exceptions.Exit(0) from None


class Group(click.Group):
    """A group whose commands are `Command`s."""

    command_class = Command


class Main(click.Group):
    """The outermost group: usage errors keep the contract, too."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the command line, which prints help."""
        with nobody_reads():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; that prints its help, too."""
        with nobody_reads():
            return super().invoke(ctx)

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run the command line; leaves by `SystemExit` unless `standalone_mode` is false."""
        if not extra.pop("standalone_mode", True):
            return super().main(args, standalone_mode=False, **extra)
        words = list(sys.argv[1:] if args is None else args)
        try:
            # click gives the code of an Exit (--help, ctx.exit) as the result.
            result = super().main(words, standalone_mode=False, **extra)
        except click.UsageError as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # click 8.2 and newer; its message is the help
                say(error.format_message())
                sys.exit(2)
            path = error.ctx.command_path.partition(" ")[2] if error.ctx is not None else ""
            usage = UsageError(error.format_message(), hint=f"see {' '.join(('scanshrink', *path.split()))} --help")
            fail(path, usage, as_json="--json" in words)
        except (click.Abort, KeyboardInterrupt):
            say("scanshrink: interrupted")
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            silence_stdout()
            sys.exit(0)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO) or error.filename is not None:
                raise
            silence_stdout()
            say(f"scanshrink: cannot write the output: {error.strerror}")
            sys.exit(2)
        sys.exit(result if isinstance(result, int) else 0)


def fail(command: str, error: ScanshrinkError, *, as_json: bool, **fields: Any) -> NoReturn:
    """Print the error by the contract and leave with exit code 2. `fields` go into the JSON beside it."""
    if as_json:
        emit_json(command, **fields, error=error_fields(error))
    if isinstance(theirs := getattr(error, "traceback", None), str):
        say(theirs.rstrip())  # of a script of the user's own
    say(f"{' '.join(('scanshrink', *command.split()))}: {one_line(str(error))}")
    sys.exit(2)


def error_fields(error: ScanshrinkError) -> dict[str, str]:
    """The error, as ``--json`` gives it."""
    return {"kind": error.kind, "message": error.message, "hint": error.hint}


def say(text: str) -> None:
    """Print a line on stderr, if there is one."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)


def silence_stdout() -> None:
    """Send what is still buffered nowhere: flushing it at exit would fail again."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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


class Seconds(click.FloatRange):
    """A finite number of seconds; Python would also read ``nan`` and ``inf``."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or click's error."""
        seconds = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value!r} is not a finite number of seconds.", param, ctx)
        return float(seconds)


class NamedPath(click.Path):
    """A path that is not empty: ``--out "$OUT"`` with no such variable would write into the current folder."""

    def __init__(self, **rules: Any) -> None:
        super().__init__(path_type=Path, **rules)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or click's error."""
        if value == "":
            self.fail("the path is empty.", param, ctx)
        return super().convert(value, param, ctx)


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
