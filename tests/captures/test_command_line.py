"""`scanshrink capture` around commands that need no JAX: their output, status and signals stay theirs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reducer.runs import keeps_hook_out

from .conftest import Capture


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("python -I train.py", "-I"),
        ("/usr/bin/python3.12 -uE train.py", "-E"),
        ("python3 -W ignore -X dev -S -m train", "-S"),
        ("python -Wignore -Ic pass", "-I"),
        ("python train.py -I", ""),
        ("python -m train -E", ""),
        ("python -c pass -S", ""),
        ("python -W -I train.py", ""),
        ("python -u - -I", ""),
        ("python --version -I", ""),
        ("python", ""),
        ("bash -I", ""),
        ("mypython -I", ""),
        ("", ""),
    ],
)
def test_options_that_keep_the_hook_out(command: str, option: str) -> None:
    assert keeps_hook_out(command.split()) == option


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_a_python_without_the_hook_is_not_even_started(run: Capture, tmp_path: Path, option: str) -> None:
    ran = run("--", sys.executable, option, "-c", "open('started', 'w')")
    assert ran.returncode == 2
    assert ran.stderr == (
        f"scanshrink capture: {sys.executable} {option} ignores PYTHONPATH or site, through which the hook is loaded "
        f"(run it without {option})\n"
    )
    assert list(tmp_path.iterdir()) == []


MISSING = (
    "scanshrink capture: the hook did not load: the command started no Python, or one with -I, -E, -S or another "
    "PYTHONPATH (give the python command itself)\n"
)


@pytest.mark.parametrize("line", ["echo hello", f"{sys.executable} -Ic 'print(\"hello\")'"])
def test_a_hook_that_did_not_load(run: Capture, tmp_path: Path, line: str) -> None:
    ran = run("--json", "--", "sh", "-c", line)
    assert (ran.returncode, ran.stdout) == (2, "hello\n")
    assert MISSING in ran.stderr
    data = json.loads(ran.stderr.splitlines()[-1])
    assert (data["status"], data["processes"], data["error"]["kind"]) == (0, 0, "input")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--", "no-such-command-at-all"], "cannot run no-such-command-at-all: No such file or directory"),
        (["--match", "(", "--", "true"], "--match '(' is no regular expression"),
        ([], "Missing argument"),
        (["--out", "file/x", "--", "true"], "cannot write to"),
    ],
)
def test_what_cannot_be_run(run: Capture, tmp_path: Path, words: list[str], says: str) -> None:
    (tmp_path / "file").write_text("")
    ran = run(*words)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert says in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_output_and_status_are_the_commands_own(run: Capture, script: Callable[[str], str]) -> None:
    path = script("import sys\nprint(sys.stdin.read(), sys.argv[1:])\nprint('two', file=sys.stderr)\nsys.exit(7)")
    ran = run("--", sys.executable, path, "--json", "-I", "--out", "x")
    assert (ran.returncode, ran.stdout) == (7, " ['--json', '-I', '--out', 'x']\n")
    assert ran.stderr == "two\nscanshrink capture: nothing captured: JAX was never imported\n"


def test_options_end_where_the_command_begins(run: Capture) -> None:
    ran = run(sys.executable, "-c", "import sys; print(sys.argv)", "--all")
    assert (ran.returncode, ran.stdout) == (0, "['-c', '--all']\n")


def test_the_users_own_sitecustomize_is_loaded(run: Capture, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys\nsys.mine = __file__\n")
    code = "import sys, sitecustomize; print(sys.mine, sitecustomize.__file__, [p for p in sys.path if 'hook' in p])"
    ran = run("--", sys.executable, "-c", code, PYTHONPATH=f"{Path(__file__).parents[2]}:{own}")
    path = own / "sitecustomize.py"
    assert (ran.returncode, ran.stdout) == (0, f"{path} {path} []\n")


def test_a_sitecustomize_that_fails_says_so_as_without_us(run: Capture, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("1 / 0\n")
    ran = run("--", sys.executable, "-c", "print(1)", PYTHONPATH=f"{Path(__file__).parents[2]}:{own}")
    assert (ran.returncode, ran.stdout) == (0, "1\n")
    assert "ZeroDivisionError: division by zero" in ran.stderr


def test_a_killed_command_has_the_status_a_shell_gives_it(run: Capture) -> None:
    ran = run("--json", "--", sys.executable, "-c", "import os; os.abort()")
    assert ran.returncode == 128 + signal.SIGABRT
    assert "scanshrink capture: the command was killed by SIGABRT\n" in ran.stderr
    assert json.loads(ran.stderr.splitlines()[-1])["signal"] == "SIGABRT"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_command(environment: dict[str, str], tmp_path: Path, number: signal.Signals) -> None:
    code = (
        "import signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(5))\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "reducer.cli", "capture", "--", sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, stderr = process.communicate()
    assert process.returncode == 5
    assert stderr == "scanshrink capture: interrupted\nscanshrink capture: nothing captured: JAX was never imported\n"
    assert list(tmp_path.iterdir()) == []


def test_the_command_finds_no_signal_blocked(run: Capture) -> None:
    code = "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    assert run("--", sys.executable, "-c", code).stdout == "set()\n"
