"""`scanshrink corpus certify`: which certificates it makes, of what, and what it says."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from reducer.corpus import Case, CaseTarget, Certificate, Corpus, Explanation, Neighbour, TierMinimum, slug_for
from reducer.corpus.case import Kind
from reducer.errors import WorkerError
from reducer.evidence import outdated
from reducer.ir.canonical import canonical
from reducer.ir.equations import Program
from reducer.ir.order import size
from reducer.oracle.jobs import Job, ModuleJob, ProgramJob
from reducer.oracle.modules import module_job
from reducer.oracle.outcome import Answer, Incompatible
from reducer.oracle.programs import program_job
from reducer.oracle.signature import signature
from reducer.stablehlo import read_module
from reducer.stablehlo.normal import numbered

from .fakes import BITCAST, COMPILED, Opened, chain, invoke, machine

FOUND = signature(BITCAST)

NEWER = CaseTarget(libtpu="0.0.50.1", sha256="b" * 64, topology="v6e:2x2")
OLDER = CaseTarget(libtpu="0.0.42.1", sha256="b" * 64, topology="v5e:2x2")


def add(folder: Path, tier: str, target: CaseTarget = NEWER, kind: Kind = "error") -> str:
    """A case without a certificate."""
    assert FOUND is not None
    program = canonical(chain(1))
    case = Case(
        slug=slug_for("x", kind=kind, signature=FOUND.text, tier=tier),
        kind=kind,
        signature=FOUND.text,
        family=FOUND.family,
        target=target,
        tiers={tier: TierMinimum(size=size(program), program=program)},  # type: ignore[dict-item]
    )
    return Corpus(folder).add(case, {}).case.slug


def minimum(folder: Path, slug: str) -> tuple[TierMinimum, Program]:
    found = Corpus(folder).get(slug).minimum
    assert found.program is not None
    return found, found.program


def failing(pools: Opened, *programs: Program) -> None:
    """Nothing but these programs fails."""
    keys = {program_job(program).key for program in programs}

    def answer(job: Job) -> Answer:
        return BITCAST if isinstance(job, ProgramJob) and job.key in keys else COMPILED

    pools.answer = answer


def test_what_has_none_gets_one_once(tmp_path: Path, pools: Opened) -> None:
    one, other = add(tmp_path, "placement"), add(tmp_path, "program", OLDER)
    failing(pools, minimum(tmp_path, one)[1])
    ran = invoke("corpus", "certify", str(tmp_path), "--jobs", "3")
    assert ran.exit_code == 0, ran.output
    *lines, last = ran.stdout.splitlines()
    # One pool for each target, the older release first.
    assert [(t.libtpu, t.topology, jobs) for t, jobs, _ in pools.calls] == [
        ("0.0.42.1", "v5e:2x2", 3),
        ("0.0.50.1", "v6e:2x2", 3),
    ]
    assert [line.partition(":")[0] for line in lines] == [f"certified    {other}", f"certified    {one}"]
    assert last == "2 cases: 2 certified"
    for slug in (one, other):
        case = Corpus(tmp_path).get(slug)
        found, program = minimum(tmp_path, slug)
        assert not outdated(found.certificate, program)
        assert found.certificate is not None
        assert set(found.certificate.counts(case.signature)) == {"compiles"}
        assert found.explanations
        assert "report.md" in {path.name for path in (tmp_path / slug).iterdir()}
    data, code = machine("corpus", "certify", str(tmp_path))
    assert (code, data["cases"], data["current"], data["certified"]) == (0, 2, 2, 0)
    assert {row["verdict"] for row in data["results"]} == {"current"}
    assert len(pools.calls) == 2
    assert machine("corpus", "certify", str(tmp_path), "--all")[0]["certified"] == 2


@pytest.mark.parametrize("change", ["name", "step"])
def test_one_of_another_neighbourhood_is_made_anew(tmp_path: Path, pools: Opened, change: str) -> None:
    slug = add(tmp_path, "placement")
    failing(pools, minimum(tmp_path, slug)[1])
    invoke("corpus", "certify", str(tmp_path))
    found, _ = minimum(tmp_path, slug)
    certificate = found.certificate
    assert certificate is not None
    older = msgspec.structs.replace(
        certificate,
        neighbourhood="program-0" if change == "name" else certificate.neighbourhood,
        neighbours=certificate.neighbours if change == "name" else certificate.neighbours[1:],
    )
    tiers = {"placement": msgspec.structs.replace(found, certificate=older)}
    Corpus(tmp_path).update(slug, lambda case: msgspec.structs.replace(case, tiers=tiers))
    assert machine("corpus", "certify", str(tmp_path))[0]["certified"] == 1
    assert minimum(tmp_path, slug)[0] == found


def test_a_minimum_that_is_none(tmp_path: Path, pools: Opened) -> None:
    slug = add(tmp_path, "placement")
    pools.answer = lambda _: BITCAST
    ran = invoke("corpus", "certify", str(tmp_path))
    assert ran.exit_code == 1
    first, last = ran.stdout.splitlines()
    assert first == (
        f"NOT MINIMAL  {slug}: delete eqns[0] fails the same; scanshrink reduce {tmp_path / slug} --out {tmp_path}"
    )
    assert last == "1 case: 1 not minimal"
    assert invoke("corpus", "list", str(tmp_path)).stdout.count("not minimal: ") == 1
    data, code = machine("corpus", "certify", str(tmp_path), "--all")
    (row,) = data["results"]
    assert (code, data["not_minimal"], row["verdict"], row["failing"][0]) == (1, 1, "not-minimal", "delete eqns[0]")
    assert set(row["counts"]) == {"fails-the-same"}


def test_what_does_not_fail_any_more_keeps_what_it_has(tmp_path: Path, pools: Opened) -> None:
    slug = add(tmp_path, "placement")
    failing(pools)
    ran = invoke("corpus", "certify", str(tmp_path))
    assert ran.exit_code == 1
    assert ran.stdout.startswith(
        f"changed      {slug}: the minimum at the placement tier does not fail as its case says: compiled\n"
    )
    assert minimum(tmp_path, slug)[0].certificate is None


def test_each_minimum_has_to_fail(tmp_path: Path, pools: Opened) -> None:
    slug = add(tmp_path, "program")
    _, program = minimum(tmp_path, slug)
    below = canonical(chain(2))
    tiers = {**Corpus(tmp_path).get(slug).tiers, "placement": TierMinimum(size=size(below), program=below)}
    Corpus(tmp_path).update(slug, lambda case: msgspec.structs.replace(case, tiers=tiers))
    failing(pools, program)
    data, code = machine("corpus", "certify", str(tmp_path))
    (row,) = data["results"]
    assert (code, row["verdict"]) == (1, "changed")
    assert row["reason"] == "the minimum at the placement tier does not fail as its case says: compiled"
    assert [tier.certificate for tier in Corpus(tmp_path).get(slug).tiers.values()] == [None, None]


def test_what_cannot_be_judged_is_left(tmp_path: Path, pools: Opened) -> None:
    kept = add(tmp_path / "one", "placement")
    around = Certificate(neighbourhood="program-0", neighbours=(Neighbour(edit="x", outcome="not-kept"),))
    found, _ = minimum(tmp_path / "one", kept)
    tiers = {"placement": msgspec.structs.replace(found, certificate=around)}
    Corpus(tmp_path / "one").update(kept, lambda case: msgspec.structs.replace(case, tiers=tiers))
    flaky = add(tmp_path / "one", "program", kind="flaky")
    elsewhere = add(tmp_path / "other", "placement", msgspec.structs.replace(NEWER, sha256="c" * 64))
    data, code = machine("corpus", "certify", str(tmp_path / "one"))
    assert (code, data["not_judged"], pools.calls) == (0, 2, [])
    reasons = {row["case"]: row["reason"] for row in data["results"]}
    assert "--keep" in reasons[kept]
    assert "of kind flaky" in reasons[flaky]
    data, code = machine("corpus", "certify", str(tmp_path / "other"))
    assert (code, data["not_judged"], pools.calls) == (0, 1, [])
    assert "another file here" in data["results"][0]["reason"]
    assert data["results"][0]["case"] == elsewhere
    add(tmp_path / "third", "placement")
    pools.unfit = Incompatible("too old")
    data, code = machine("corpus", "certify", str(tmp_path / "third"))
    assert (code, data["not_judged"]) == (0, 1)


def test_what_is_changed_meanwhile_is_left_and_said(tmp_path: Path, pools: Opened) -> None:
    slug = add(tmp_path, "placement")
    found, program = minimum(tmp_path, slug)
    key = program_job(program).key
    elsewhere = msgspec.structs.replace(found, explanations=(Explanation(parameter="dtype", still_fails="none tried"),))

    def answer(job: Job) -> Answer:
        tiers = {"placement": elsewhere}
        Corpus(tmp_path).update(slug, lambda case: msgspec.structs.replace(case, tiers=tiers))
        return BITCAST if isinstance(job, ProgramJob) and job.key == key else COMPILED

    pools.answer = answer
    data, code = machine("corpus", "certify", str(tmp_path))
    assert (code, data["changed"], data["certified"]) == (1, 1, 0)
    assert data["results"] == [
        {"case": slug, "verdict": "changed", "reason": "was changed meanwhile, and is left as it is: certify it again"}
    ]
    assert minimum(tmp_path, slug)[0] == elsewhere

    def gone(job: Job) -> Answer:
        if (tmp_path / slug).exists():
            (tmp_path / slug).rename(tmp_path / "_gone")
        return BITCAST if isinstance(job, ProgramJob) and job.key == key else COMPILED

    pools.answer = gone
    ran = invoke("corpus", "certify", str(tmp_path))
    assert ran.exit_code == 1
    assert ran.stdout.startswith(f"changed      {slug}: could not be stored: no case {slug} in {tmp_path}")


def test_workers_that_give_up_leave_the_other_rows(tmp_path: Path, pools: Opened) -> None:
    """Releases in their order: 0.0.9 before 0.0.42.1."""
    first = add(tmp_path, "program", msgspec.structs.replace(OLDER, libtpu="0.0.9"))
    other = add(tmp_path, "placement", OLDER)
    keys = {program_job(minimum(tmp_path, slug)[1]).key for slug in (first, other)}

    def answer(job: Job) -> Answer:
        if pools.calls[-1][0].libtpu == "0.0.42.1":
            raise WorkerError("workers keep dying")
        return BITCAST if isinstance(job, ProgramJob) and job.key in keys else COMPILED

    pools.answer = answer
    ran = invoke("corpus", "certify", str(tmp_path), "--json")
    assert [target.libtpu for target, _, _ in pools.calls] == ["0.0.9", "0.0.42.1"]
    data = json.loads(ran.stdout)
    assert data["error"]["kind"] == "worker"
    rows = {row["case"]: (row["verdict"], row.get("reason")) for row in data["results"]}
    assert rows == {first: ("certified", None), other: ("not-judged", "workers keep dying")}
    assert ran.exit_code == 2
    assert ran.stderr.splitlines()[-1] == "scanshrink corpus certify: workers keep dying"


def test_damaged_ones_are_named(tmp_path: Path, pools: Opened) -> None:
    del pools
    (tmp_path / "broken").mkdir(parents=True)
    (tmp_path / "broken" / "case.json").write_text("{")
    (tmp_path / "stray").mkdir()
    ran = invoke("corpus", "certify", str(tmp_path))
    assert ran.exit_code == 1
    first, second, last = ran.stdout.splitlines()
    assert first.startswith(f"damaged      broken: {tmp_path}/broken/case.json: Input data was truncated")
    assert second.startswith("damaged      stray: no such file")
    assert last == "2 cases: 2 damaged"


@pytest.mark.slow
def test_the_certificate_of_a_module(tmp_path: Path, pools: Opened) -> None:
    """It is read in a process of its own, which takes a second."""
    text = "func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
    text += "  %0 = stablehlo.sine %a : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n"
    module = module_job(numbered(read_module(text.encode()))).module
    assert FOUND is not None
    case = Case(
        slug=slug_for("x", kind="error", signature=FOUND.text, tier="stablehlo"),
        kind="error",
        signature=FOUND.text,
        family=FOUND.family,
        target=NEWER,
        tiers={"stablehlo": TierMinimum(size=1, module="program.mlir")},
    )
    Corpus(tmp_path).add(case, {"program.mlir": module})
    pools.answer = lambda job: BITCAST if isinstance(job, ModuleJob) and job.module == module else COMPILED
    data, code = machine("corpus", "certify", str(tmp_path))
    assert (code, data["certified"]) == (0, 1), data
    assert data["results"][0]["counts"].keys() == {"compiles"}
    assert machine("corpus", "certify", str(tmp_path))[0]["current"] == 1
