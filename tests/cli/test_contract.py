"""What holds for every command: help, usage errors, error lines, output that cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from reducer.cli import main
from reducer.cli.common import Command, one_line
from reducer.errors import StorageError

from .fakes import invoke, machine, one_error

ROOT = Path(__file__).resolve().parents[2]


def commands(command: click.Command, name: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield name
    if isinstance(command, click.Group):
        context = click.Context(command)
        for part in command.list_commands(context):
            child = command.get_command(context, part)
            assert child is not None
            yield from commands(child, (*name, part))


COMMANDS = list(commands(main))
LEAVES = [name for name in COMMANDS if name not in ((), ("corpus",), ("libtpu",))]


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_help_has_an_example(name: tuple[str, ...]) -> None:
    ran = invoke(*name, "--help")
    assert ran.exit_code == 0
    assert f"Example: scanshrink {' '.join(name)}".rstrip() in ran.stdout
    assert ran.stderr == ""


@pytest.mark.parametrize("name", LEAVES, ids=" ".join)
def test_every_command_has_json(name: tuple[str, ...]) -> None:
    assert "--json" in invoke(*name, "--help").stdout


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_an_unknown_option_is_one_line(name: tuple[str, ...]) -> None:
    one_error(invoke(*name, "--nonsense"), "--nonsense", " ".join(("see scanshrink", *name, "--help")))


@pytest.mark.parametrize("name", LEAVES, ids=" ".join)
def test_an_unknown_option_for_machines(name: tuple[str, ...]) -> None:
    data, code = machine(*name, "--nonsense")
    assert code == 2
    assert (data["schema"], data["command"]) == (1, " ".join(name))
    assert set(data) == {"schema", "command", "error"}
    assert data["error"]["kind"] == "usage"
    assert "--nonsense" in data["error"]["message"]


@pytest.mark.parametrize(
    "words",
    [
        ("frobnicate",),
        ("corpus", "frobnicate"),
        ("check",),
        ("check", "--jobs", "0", "x"),
        ("check", "--jobs", "x", "y"),
        ("hunt", "--seconds", "0"),
        ("hunt", "--seconds", "soon"),
        ("hunt", "--seconds", "nan"),
        ("hunt", "--grace", "inf"),
        ("check", "--timeout", "nan", "x"),
        ("hunt", "--seed", "1.5"),
        ("hunt", "--budget", "0"),
        ("hunt", "surplus"),
        ("libtpu", "fetch"),
    ],
    ids=" ".join,
)
def test_bad_usage_is_one_line(words: tuple[str, ...]) -> None:
    one_error(invoke(*words))


def test_no_command_shows_the_help() -> None:
    ran = invoke()
    assert ran.exit_code == 2
    assert "Commands:" in ran.output


def test_version() -> None:
    ran = invoke("--version")
    assert (ran.exit_code, ran.stdout.split(", ")[0]) == (0, "scanshrink")


@click.command("broken", cls=Command)
@click.option("--json", "as_json", is_flag=True)
@click.option("--how")
def broken(as_json: bool, how: str) -> None:
    """Fail."""
    del as_json
    if how == "ours":
        raise StorageError("cannot\nwrite", hint="make room")
    if how == "ctrl-c":
        raise KeyboardInterrupt
    if how == "pipe":
        raise BrokenPipeError
    raise RuntimeError("a bug")


@pytest.fixture
def with_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "get_command", lambda _, name: broken if name == "broken" else None)


@pytest.mark.usefixtures("with_broken")
def test_our_errors_are_one_line() -> None:
    one_error(invoke("broken", "--how", "ours"), "scanshrink broken: cannot write (make room)")


@pytest.mark.usefixtures("with_broken")
def test_our_errors_for_machines() -> None:
    data, code = machine("broken", "--how", "ours")
    assert code == 2
    assert data == {
        "schema": 1,
        "command": "broken",
        "error": {"kind": "storage", "message": "cannot\nwrite", "hint": "make room"},
    }


@pytest.mark.usefixtures("with_broken")
def test_ctrl_c() -> None:
    ran = invoke("broken", "--how", "ctrl-c")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (130, "", "scanshrink broken: interrupted\n")


@pytest.mark.usefixtures("with_broken")
def test_a_bug_of_ours_is_not_dressed_up() -> None:
    with pytest.raises(RuntimeError, match="a bug"):
        invoke("broken", "--how", "bug")


def test_one_line() -> None:
    assert one_line(" a\n  b\t c ") == "a b c"
    assert one_line("x" * 20, 10) == "xxxxxxx..."


def scanshrink(*words: str, **streams: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reducer.cli", *words]
    return subprocess.run(command, text=True, cwd=ROOT, check=False, **streams)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize(
    "words",
    [("--help",), ("--version",), ("hunt", "--help"), ("corpus", "list", "--help"), ("corpus", "list", "corpus")],
    ids=" ".join,
)
def test_a_reader_that_goes_away_is_no_error(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "reducer.cli", *words]
    reading, writing = os.pipe()
    os.close(reading)  # before anything is written
    try:
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_output_that_cannot_be_written_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        for words in (("--help",), ("corpus", "list", "corpus"), ("corpus", "list", "corpus", "--json")):
            done = scanshrink(*words, stdout=full, stderr=subprocess.PIPE)
            assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
            assert "cannot write the output" in done.stderr


def test_closed_streams() -> None:
    shell = f"{sys.executable} -m reducer.cli corpus list nowhere"
    for closing, code in ((">&-", 2), ("2>&-", 2), (">&- 2>&-", 2)):
        done = subprocess.run(["sh", "-c", f"{shell} {closing}"], capture_output=True, text=True, cwd=ROOT, check=False)
        assert done.returncode == code
        assert "Traceback" not in done.stderr


def test_help_needs_no_jax() -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom reducer.cli import main\n"
        f"for name in {COMMANDS!r}:\n"
        "    assert CliRunner().invoke(main, [*name, '--help']).exit_code == 0\n"
        "    heavy = {'jax', 'jaxlib', 'libtpu'} & set(sys.modules)\n    assert not heavy, (name, heavy)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
