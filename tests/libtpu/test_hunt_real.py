"""From nothing to a saved case: a short hunt on the installed libtpu, and what its case is worth afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reducer.corpus import Case, Corpus

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def scanshrink(*words: str, code: int = 0) -> dict[str, Any]:
    """Run a command in a process of its own; its JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "reducer.cli", *words, "--json"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == code, done.stderr
    assert done.stdout.count("\n") == 1
    data: dict[str, Any] = json.loads(done.stdout)
    return data


@pytest.fixture(scope="module")
def hunt(tmp_path_factory: pytest.TempPathFactory, private_cache: Path) -> tuple[dict[str, Any], Path]:
    """What a hunt with two workers gave, and its corpus. The seed is one that finds something early."""
    del private_cache
    folder = tmp_path_factory.mktemp("hunt") / "corpus"
    words = ("--seconds", "8", "--grace", "20", "--budget", "20", "--jobs", "2", "--seed", "5")
    return scanshrink("hunt", *words, "--corpus", str(folder)), folder


def cases(folder: Path) -> list[Case]:
    entries = list(Corpus(folder))
    assert all(isinstance(entry, Case) for entry in entries)
    return [entry for entry in entries if isinstance(entry, Case)]


def test_a_hunt_finds_something(hunt: tuple[dict[str, Any], Path]) -> None:
    data, folder = hunt
    assert data["compiled"] >= 1
    assert data["failing"] >= 1
    assert data["signatures"]
    assert {row["case"] for row in data["signatures"]} <= {str(folder / case.slug) for case in cases(folder)}
    for case in cases(folder):
        assert case.start is not None
        assert case.minimum.size <= case.start.size
    assert not data["interrupted"]


def test_scripts_of_cases_fail_as_recorded_in_a_fresh_process(
    hunt: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    for case in cases(hunt[1]):
        script = hunt[1] / case.slug / "repro.py"
        done = subprocess.run([sys.executable, "-P", script], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, (case.slug, done.stdout, done.stderr)


def test_checking_a_case_gives_its_signature(hunt: tuple[dict[str, Any], Path]) -> None:
    found = cases(hunt[1])
    data = scanshrink("check", *(str(hunt[1] / case.slug) for case in found), "--jobs", "2")
    assert [row["signature"] for row in data["results"]] == [case.signature for case in found]
    assert scanshrink("check", str(hunt[1] / found[0].slug), "--expect", found[0].family)["results"]


def test_the_module_of_a_case_fails_the_same(hunt: tuple[dict[str, Any], Path]) -> None:
    found = [case for case in cases(hunt[1]) if case.minimum.module and case.kind == "error"]
    assert found
    data = scanshrink("check", *(str(hunt[1] / case.slug / case.minimum.module) for case in found), "--jobs", "2")
    assert [row["family"] for row in data["results"]] == [case.family for case in found]


def test_the_corpus_is_as_recorded(hunt: tuple[dict[str, Any], Path]) -> None:
    data = scanshrink("corpus", "verify", str(hunt[1]), "--jobs", "2")
    assert (data["cases"], data["as_recorded"]) == (len(cases(hunt[1])),) * 2


def workers_of(parent: int) -> list[int]:
    """Processes whose parent is `parent`."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found


def test_ctrl_c_leaves_a_corpus_to_resume_and_no_process(tmp_path: Path) -> None:
    words = ["hunt", "--seconds", "600", "--jobs", "1", "--seed", "5", "--corpus", str(tmp_path / "c"), "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "reducer.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("new failure"):
            break
    workers = workers_of(process.pid)
    assert workers
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    data = json.loads(out)
    assert data["interrupted"]
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    (state,) = (tmp_path / "c").glob(".hunt-5-*.json")
    pending = json.loads(state.read_bytes())["pending"]
    assert {row["signature"] for row in pending} or data["signatures"]
