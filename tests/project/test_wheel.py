"""The wheel, built and installed into an environment of its own, works where there is no checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, cwd: Path) -> str:
    """Run `command` outside the checkout, without a trace of it in the environment; return what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built by the build backend that is installed here."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty environment's Python with the wheel installed.

    The dependencies are links to those already here, so that nothing is downloaded (JAX and libtpu are a gigabyte);
    this project itself is the one thing that is not linked.
    """
    home = tmp_path_factory.mktemp("elsewhere")
    run(sys.executable, "-m", "venv", "--without-pip", home / "venv", cwd=home)
    installed = home / "venv" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", installed, "install", "--no-deps", "--no-index", wheel, cwd=home)
    links = home / "dependencies"
    links.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "scanshrink" not in entry.name and entry.suffix != ".pth":
            (links / entry.name).symlink_to(entry)
    own = Path(run(installed, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip())
    (own / "dependencies.pth").write_text(f"{links}\n", encoding="utf-8")
    return installed


def test_wheel_holds_the_packages_with_their_data_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    files = {
        path.relative_to(ROOT).as_posix()
        for package in ("reducer", "strategies")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if ".dist-info/" not in name} == files
    assert {"reducer/py.typed", "strategies/py.typed"} <= names
    (entry_points,) = (name for name in names if name.endswith("entry_points.txt"))
    text = zipfile.ZipFile(wheel).read(entry_points).decode()
    assert "scanshrink = reducer.cli:main" in text
    assert "_ = strategies._entry_point:register" in text
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_command_answers(python: Path, tmp_path: Path) -> None:
    command = python.with_name("scanshrink")
    help_text = run(command, "--help", cwd=tmp_path)
    for name in ("hunt", "check", "doctor"):
        assert name in help_text
        assert "Usage" in run(command, name, "--help", cwd=tmp_path)


def test_programs_are_drawn_without_importing_strategies(python: Path, tmp_path: Path) -> None:
    script = tmp_path / "use.py"
    script.write_text(
        "import json, sys\n"
        "import hypothesis\n"
        "from hypothesis import strategies as st\n"
        "import reducer\n"
        "from reducer.ir.check import check\n"
        "from reducer.ir.codec import decode, encode\n"
        "from reducer.ir.equations import Program\n"
        "drawn = []\n"
        "@hypothesis.settings(max_examples=5, database=None, derandomize=True)\n"
        "@hypothesis.given(st.from_type(Program))\n"
        "def test(program):\n"
        "    check(program)\n"
        "    assert decode(encode(program)) == program\n"
        "    drawn.append(program)\n"
        "test()\n"
        "print(json.dumps({'file': reducer.__file__, 'drawn': len(drawn), 'jax': 'jax' in sys.modules}))\n",
        encoding="utf-8",
    )
    said = json.loads(run(python, script, cwd=tmp_path))
    assert Path(said["file"]).is_relative_to(python.parents[1])
    assert said["drawn"] >= 5
    assert said["jax"] is False
