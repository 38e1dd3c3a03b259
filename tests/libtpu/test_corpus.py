"""Every committed case on the installed libtpu: failing as recorded is an expected failure, compiling is news."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from reducer.corpus import Case, CaseTarget, Corpus, TierMinimum, slug_for
from reducer.corpus.regression import hold
from reducer.corpus.runner import Runner, record_of
from reducer.corpus.verify import Verdict, verify
from reducer.ir.codec import decode
from reducer.ir.order import size
from reducer.oracle.pool import Pool
from reducer.oracle.programs import program_job
from reducer.report.markdown import markdown

pytestmark = pytest.mark.slow

CORPUS = Corpus(Path(__file__).resolve().parents[2] / "corpus")


SEED = Path(__file__).resolve().parents[1] / "seed" / "trip_count_one.json"


@pytest.fixture(scope="module")
def run(private_cache: Path) -> Iterator[Runner]:
    del private_cache  # must be set before a worker inherits the environment
    with Runner(CORPUS, workers=1) as runner:
        yield runner


@pytest.mark.parametrize("slug", CORPUS.slugs())
def test_case(slug: str, run: Runner, request: pytest.FixtureRequest) -> None:
    case = CORPUS.get(slug)
    hold(request, case, run(case))


def test_there_are_cases() -> None:
    assert CORPUS.slugs(), f"{CORPUS.folder} holds no case: the tests above ran on nothing"


def test_a_saved_failure_is_the_same_when_it_is_run_again(tmp_path: Path, pool: Pool) -> None:
    program = decode(SEED.read_bytes())
    result = pool.submit(program_job(program), want_module=True).result()
    seen = record_of(pool.target, result)
    assert seen.family == "bitcast-memory-space"
    case = Case(
        slug=slug_for(seen.family, kind="error", signature=seen.signature, tier="program"),
        kind="error",
        signature=seen.signature,
        family=seen.family,
        target=CaseTarget.of(pool.target),
        tiers={"program": TierMinimum(size=size(program), program=program, module="program.mlir")},
        outcomes=(seen,),
    )
    module = TierMinimum(size=99, module="stablehlo.mlir")
    low = msgspec.structs.replace(
        case,
        slug=slug_for(seen.family, kind="error", signature=seen.signature, tier="stablehlo"),
        tiers={"stablehlo": module},
    )
    corpus = Corpus(tmp_path, report=markdown)
    corpus.add(case, {"program.mlir": result.module})
    corpus.add(low, {"stablehlo.mlir": result.module})
    with Runner(corpus, workers=1) as rerun:
        verification = verify(corpus, rerun)
    assert [c.verdict for c in verification.checks] == [Verdict.AS_RECORDED] * 2, verification.as_json()
    report = corpus.read(case.slug, "report.md").decode()
    assert "is rejected by the compiler" in report
    assert str(Path.home()) not in report
