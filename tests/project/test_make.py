"""The Makefile: what a new user meets when something is missing, and that an interrupted install is taken up again."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def make(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    # This run itself may be a make's child, and must not hand on what that one was told.
    told = ("MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MFLAGS", "PYTHON", "VENV", "ARGS", "PYTEST_ARGS")
    return subprocess.run(
        ["make", "-f", str(ROOT / "Makefile"), *arguments],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name not in told},
        capture_output=True,
        text=True,
        check=False,
    )


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the files that `make venv` looks at."""
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).touch()
    return tmp_path


#: Stands for a Python that is new enough; its venvs have a `python` whose pip notes that it was called.
GOOD = """
if [ "$1" = -m ]; then
    mkdir -p "$3/bin"
    printf '#!/bin/sh\\n[ "$3" = install ] || exit 0\\necho installed >>calls\\n[ ! -e fail ]\\n' >"$3/bin/python"
    chmod +x "$3/bin/python"
    echo made >>calls
fi
"""


def calls(checkout: Path) -> list[str]:
    return (checkout / "calls").read_text(encoding="utf-8").split()


def test_no_python(checkout: Path) -> None:
    done = make("venv", "PYTHON=no-such-python", folder=checkout)
    assert done.returncode == 2
    assert done.stderr.startswith("error: no no-such-python on this machine; install Python 3.11 or newer")


def test_old_python(checkout: Path) -> None:
    old = program(checkout / "old", 'case $1 in --version) echo "Python 3.9.1";; *) exit 1;; esac')
    done = make("venv", f"PYTHON={old}", folder=checkout)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {old} is Python 3.9.1, and Python 3.11 or newer is needed")


def test_python_without_venv(checkout: Path) -> None:
    bare = program(checkout / "bare", 'case $1 in -m) mkdir -p "$3"; exit 1;; esac')
    done = make("venv", f"PYTHON={bare}", folder=checkout)
    assert done.returncode == 2
    assert "install its venv module" in done.stderr
    assert not (checkout / ".venv").exists()


def test_installs_once_and_again_when_the_versions_change(checkout: Path) -> None:
    good = program(checkout / "good", GOOD)
    assert make("venv", f"PYTHON={good}", folder=checkout).returncode == 0
    assert make("venv", f"PYTHON={good}", folder=checkout).returncode == 0
    assert calls(checkout) == ["made", "installed"]
    stamp = (checkout / ".venv" / ".installed").stat().st_mtime
    for name in ("pyproject.toml", "constraints.txt"):
        os.utime(checkout / name, (stamp + 100, stamp + 100))
        assert make("venv", f"PYTHON={good}", folder=checkout).returncode == 0
        os.utime(checkout / name, (stamp - 100, stamp - 100))
    assert calls(checkout) == ["made", "installed", "installed", "installed"]


def test_an_interrupted_install_is_taken_up_again(checkout: Path) -> None:
    good = program(checkout / "good", GOOD)
    (checkout / "fail").touch()
    assert make("venv", f"PYTHON={good}", folder=checkout).returncode == 2
    (checkout / "fail").unlink()
    assert make("venv", f"PYTHON={good}", folder=checkout).returncode == 0
    assert calls(checkout) == ["made", "installed", "installed"]


def test_a_broken_environment_is_made_anew(checkout: Path) -> None:
    good = program(checkout / "good", GOOD)
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".venv" / "bin" / "python").symlink_to(checkout / "gone")
    assert make("venv", f"PYTHON={good}", folder=checkout).returncode == 0
    assert calls(checkout) == ["made", "installed"]
