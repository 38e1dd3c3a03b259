"""Judging a rerun against the record, for a verification and for pytest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from reducer.corpus import Case, Corpus, Damaged, OutcomeRecord
from reducer.corpus.regression import hold
from reducer.corpus.verify import Check, Verdict, expectation, expected_text, judge, verify
from reducer.errors import InputError, TargetError

from .cases import FILES, record

Make = Callable[..., Case]
SIGNATURE = "bitcast memory spaces"
ELSEWHERE = {"libtpu": "0.0.53", "sha": "c" * 64}
FAILS = record(signature=SIGNATURE, family="bitcast")


@pytest.mark.parametrize(
    ("recorded", "seen", "verdict"),
    [
        (FAILS, FAILS, "as-recorded"),
        (FAILS, record("compiled"), "fixed"),
        (FAILS, record(signature="reworded", family="bitcast"), "changed"),
        (FAILS, record("crashed", signature=SIGNATURE, family="bitcast"), "changed"),
        (FAILS, record("invalid"), "changed"),
        (FAILS, record("incompatible"), "not-judged"),
        (FAILS, record("compiled", signature=SIGNATURE), "changed"),
        (record("compiled"), record("compiled"), "as-recorded"),
        (record("compiled"), FAILS, "changed"),
        (record("timed-out", signature="timeout"), record("timed-out", signature="timeout"), "as-recorded"),
        (record("incompatible"), FAILS, "as-recorded"),
        # On a release without a record: the family is enough, because releases reword.
        (FAILS, record(signature=SIGNATURE, **ELSEWHERE), "as-recorded"),
        (FAILS, record(signature="reworded", family="bitcast", **ELSEWHERE), "as-recorded"),
        (FAILS, record(signature="other", family="other", **ELSEWHERE), "changed"),
        (FAILS, record("invalid", **ELSEWHERE), "changed"),
        (FAILS, record("compiled", **ELSEWHERE), "fixed"),
        (FAILS, record("incompatible", **ELSEWHERE), "not-judged"),
        (record(signature="a", family="old"), record(signature="b", family="old", **ELSEWHERE), "as-recorded"),
        # What was fixed in the newest older release on record stays fixed; an earlier failure does not excuse it.
        (record("compiled"), record("compiled", **ELSEWHERE), "as-recorded"),
        (record("compiled"), record(signature=SIGNATURE, family="bitcast", **ELSEWHERE), "changed"),
        (record("compiled"), record(signature=SIGNATURE, libtpu="0.0.9", sha="d" * 64), "as-recorded"),
        (record("compiled"), record("compiled", libtpu="0.0.9", sha="d" * 64), "fixed"),
        # A failure that compiles has a signature.
        (record("compiled", signature=SIGNATURE), record("compiled", signature=SIGNATURE), "as-recorded"),
        (record("compiled", signature=SIGNATURE), record("compiled"), "fixed"),
        (FAILS, record("compiled", signature=SIGNATURE, **ELSEWHERE), "as-recorded"),
    ],
)  # fmt: skip
def test_judge(make: Make, recorded: OutcomeRecord, seen: OutcomeRecord, verdict: str) -> None:
    assert judge(make(outcomes=(recorded,)), seen) == verdict


def test_the_nearest_older_release_is_what_counts(make: Make) -> None:
    older = record("compiled", libtpu="0.0.9", sha="d" * 64)
    case = make(outcomes=()).with_outcomes(older, FAILS, record("incompatible", libtpu="0.0.52.1", sha="e" * 64))
    assert expectation(case, record(libtpu="0.0.53", sha="c" * 64)) == FAILS
    assert expectation(case, record(libtpu="0.0.42.1", sha="c" * 64)) == older
    assert expectation(case, record(libtpu="0.0.8", sha="c" * 64)) is None
    assert expectation(case, record(libtpu="0.0.8")) == FAILS
    assert expectation(case, msgspec.structs.replace(FAILS, topology="v6e:2x2")) is None
    assert expected_text(case, record(libtpu="0.0.53", sha="c" * 64)) == f"rejected: {SIGNATURE} (as on 0.0.52)"
    assert expected_text(case, record(libtpu="0.0.8", sha="c" * 64)) == f"fails: {SIGNATURE}"


@pytest.fixture
def four(corpus: Corpus, make: Make) -> Corpus:
    for name in ("again", "fixed", "other"):
        signature = f"sig {name}"
        corpus.add(make(signature=signature, outcomes=(record(signature=signature),)), FILES)
    (corpus.folder / "broken").mkdir()
    return corpus


def rerun(case: Case) -> OutcomeRecord:
    answers = {"sig again": record(signature="sig again"), "sig fixed": record("compiled")}
    return answers.get(case.signature, record(signature="new"))


@pytest.mark.parametrize("workers", [1, 3])
def test_verify(four: Corpus, workers: int) -> None:
    heard: list[Check | Damaged] = []
    result = verify(four, rerun, workers=workers, progress=heard.append)
    data = result.as_json()
    results = data.pop("results")
    assert data == {"cases": 4, "as_recorded": 1, "fixed": 1, "changed": 1, "damaged": 1, "not_judged": 0}
    assert result.exit_code == 1
    assert [h.case.slug if isinstance(h, Check) else h.path.name for h in heard] == four.slugs()
    by_name = {r["case"].split("-")[0] + r["verdict"]: r for r in results}
    changed = by_name["bitcastchanged"]
    assert (changed["expected"], changed["actual"]) == ("rejected: sig other", "rejected: new")
    assert set(by_name) == {"bitcastas-recorded", "bitcastfixed", "bitcastchanged", "brokendamaged"}


def test_fixed_cases_are_good_news_and_an_empty_corpus_is_fine(corpus: Corpus, make: Make) -> None:
    assert verify(corpus, rerun).as_json()["cases"] == 0
    corpus.add(make(), FILES)
    result = verify(corpus, lambda _: record("compiled"))
    assert (result.exit_code, result.count(Verdict.FIXED)) == (0, 1)


def test_a_case_whose_module_is_gone_is_damaged(corpus: Corpus, make: Make) -> None:
    corpus.add(make(), FILES)

    def gone(_: Case) -> OutcomeRecord:
        raise InputError("no such file: program.mlir")

    result = verify(corpus, gone)
    assert result.damaged == (Damaged(Path(make().slug), "no such file: program.mlir"),)
    assert result.exit_code == 1


def test_no_compiler_ends_the_verification(four: Corpus) -> None:
    def broken(_: Case) -> OutcomeRecord:
        raise TargetError("no libtpu is installed")

    with pytest.raises(TargetError, match="no libtpu"):
        verify(four, broken)


HOLD = """
import pytest
from pathlib import Path
from reducer.corpus import load_case, OutcomeRecord
from reducer.corpus.regression import hold

