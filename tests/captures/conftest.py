from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
Capture = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What `scanshrink capture` is run with: our sources, JAX on the CPU, nothing of the user's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "TPU_", "LIBTPU_", "SCANSHRINK_"))}
    return {**kept, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "HOME": str(tmp_path)}


@pytest.fixture
def run(tmp_path: Path, environment: dict[str, str]) -> Capture:
    """Run ``scanshrink capture`` with these words, in an empty folder."""

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "reducer.cli", "capture", *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**environment, **more},
            check=False,
        )

    return run


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """Write a script; its path."""

    def write(text: str, name: str = "train.py") -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write
