"""`scanshrink reduce`: the claim is checked first, the minimum is saved, and an early end keeps the best so far."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reducer.corpus import Case, Corpus
from reducer.ir.text import to_text
from reducer.oracle.cachedir import CACHE_VARIABLE
from reducer.oracle.jobs import Job, ProgramJob
from reducer.oracle.outcome import Answer
from reducer.oracle.signature import signature

from .fakes import BITCAST, COMPILED, TARGET, Opened, chain, invoke, machine, one_error, write

FOUND = signature(BITCAST)
assert FOUND is not None


def to_the_host(job: Job) -> Answer:
    """Fails as long as anything is moved to the host."""
    assert isinstance(job, ProgramJob)
    return BITCAST if "jax.device_put(" in job.source else COMPILED


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Callable[[Job], Answer]], Opened]:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))

    def put(answer: Callable[[Job], Answer]) -> Opened:
        pools = Opened(answer)
        monkeypatch.setattr("reducer.cli.reduce.open_pool", pools)
        monkeypatch.setattr("reducer.cli.reduce.targets", lambda *_: [TARGET])
        return pools

    return put


def only_case(folder: Path) -> Case:
    (case,) = Corpus(folder)
    assert isinstance(case, Case)
    return case


def test_the_minimum_is_shown_and_saved(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    opened(to_the_host)
    ran = invoke("reduce", write(tmp_path / "p.json", chain(5)), "--out", str(tmp_path / "out"))
    assert ran.exit_code == 0
    case = only_case(tmp_path / "out")
    assert case.minimum.program is not None
    assert to_text(case.minimum.program) in ran.stdout
    assert case.minimum.size == 1, ran.stdout
    assert "6 -> 1 equations" in ran.stdout
    assert "1-minimal" in ran.stdout
    assert case.start is not None
    assert case.start.size == 6
    assert str(tmp_path / "out" / case.slug / "repro.py") in ran.stdout


def test_what_machines_read(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    opened(to_the_host)
    data, code = machine("reduce", write(tmp_path / "p.json", chain(3)), "--out", str(tmp_path / "out"))
    assert code == 0
    assert set(data) == {
        "schema",
        "command",
        "signature",
        "target",
        "tiers",
        "unreached",
        "finds",
        "dropped",
        "start",
        "confirmations",
        "compiles_total",
        "seconds",
        "partial",
        "case",
    }
    assert data["signature"] == FOUND.text
    assert data["partial"] is False
    (tier,) = data["tiers"].values()
    assert (tier["size"], tier["start_size"], tier["changed"], tier["minimal"]) == (1, 4, True, True)
    assert Path(tier["file"]).is_file()


@pytest.mark.parametrize(
    ("answer", "words", "says"),
    [
        (lambda _: COMPILED, (), "does not fail as asked for: compiled"),
        (to_the_host, ("--signature", "another"), "does not fail as asked for: rejected"),
        (to_the_host, ("--family", "another"), "does not fail as asked for: rejected"),
    ],
)
def test_a_start_that_does_not_fail_as_asked_for_is_a_no(
    tmp_path: Path, opened: Callable[..., Opened], answer: Callable[[Job], Answer], words: tuple[str, ...], says: str
) -> None:
    opened(answer)
    ran = invoke("reduce", write(tmp_path / "p.json", chain(2)), "--out", str(tmp_path / "out"), *words)
    assert ran.exit_code == 1
    assert says in ran.stderr
    assert not (tmp_path / "out").exists()


def test_a_start_that_fails_too_rarely_is_a_no_with_its_rate(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    answers = iter([BITCAST, *[COMPILED] * 20])
    opened(lambda _: next(answers))
    ran = invoke("reduce", write(tmp_path / "p.json", chain(2)), "--out", str(tmp_path / "out"))
    assert ran.exit_code == 1
    assert "failed as asked for in 1 of 12 runs: too rarely to reduce it" in ran.stderr


def test_a_spent_budget_saves_the_best_so_far(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    opened(to_the_host)
    start = write(tmp_path / "p.json", chain(9))
    data, code = machine("reduce", start, "--out", str(tmp_path / "out"), "--budget", "2")
    assert code == 0
    assert data["partial"] is True
    assert sum(tier["compiles_total"] for tier in data["tiers"].values()) <= 2
    assert only_case(tmp_path / "out").minimum.size <= 10


def test_any_failure_and_family_accept_another_signature(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    opened(to_the_host)
    for words in (("--any-failure",), ("--family", FOUND.family)):
        data, code = machine("reduce", write(tmp_path / "p.json", chain(2)), "--out", str(tmp_path / "o"), *words)
        assert (code, data["partial"]) == (0, False)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("m.mlir", "module {}", "is no program"),
        ("s.py", "", "which function?"),
        ("gone.json", None, "no such file"),
        ("bad.json", "{", "not a program"),
    ],
)
def test_what_cannot_be_reduced_is_one_line(
    tmp_path: Path, opened: Callable[..., Opened], name: str, text: str | None, says: str
) -> None:
    opened(to_the_host)
    if text is not None:
        (tmp_path / name).write_text(text)
    ran = invoke("reduce", str(tmp_path / name))
    one_error(ran)
    assert says in ran.stderr


def test_an_output_folder_that_cannot_be_written(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    opened(to_the_host)
    (tmp_path / "file").write_text("in the way")
    ran = invoke("reduce", write(tmp_path / "p.json", chain(2)), "--out", str(tmp_path / "file"))
    assert ran.exit_code == 2
    assert str(tmp_path / "file") in ran.stderr
