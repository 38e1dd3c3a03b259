"""Several processes on one corpus, and processes that die in the middle of a write."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reducer.corpus import Case, Corpus, Status

from .cases import FILES

pytestmark = pytest.mark.slow

Make = Callable[..., Case]
HERE = Path(__file__).parent
PREAMBLE = f"import sys; sys.path.insert(0, {str(HERE)!r})\n"

HUNT = """
from pathlib import Path
from cases import FILES, build
from reducer.corpus import Corpus
folder, offset = Path(sys.argv[1]), int(sys.argv[2])
sys.stdin.readline()  # all begin together
corpus = Corpus(folder, report=lambda case: f"size {case.minimum.size}")
for i in range(15):
    size = 20 - i + offset
    corpus.add(build(size, signature=f"shared {i % 2}"), FILES | {"repro.py": f"size {size}"})
    if i % 5 == 0:
        corpus.add(build(2, signature=f"own {offset} {i}"), FILES)
"""

# A process that kills itself at the n-th call that changes anything on disk, for n = 0, 1, ... until it survives.
KILL = """
import json, os, shutil, signal
from pathlib import Path
from cases import FILES, build
from reducer.corpus import Corpus, atomic

CALLS = ("open", "write", "fsync", "rename", "replace", "mkdir", "unlink", "rmdir")

def die_at(n):
    left = n
    def wrap(real):
        def call(*args, **kwargs):
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return real(*args, **kwargs)
        return call
    for name in CALLS:
        setattr(os, name, wrap(getattr(os, name)))

def attempt(folder, n, size):
    child = os.fork()
    if child == 0:
        die_at(n)
        Corpus(folder).add(build(size), FILES | {"repro.py": f"size {size}"})
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

base, old, new = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for n in range(1000):
    folder = base / str(n)
    if old:
        Corpus(folder).add(build(old), FILES | {"repro.py": f"size {old}"})
    code = attempt(folder, n, new)
    print(json.dumps([n, code]), flush=True)
    if code == 0:
        break
"""


def start(code: str, *args: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PREAMBLE + code, *map(str, args)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=HERE.parents[1]
    )


def test_three_hunts_on_one_corpus_lose_nothing(corpus: Corpus) -> None:
    hunts = [start(HUNT, corpus.folder, offset) for offset in range(3)]
    for hunt in hunts:
        assert hunt.stdin is not None
        hunt.stdin.write("\n")
        hunt.stdin.flush()
    while any(hunt.poll() is None for hunt in hunts):
        # A reader takes no lock, and must never see half a case or none.
        seen = list(corpus)
        assert {type(entry) for entry in seen} <= {Case}, seen
    for hunt in hunts:
        _, errors = hunt.communicate()
        assert hunt.returncode == 0, errors
    cases = {c.signature: c for c in corpus if isinstance(c, Case)}
    assert len(cases) == 2 + 9
    assert [cases[f"shared {i}"].finds for i in (0, 1)] == [3 * 8, 3 * 7]
    assert [cases[f"shared {i}"].minimum.size for i in (0, 1)] == [20 - 14, 20 - 13]
    for case in cases.values():
        assert corpus.read(case.slug, "report.md") == f"size {case.minimum.size}".encode()
        assert corpus.read(case.slug, "repro.py") in (f"size {case.minimum.size}".encode(), FILES["repro.py"].encode())


def killed_at_each_step(tmp_path: Path, old: int, new: int) -> list[Path]:
    process = start(KILL, tmp_path, old, new)
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    steps = [json.loads(line) for line in out.splitlines()]
    assert steps[-1][1] == 0
    assert len(steps) > 8
    assert {code for _, code in steps[:-1]} == {-signal.SIGKILL}
    return [tmp_path / str(n) for n, _ in steps]


def test_killed_at_any_step_of_a_replacement_the_old_or_the_new_case_is_there(tmp_path: Path, make: Make) -> None:
    sizes = []
    for folder in killed_at_each_step(tmp_path, 5, 3):
        corpus = Corpus(folder)
        (case,) = corpus
        assert isinstance(case, Case)
        size = case.minimum.size
        assert corpus.read(case.slug, "repro.py") == f"size {size}".encode()
        assert case.finds == (1 if size == 5 else 2)
        sizes.append(size)
        # The dead process's lock is free, its leftovers go.
        assert corpus.add(make(2), FILES).status is Status.SMALLER
        assert [p.name for p in folder.iterdir() if p.name != ".lock"] == [case.slug]
        assert sorted(os.listdir(folder / case.slug)) == ["case.json", "program.mlir", "report.md", "repro.py"]
    assert set(sizes) == {3, 5}
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 3


def test_killed_at_any_step_of_counting_nothing_is_lost(tmp_path: Path) -> None:
    finds = []
    for folder in killed_at_each_step(tmp_path, 3, 5):
        (case,) = Corpus(folder)
        assert isinstance(case, Case)
        assert case.minimum.size == 3
        finds.append(case.finds)
    assert finds == sorted(finds)
    assert set(finds) == {1, 2}


def test_killed_at_any_step_of_a_first_save_there_is_a_whole_case_or_none(tmp_path: Path, make: Make) -> None:
    counts = []
    for folder in killed_at_each_step(tmp_path, 0, 3):
        corpus = Corpus(folder)
        cases = list(corpus)
        assert all(isinstance(c, Case) and c.minimum.size == 3 for c in cases)
        counts.append(len(cases))
        corpus.add(make(3), FILES)
        assert len(list(corpus)) == 1
    assert counts == sorted(counts)
    assert set(counts) == {0, 1}
