"""A function in a process of its own: its answer, or how it ended."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reducer import aside
from reducer.aside import run_aside


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes a module with this `main`; the process finds it beside ours."""
    monkeypatch.setattr(
        aside, "_BOOTSTRAP", f"import sys; sys.path.append({str(tmp_path)!r}); " + aside._BOOTSTRAP.partition("; ")[2]
    )

    def make(body: str) -> str:
        (tmp_path / "theirs.py").write_text(f"import os, sys, time\ndef main(argument):\n    {body}\n")
        return "theirs"

    return make


def test_an_answer(module):
    done = run_aside(module("print('said'); print('aside', file=sys.stderr); return argument[::-1] * 100_000"), b"abc")
    assert (done.answer, done.status) == (b"cba" * 100_000, 0)
    assert sorted(done.log.split()) == ["aside", "said"]


@pytest.mark.parametrize(
    ("body", "ended"),
    [
        ("print('before'); sys.stdout.flush(); os._exit(3)", "ended with status 3: before"),
        ("os.abort()", "was killed by signal 6"),
        ("raise ValueError('no')", "ended with status 1: ValueError: no"),
    ],
)
def test_how_it_ended_otherwise(module, body, ended):
    done = run_aside(module(body), b"")
    assert done.answer == b""
    assert done.ended() == ended


def test_limits(module):
    assert "MemoryError" in run_aside(module("return bytes(4 << 30)"), b"", memory=2 << 30).log
    with pytest.raises(subprocess.TimeoutExpired):
        run_aside(module("time.sleep(600)"), b"", seconds=0.5)


def test_the_environment(module):
    done = run_aside(module("return os.environ['X'].encode()"), b"", environment={**os.environ, "X": "1"})
    assert done.answer == b"1"
