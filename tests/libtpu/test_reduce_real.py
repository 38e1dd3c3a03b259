"""`scanshrink reduce` on the real compiler: the nested loops of the seed, at all tiers; killed, and gone on with."""

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
from reducer.ir.text import to_text
from reducer.oracle.target import resolve_target
from reducer.stablehlo import read_module
from reducer.stablehlo import to_text as module_text

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
NESTED = ("tests/seed/nested.json", "--libtpu", "0.0.50.1")


def command(out: Path, jobs: int, *words: str) -> list[str]:
    start = [sys.executable, "-m", "reducer.cli", "reduce", *NESTED]
    return [*start, "--out", str(out), "--jobs", str(jobs), "--json", *words]


def with_cache(folder: Path, shared: Path) -> dict[str, str]:
    """The environment with a cache of its own: its answers are these runs' alone."""
    folder.mkdir()
    (folder / "libtpu").symlink_to((shared / "libtpu").resolve(), target_is_directory=True)
    return {**os.environ, "SCANSHRINK_CACHE": str(folder)}


def run(out: Path, jobs: int, environment: dict[str, str], *words: str) -> tuple[dict[str, Any], str]:
    done = subprocess.run(
        command(out, jobs, *words), capture_output=True, text=True, cwd=ROOT, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, private_cache: Path) -> tuple[dict[str, Any], Path]:
    """Reduced in one go, by one worker."""
    folder = tmp_path_factory.mktemp("whole")
    environment = with_cache(folder / "cache", private_cache)
    return run(folder / "out", 1, environment)[0], folder / "out"


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def case_in(folder: Path, signature: str) -> Case:
    (case,) = (entry for entry in Corpus(folder) if isinstance(entry, Case) and entry.signature == signature)
    return case


PROGRAM = """\
grad(argnums=(0,)) of
{ lambda ; a:f32[]. let
    b:f32[] = scan[length=2 num_carry=1
      body={ lambda ; c:f32[]. let
          d:f32[] = checkpoint[
            policy=save_and_offload_only_these_names(offloaded=(h) device->pinned_host)
            body={ lambda ; e:f32[]. let
                f:f32[] = scan[length=2 num_carry=1
                  body={ lambda ; g:f32[]. let
                      h:f32[] = name[name=h] g
                    in (h,) }
                ] e
                i:f32[] = sin f
              in (i,) }
          ] c
        in (d,) }
    ] a
  in (b,) }"""

PLACEMENT = """\
{ lambda ; a:f32[2]<host>. let
    b:f32[2,2]<host> = scan[length=2 num_consts=1
      body={ lambda ; c:f32[2]<host>. let
        in (c,) }
    ] a
    d:f32[2] = scan[length=2
      body={ lambda ; e:f32[2]<host>. let
          f:f32[] = scan[length=2 num_carry=1
            body={ lambda ; g:f32[] h:f32[]<host>. let
                i:f32[] = device_put[memory=device] h
              in (i,) }
          ] 0.0:f32[] e
        in (f,) }
    ] b
  in (d,) }"""


STABLEHLO = (Path(__file__).with_name("nested_minimum.mlir")).read_text(encoding="utf-8")


def test_the_minimum_at_each_tier(whole: tuple[dict[str, Any], Path]) -> None:
    data, folder = whole
    assert data["partial"] is False
    case = case_in(folder, data["signature"])
    assert case.family == "async-start-mismatch"
    programs = {tier: minimum.program for tier, minimum in case.tiers.items()}
    assert programs["program"] is not None
    assert programs["placement"] is not None
    assert to_text(programs["program"]) == PROGRAM
    assert to_text(programs["placement"]) == PLACEMENT
    module = (folder / case.slug / case.tiers["stablehlo"].module).read_bytes()
    assert module_text(read_module(module)) == STABLEHLO
    for tier in ("program", "placement"):
        assert case.tiers[tier].certificate is not None  # type: ignore[index]
        assert data["tiers"][tier]["minimal"]


def test_the_script_of_each_tier_fails_as_recorded(whole: tuple[dict[str, Any], Path]) -> None:
    data, _ = whole
    library = resolve_target("0.0.50.1").path
    for tier in data["tiers"].values():
        done = subprocess.run(
            [sys.executable, tier["file"], "--no-tpu"],
            capture_output=True,
            text=True,
            env={**os.environ, "TPU_LIBRARY_PATH": library},
            check=False,
        )
        assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "AS RECORDED"), done.stdout + done.stderr


def journal(cache: Path) -> list[str]:
    (path,) = (cache / "runs").glob("*.jsonl")
    return path.read_text(encoding="utf-8").splitlines()


def test_killed_and_gone_on_with_by_two_workers_it_is_the_same_folder(
    whole: tuple[dict[str, Any], Path], tmp_path: Path, private_cache: Path
) -> None:
    data, folder = whole
    environment = with_cache(tmp_path / "cache", private_cache)
    process = subprocess.Popen(
        command(tmp_path / "out", 2), cwd=ROOT, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert process.stderr is not None
    for line in process.stderr:
        if b"delete-equations" in line or b"shrink-all-dimensions" in line:  # some steps have been accepted
            break
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    (left,) = (tmp_path / "out").glob("_unfinished-*")
    assert {path.name for path in left.iterdir()} >= {"program.json", "repro_program.py"}
    before = journal(tmp_path / "cache")
    known = {json.loads(line).get("key") for line in before}
    again, said = run(tmp_path / "out", 2, environment)
    assert "answers of an earlier run" in said
    after = journal(tmp_path / "cache")
    # What was known stands there once: it was not asked again.
    asked = [json.loads(line)["key"] for line in after[len(before) :] if "key" in json.loads(line)]
    assert not known & set(asked)
    assert after[: len(before)] == before
    assert contents(tmp_path / "out") == contents(folder)
    assert again["compiles_total"] == data["compiles_total"]
    third, said = run(tmp_path / "out", 1, environment)
    assert journal(tmp_path / "cache") == after
    assert {tier: fields["size"] for tier, fields in third["tiers"].items()} == {
        tier: fields["size"] for tier, fields in data["tiers"].items()
    }
