"""`scanshrink corpus`, `libtpu` and `doctor`: what they print, for people and for machines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import pytest

from reducer.cli import corpus as corpus_command
from reducer.cli import doctor as doctor_command
from reducer.cli import libtpu as libtpu_command
from reducer.corpus import Case, CaseTarget, Certificate, Corpus, Neighbour, OutcomeRecord, TierMinimum, slug_for
from reducer.corpus.case import without_paths
from reducer.errors import StorageError, TargetError
from reducer.evidence import with_certificate
from reducer.ir.order import size
from reducer.oracle.doctor import Diagnosis, Problem
from reducer.oracle.outcome import Incompatible
from reducer.oracle.signature import signature
from reducer.oracle.target import TOPOLOGIES, Target
from reducer.record import script_of

from .fakes import BITCAST, chain, invoke, machine, one_error

TARGET = CaseTarget(libtpu="0.0.52", sha256="a" * 64, topology="v5e:2x2")


def record(outcome: str, text: str = "", sha: str = "a") -> OutcomeRecord:
    return OutcomeRecord(
        libtpu="0.0.52",
        sha256=sha * 64,
        topology="v5e:2x2",
        outcome=outcome,
        signature=text,
        family=text,  # type: ignore[arg-type]
    )


def add(folder: Path, text: str) -> Case:
    program = chain(2, gradient=True)
    case = Case(
        slug=slug_for(text, kind="error", signature=text, tier="program"),
        kind="error",
        signature=text,
        family=text,
        target=TARGET,
        tiers={"program": TierMinimum(size=size(program), program=program)},
        outcomes=(record("rejected", text),),
        finds=3,
    )
    return Corpus(folder).add(case, {}).case


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for text in ("alpha", "beta", "gamma"):
        add(tmp_path / "c", text)
    return tmp_path / "c"


class FakeRunner:
    """Says of each case what `seen` holds for its signature."""

    seen: dict[str, OutcomeRecord]
    opened: list[str | None]

    def __init__(self, store: Corpus, spec: str | None, **_: Any) -> None:
        del store
        self.opened.append(spec)

    def __enter__(self) -> FakeRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __call__(self, case: Case) -> OutcomeRecord:
        return self.seen[case.signature]


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> type[FakeRunner]:
    monkeypatch.setattr(
        FakeRunner, "seen", {t: record("rejected", t) for t in ("alpha", "beta", "gamma")}, raising=False
    )
    monkeypatch.setattr(FakeRunner, "opened", [], raising=False)
    monkeypatch.setattr(corpus_command, "Runner", FakeRunner)
    return FakeRunner


def test_listing(folder: Path) -> None:
    (folder / "broken").mkdir()
    ran = invoke("corpus", "list", str(folder))
    assert ran.exit_code == 0
    assert ran.stdout.count("program") == 3
    assert "damaged: no such file" in ran.stdout


def test_listing_for_machines(folder: Path) -> None:
    (folder / "broken").mkdir()
    data, code = machine("corpus", "list", str(folder))
    assert code == 0
    assert set(data) == {"schema", "command", "cases", "damaged"}
    assert data["command"] == "corpus list"
    assert data["cases"][0] == {
        "case": slug_for("alpha", kind="error", signature="alpha", tier="program"),
        "kind": "error",
        "tier": "program",
        "size": size(chain(2, gradient=True)),
        "signature": "alpha",
        "family": "alpha",
        "finds": 3,
        "certificates": {"program": None},
    }
    (damaged,) = data["damaged"]
    assert damaged["path"] == str(folder / "broken")


def test_listing_says_what_certificates_say(folder: Path) -> None:
    slug = slug_for("alpha", kind="error", signature="alpha", tier="program")

    def certified(case: Case, *signatures: str) -> Case:
        around = tuple(
            Neighbour(kind="delete", edit=f"eqns[{i}]", outcome="rejected" if found else "compiled", signature=found)
            for i, found in enumerate(signatures)
        )
        return with_certificate(case, "program", Certificate(neighbourhood="program-1", neighbours=around))

    Corpus(folder).update(slug, lambda case: certified(case, "", "beta", ""))
    data, _ = machine("corpus", "list", str(folder))
    assert data["cases"][0]["certificates"] == {
        "program": {
            "neighbourhood": "program-1",
            "neighbours": 3,
            "counts": {"compiles": 2, "fails-otherwise": 1},
        }
    }
    Corpus(folder).update(slug, lambda case: certified(case, "alpha", "beta"))
    data, _ = machine("corpus", "list", str(folder))
    assert data["cases"][0]["certificates"]["program"]["counts"] == {"fails-the-same": 1, "fails-otherwise": 1}


@pytest.mark.parametrize("command", ["list", "verify", "report"])
def test_a_folder_that_is_not_there(command: str) -> None:
    one_error(invoke("corpus", command, "nowhere"), f"scanshrink corpus {command}: nowhere: no such folder")
    data, code = machine("corpus", command, "nowhere")
    assert (code, data["error"]["kind"], data["command"]) == (2, "input", f"corpus {command}")


@pytest.mark.parametrize("command", ["list", "verify", "report", "certify"])
def test_a_folder_of_other_things_is_no_corpus(command: str, tmp_path: Path, folder: Path) -> None:
    other = tmp_path / "other"
    (other / "below").mkdir(parents=True)
    (other / "below" / "file").write_text("x")
    said = f"scanshrink corpus {command}: {other}: holds no case (a corpus is a folder of cases"
    one_error(invoke("corpus", command, str(other)), said)
    slug = Corpus(folder).slugs()[0]
    one_error(invoke("corpus", command, str(folder / slug)), "holds no case (it is a case itself: name its corpus)")


def test_a_corpus_without_cases_is_one(tmp_path: Path) -> None:
    """A hunt that found nothing leaves its state."""
    (tmp_path / "_state").mkdir()
    (tmp_path / ".lock").touch()
    data, code = machine("corpus", "list", str(tmp_path))
    assert (code, data["cases"], data["damaged"]) == (0, [], [])


def test_verifying_what_is_as_recorded(folder: Path, runner: type[FakeRunner]) -> None:
    ran = invoke("corpus", "verify", str(folder))
    assert ran.exit_code == 0
    assert ran.stdout == "3 cases: 3 as recorded\n"
    assert ran.stderr.count("as recorded") == 3
    assert runner.opened == [None]


def test_verifying_for_machines(folder: Path, runner: type[FakeRunner]) -> None:
    runner.seen["alpha"] = record("compiled")
    runner.seen["beta"] = record("rejected", "delta")
    (folder / "broken").mkdir()
    data, code = machine("corpus", "verify", str(folder))
    assert code == 1
    assert set(data) >= {"schema", "command", "cases", "as_recorded", "fixed", "changed", "damaged", "results"}
    counts = {name: data[name] for name in ("cases", "as_recorded", "fixed", "changed", "damaged", "not_judged")}
    assert counts == {"cases": 4, "as_recorded": 1, "fixed": 1, "changed": 1, "damaged": 1, "not_judged": 0}
    assert sorted(row["verdict"] for row in data["results"]) == ["as-recorded", "changed", "damaged", "fixed"]


def test_fixed_is_good_news(folder: Path, runner: type[FakeRunner]) -> None:
    runner.seen["alpha"] = record("compiled")
    ran = invoke("corpus", "verify", str(folder))
    assert ran.exit_code == 0
    assert "FIXED" in ran.stdout


def test_verifying_on_several_releases(folder: Path, runner: type[FakeRunner]) -> None:
    data, code = machine("corpus", "verify", str(folder), "--libtpu", "0.0.50.1", "--libtpu", "0.0.52")
    assert (code, data["cases"], data["as_recorded"]) == (0, 3, 6)
    assert runner.opened == ["0.0.50.1", "0.0.52"]


def test_recording_what_was_seen(folder: Path, runner: type[FakeRunner]) -> None:
    runner.seen["alpha"] = record("rejected", "alpha", sha="b")
    machine("corpus", "verify", str(folder))
    case = Corpus(folder).get(slug_for("alpha", kind="error", signature="alpha", tier="program"))
    assert len(case.outcomes) == 1
    machine("corpus", "verify", str(folder), "--record")
    assert Corpus(folder).get(case.slug).outcome_on("b" * 64, "v5e:2x2") is not None


def test_a_script_learns_what_was_seen(folder: Path, runner: type[FakeRunner]) -> None:
    found = signature(BITCAST)
    assert found is not None
    fails = msgspec.structs.replace(
        record("rejected", found.text), message=without_paths(BITCAST.message), family=found.family
    )
    program = chain(2, gradient=True)
    case = Case(
        slug=slug_for("delta", kind="error", signature=found.text, tier="program"),
        kind="error",
        signature=found.text,
        family=found.family,
        target=TARGET,
        tiers={"program": TierMinimum(size=size(program), program=program, script="repro.py")},
        outcomes=(fails,),
    )
    stored = Corpus(folder).add(case, {"repro.py": "# as it was\n"}).path
    runner.seen[found.text] = msgspec.structs.replace(record("compiled", sha="b"), libtpu="0.0.53")
    machine("corpus", "verify", str(folder), "--record")
    space: dict[str, Any] = {}
    text = (stored / "repro.py").read_text()
    exec(text[text.index("RECORDED = [") : text.index("# ---- the program")], space)
    assert [(r["libtpu"], r["outcome"]) for r in space["RECORDED"]] == [("0.0.52", "rejected"), ("0.0.53", "compiled")]
    assert script_of(Corpus(folder).get(case.slug)) == text


def test_what_is_not_as_recorded_is_said_once(folder: Path, runner: type[FakeRunner]) -> None:
    runner.seen["alpha"] = record("compiled")
    (folder / "broken").mkdir()
    ran = invoke("corpus", "verify", str(folder))
    assert (ran.stdout + ran.stderr).count("damaged      broken") == 1
    assert (ran.stdout + ran.stderr).count("FIXED") == 1


def test_a_reader_that_goes_away_is_no_failure(folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb") as gone:
        command = [sys.executable, "-m", "reducer.cli", "corpus", "list", str(folder)]
        done = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_unknown_release_while_verifying(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unknown(FakeRunner):
        opened: list[str | None] = []  # noqa: RUF012

        def __call__(self, _: Case) -> OutcomeRecord:
            raise TargetError("there is no libtpu release 9.9", hint="near it: 0.0.52")

    monkeypatch.setattr(corpus_command, "Runner", Unknown)
    one_error(invoke("corpus", "verify", str(folder), "--libtpu", "9.9"), "there is no libtpu release 9.9")


def test_reporting(folder: Path, tmp_path: Path) -> None:
    data, code = machine("corpus", "report", str(folder), "--out", str(tmp_path / "page.html"))
    assert (code, data) == (
        0,
        {"schema": 1, "command": "corpus report", "page": str(tmp_path / "page.html"), "cases": 3, "damaged": 0},
    )
    assert "alpha" in (tmp_path / "page.html").read_text()
    one_error(invoke("corpus", "report", str(folder), "--out", "/proc/page.html"), "cannot write /proc/page.html")
    one_error(invoke("corpus", "report", str(folder), "--out", "-"), "the page is written to a file")
    (folder / "beta-broken").mkdir()
    (folder / "beta-broken" / "case.json").write_text("{")
    ran = invoke("corpus", "report", str(folder), "--out", str(tmp_path / "page.html"))
    assert ran.stdout == f"{tmp_path / 'page.html'}: 3 cases, 1 damaged\n"


@pytest.fixture
def releases(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    fetched: list[str] = []

    def fetch(version: str) -> Path:
        if version == "9.9":
            raise TargetError("there is no libtpu release 9.9", hint="near it: 0.0.52")
        if version == "8.8":
            raise StorageError("the disk is full")
        fetched.append(version)
        return Path("/cache") / version / "libtpu.so"

    monkeypatch.setattr(libtpu_command, "fetch_release", fetch)
    monkeypatch.setattr(libtpu_command, "list_releases", lambda: ["0.0.50.1", "0.0.51", "0.0.52"])
    monkeypatch.setattr(libtpu_command, "cached_releases", lambda: ["0.0.50.1"])
    monkeypatch.setattr(libtpu_command, "installed_libtpu", lambda: ("0.0.52", Path("/x/libtpu.so")))
    monkeypatch.setattr(libtpu_command, "releases_folder", lambda: Path("/cache"))
    return fetched


@pytest.mark.usefixtures("releases")
def test_listing_releases() -> None:
    ran = invoke("libtpu", "list")
    assert [line.rstrip() for line in ran.stdout.splitlines()] == [
        "0.0.50.1     fetched",
        "0.0.51",
        "0.0.52       installed",
    ]
    assert machine("libtpu", "list") == (
        {
            "schema": 1,
            "command": "libtpu list",
            "releases": ["0.0.50.1", "0.0.51", "0.0.52"],
            "installed": "0.0.52",
            "cached": ["0.0.50.1"],
            "folder": "/cache",
        },
        0,
    )


def test_fetching_releases(releases: list[str]) -> None:
    data, code = machine("libtpu", "fetch", "0.0.42.1", "0.0.50.1")
    assert (code, data["fetched"]) == (
        0,
        {"0.0.42.1": "/cache/0.0.42.1/libtpu.so", "0.0.50.1": "/cache/0.0.50.1/libtpu.so"},
    )
    assert releases == ["0.0.42.1", "0.0.50.1"]


@pytest.mark.parametrize("name", ["../x", "latest", "1", "0.0.52/..", "", "0.0.52\n"])
def test_what_is_no_release_is_not_fetched(releases: list[str], name: str) -> None:
    one_error(invoke("libtpu", "fetch", "0.0.42.1", name), "is no release")
    assert releases == []


@pytest.mark.usefixtures("releases")
def test_releases_that_cannot_be_fetched() -> None:
    one_error(invoke("libtpu", "fetch", "9.9"), "there is no libtpu release 9.9 (near it: 0.0.52)")
    data, code = machine("libtpu", "fetch", "8.8")
    assert (code, data["error"]["kind"]) == (2, "storage")


DIAGNOSIS = Diagnosis(
    python="3.11.7",
    platform="linux x86_64",
    jax="0.10.2",
    jaxlib="0.10.2",
    libtpu="0.0.52",
    loaded_path="/x/libtpu.so",
    loaded_sha256="a" * 64,
    tpu_library_path="",
    topologies=("v5e:2x2",),
    cached_releases=(),
    cache="/cache",
    problems=(Problem("TPU_LIBRARY_PATH is set", "pass it as --libtpu", fatal=False),),
)


def test_a_healthy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_command, "diagnose", lambda _: DIAGNOSIS)
    ran = invoke("doctor")
    assert ran.exit_code == 0
    lines = ran.stdout.splitlines()
    assert "libtpu            0.0.52" in lines
    assert f"sha256            {'a' * 64}" in lines
    assert "TPU_LIBRARY_PATH  not set" in lines
    assert "note: TPU_LIBRARY_PATH is set (pass it as --libtpu)" in lines
    assert lines[-1] == "this machine can compile for TPU"
    data, code = machine("doctor")
    assert code == 0
    assert data["can_compile"] is True
    assert set(data) == {"schema", "command", "can_compile", *Diagnosis.__struct_fields__}
    assert data["problems"] == [{"message": "TPU_LIBRARY_PATH is set", "hint": "pass it as --libtpu", "fatal": False}]


def test_a_libtpu_that_compiles_nothing_is_one_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows some topologies, and dies of each program; of the others it says that it does not know them."""

    class FakePool:
        def __init__(self, target: Target, **_: Any) -> None:
            self.target = target

        def __enter__(self) -> FakePool:
            return self

        def __exit__(self, *_: object) -> None: ...

        def wait_ready(self) -> Incompatible | None:
            if self.target.topology not in known:
                raise TargetError(f"libtpu 0.0.17 does not know topology {self.target.topology}")
            return answer

    target = Target(libtpu="0.0.17", path="/x/libtpu.so", sha256="a" * 64)
    monkeypatch.setattr("reducer.oracle.doctor.resolve_target", lambda *_: target)
    monkeypatch.setattr("reducer.oracle.doctor.Pool", FakePool)
    monkeypatch.setattr("reducer.oracle.doctor._environment_problems", list)
    monkeypatch.setattr("reducer.oracle.doctor.sha256_of", lambda _: target.sha256)
    known: tuple[str, ...] = ("v5e:2x2", "v6e:2x2")
    answer: Incompatible | None = Incompatible("libtpu 0.0.17 does not work with this jaxlib")
    ran = invoke("doctor", "--libtpu", "0.0.17")
    assert ran.exit_code == 1
    assert [line for line in ran.stdout.splitlines() if line.startswith("PROBLEM")] == [
        "PROBLEM: libtpu 0.0.17 does not work with this jaxlib (give another libtpu, or install another jax)"
    ]
    known = ()
    ran = invoke("doctor", "--libtpu", "0.0.17")
    assert [line for line in ran.stdout.splitlines() if line.startswith("PROBLEM")] == [
        f"PROBLEM: libtpu 0.0.17 does not know topology {TOPOLOGIES[0]} (none works with it: give another --libtpu)"
    ]
    known, answer = ("v5e:2x2",), None
    data, code = machine("doctor", "--libtpu", "0.0.17")
    assert (code, data["topologies"], len(data["problems"])) == (0, ["v5e:2x2"], len(TOPOLOGIES) - 1)


def test_a_machine_that_cannot_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    crash = "libtpu 0.0.20 does not work with this jaxlib: x + 1 does not compile: died (SIGSEGV):\n*** SIGSEGV\n"
    problems = tuple(Problem(crash + address, "give another libtpu") for address in ("@ 0x1", "@ 0x2", "@ 0x3"))
    broken = msgspec.structs.replace(
        DIAGNOSIS, problems=problems, topologies=(), loaded_path="", loaded_sha256="", tpu_library_path="/y"
    )
    monkeypatch.setattr(doctor_command, "diagnose", lambda _: broken)
    ran = invoke("doctor", "--libtpu", "0.0.20")
    assert ran.exit_code == 1
    assert ran.stdout.count("PROBLEM") == 1, "one libtpu, one problem"
    assert ran.stdout.count("\n") == 12
    assert "/y (in the shell; workers are given their own)" in ran.stdout
    data, code = machine("doctor", "--libtpu", "0.0.20")
    assert (code, data["can_compile"], len(data["problems"])) == (1, False, 3)