CASE = load_case(Path(__file__).parent / "case.json")
SEEN = {
    "again": CASE.outcomes[0],
    "fixed": OutcomeRecord(libtpu="0.0.52", sha256="a" * 64, topology="v5e:2x2", outcome="compiled"),
    "other": OutcomeRecord(libtpu="0.0.52", sha256="a" * 64, topology="v5e:2x2", outcome="crashed", signature="new"),
    "unfit": OutcomeRecord(libtpu="0.0.52", sha256="a" * 64, topology="v5e:2x2", outcome="incompatible"),
}

@pytest.mark.parametrize("what", SEEN)
def test_case(request, what):
    hold(request, CASE, SEEN[what])
"""


@pytest.mark.slow
def test_pytest_tells_the_three_apart(pytester_run: Callable[..., str], make: Make, tmp_path: Path) -> None:
    from reducer.corpus import encode_case

    (tmp_path / "case.json").write_bytes(encode_case(make()))
    (tmp_path / "test_it.py").write_text(HOLD)
    out = pytester_run(tmp_path)
    assert "1 skipped, 1 xfailed" in out
    assert "2 failed" in out
    assert "[XPASS(strict)] fixed in this release: libtpu 0.0.52 compiles bitcast-304c5857" in out
    assert "seen     crashed: new" in out
    assert "XFAIL test_it.py::test_case[again] - bitcast-304c5857: bitcast memory spaces" in out


def test_a_case_recorded_as_compiling_is_a_plain_test(request: pytest.FixtureRequest, make: Make) -> None:
    case = make().with_outcomes(record("compiled", **ELSEWHERE))
    hold(request, case, record("compiled", **ELSEWHERE))
    assert not list(request.node.iter_markers("xfail"))


def test_outcomes_are_kept_by_release_and_a_newer_record_replaces_an_older_one(make: Make) -> None:
    case = make().with_outcomes(
        record("compiled", **ELSEWHERE), record(libtpu="0.0.9", sha="d" * 64), record("crashed", signature="x")
    )
    assert [(r.libtpu, r.outcome) for r in case.outcomes] == [
        ("0.0.9", "rejected"), ("0.0.52", "crashed"), ("0.0.53", "compiled"),
    ]  # fmt: skip
    assert case.expected() == record("crashed", signature="x")
    assert msgspec.structs.replace(case, outcomes=()).expected() is None
