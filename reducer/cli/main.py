"""The `scanshrink` group. Commands are imported when used, so that ``--help`` answers at once."""

from __future__ import annotations

import importlib

import click

from reducer.cli.common import Main

#: command -> its module and function, in the order ``--help`` shows them
_COMMANDS = {
    "hunt": "reducer.cli.hunt:hunt",
    "check": "reducer.cli.check:check",
    "capture": "reducer.cli.capture:capture",
    "reduce": "reducer.cli.reduce:reduce",
    "bisect": "reducer.cli.bisect:bisect_command",
    "corpus": "reducer.cli.corpus:corpus",
    "libtpu": "reducer.cli.libtpu:libtpu",
    "doctor": "reducer.cli.doctor:doctor",
}


class LazyGroup(Main):
    """A group that imports a command's module when it is first asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """Names in the order of the table."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command, or None if there is none of that name."""
        if cmd_name not in _COMMANDS:
            return None
        module, _, function = _COMMANDS[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), function)
        assert isinstance(command, click.Command)
        return command


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    import importlib.metadata

    try:
        version = importlib.metadata.version("scanshrink")
    except importlib.metadata.PackageNotFoundError:  # running from a source tree that was never installed
        version = "unknown"
    click.echo(f"scanshrink, version {version}")
    ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Find programs the XLA:TPU compiler cannot compile, and shrink them until a person can read them.

    No TPU is needed: libtpu compiles ahead of time on any CPU. Exit codes: 0 = did what was asked,
    1 = the answer is no, 2 = bad usage or input.

    \b
    Example: scanshrink hunt --seconds 60 --corpus finds
    """
