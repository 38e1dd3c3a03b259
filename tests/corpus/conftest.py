from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reducer.corpus import Case, Corpus

from .cases import build


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(tmp_path / "corpus")


@pytest.fixture
def make() -> Callable[..., Case]:
    return build


@pytest.fixture
def pytester_run() -> Callable[[Path], str]:
    """Run pytest in a process of its own on a folder, and return what it prints."""

    def run(folder: Path) -> str:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-ra",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            str(folder),
            str(folder),
        ]
        return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False).stdout

    return run
