"""`scanshrink reduce`: the claim is checked first, the minimum is saved, and an early end keeps the best so far."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reducer.corpus import Case, Corpus
from reducer.ir.text import to_text
from reducer.oracle.cachedir import CACHE_VARIABLE
from reducer.oracle.jobs import Job, ProgramJob
from reducer.oracle.outcome import Answer, Rejected, Skipped
from reducer.oracle.signature import signature
from reducer.report.nearest import certificate_text

from .fakes import BITCAST, COMPILED, TARGET, Opened, chain, invoke, machine, one_error, write

OTHER = Rejected("INTERNAL: during context [post-optimization]: the other invariant is violated")
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
    assert "6 -> 1 equation," in ran.stdout
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
        ("m.mlir", "module {}", "the module has no function"),
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


def test_flags_that_contradict_each_other(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    pools = opened(to_the_host)
    start = write(tmp_path / "p.json", chain(2))
    flags = [("--signature", "a"), ("--family", "b"), ("--any-failure",), ("--interesting", "c.sh")]
    for i, first in enumerate(flags):
        for second in flags[i + 1 :]:
            one_error(invoke("reduce", start, *first, *second), f"{first[0]} and {second[0]} contradict each other")
    assert pools.calls == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--keep", "dot_general"), "--keep dot_general: names nothing in the start (there are device_put, tanh)"),
        (("--keep", "scan["), "cannot be read"),
        (("--keep", "input[4]"), "the start has 1 input"),
        (("--interesting", "no-such-script"), "cannot be read"),
        (("--tier", "assembler"), "'assembler' is not one of"),
        (("--budget", "0"), "0 is not in the range"),
        (("--seconds", "nan"), "finite"),
        (("--timeout", "0"), "0"),
        (("--option", "xla_a"), "has no value"),
    ],
)
def test_bad_values_are_one_line_before_anything_is_compiled(
    tmp_path: Path, opened: Callable[..., Opened], words: tuple[str, ...], says: str
) -> None:
    pools = opened(to_the_host)
    start = write(tmp_path / "p.json", chain(2))
    one_error(invoke("reduce", start, "--out", str(tmp_path / "out"), *words), says)
    assert (pools.calls, (tmp_path / "out").exists()) == ([], False)


def test_where_nothing_can_be_written_nothing_is_compiled(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    pools = opened(to_the_host)
    (tmp_path / "file").write_text("in the way")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        one_error(
            invoke("reduce", write(tmp_path / "p.json", chain(2)), "--out", str(out)), "cannot write to", str(out)
        )
    assert pools.calls == []


def test_what_is_kept_and_what_is_met(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    def answer(job: Job) -> Answer:
        assert isinstance(job, ProgramJob)
        if "jax.device_put(" not in job.source:
            return COMPILED
        return BITCAST if "tanh" in job.source else OTHER

    opened(answer)
    start = write(tmp_path / "p.json", chain(3))
    data, code = machine("reduce", start, "--out", str(tmp_path / "out"), "--keep", "tanh", "--tier", "placement")
    assert code == 0
    assert data["tiers"]["placement"]["size"] == 2
    assert data["finds"] == []
    shutil.rmtree(tmp_path / "out")
    data, code = machine("reduce", start, "--out", str(tmp_path / "out"), "--tier", "placement")
    assert (code, data["tiers"]["placement"]["size"], data["partial"]) == (0, 2, False)
    (find,) = data["finds"]
    other = signature(OTHER)
    assert other is not None
    assert (find["signature"], find["tier"]) == (other.text, "placement")
    assert Path(find["case"]).is_dir()
    ran = invoke("reduce", start, "--out", str(tmp_path / "again"), "--tier", "placement")
    assert f"met on the way: {other.text}" in ran.stdout
    assert "these are as they were met; scanshrink reduce " in ran.stdout
    assert "answers of an earlier run" in ran.stderr


def test_the_end_says_what_failed_how_sure_it_is_and_where_everything_lies(
    tmp_path: Path, opened: Callable[..., Opened]
) -> None:
    opened(to_the_host)
    out = tmp_path / "out"
    start = write(tmp_path / "p.json", chain(3))
    ran = invoke("reduce", start, "--out", str(out), "--tier", "placement")
    case = only_case(out)
    lines = ran.stdout.splitlines()
    assert lines[0] == f"the failure: {FOUND.text}"  # type: ignore[union-attr]
    certificate = case.tiers["placement"].certificate
    assert certificate is not None
    assert certificate_text(certificate, case.signature) in lines
    folder = out / case.slug
    assert lines[-3:] == [
        f"{folder}/repro.py",
        f"{folder}/report.md",
        f"next: scanshrink bisect {folder} (since which release it fails)",
    ]
    data, _ = machine("reduce", start, "--out", str(out), "--tier", "placement")
    assert data["tiers"]["placement"]["certificate"] == {
        "neighbourhood": certificate.neighbourhood,
        "neighbours": len(certificate.neighbours),
        "counts": certificate.counts(case.signature),
    }


def test_what_is_interesting_and_does_not_fail_is_said_to_be_no_case(
    tmp_path: Path, opened: Callable[..., Opened]
) -> None:
    opened(lambda _: COMPILED)
    path = tmp_path / "s.sh"
    path.write_text("#!/bin/sh\ngrep -q tanh \"$1\"\n")
    path.chmod(0o755)
    start = write(tmp_path / "p.json", chain(3))
    ran = invoke("reduce", start, "--out", str(tmp_path / "out"), "--tier", "placement", "--interesting", str(path))
    assert ran.exit_code == 0
    said, file = ran.stdout.splitlines()[-2:]
    assert said == "the minimum does not fail: it is no case, and these files are all that is kept"
    assert "tanh" in Path(file).read_text()


def test_a_script_that_finds_everything_interesting_is_doubted(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    opened(lambda _: COMPILED)
    path = tmp_path / "s.sh"
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    start = write(tmp_path / "p.json", chain(3))
    ran = invoke("reduce", start, "--out", str(tmp_path / "out"), "--tier", "placement", "--interesting", str(path))
    assert ran.exit_code == 0
    assert f"nothing is left: does {path} look at the file it is given?" in ran.stdout


def test_what_a_certificate_finds_smaller_is_said_and_can_be_gone_on_with(
    tmp_path: Path, opened: Callable[..., Opened]
) -> None:
    """The reduction leaves out what places nothing in host memory; here that fails the same."""

    def answer(job: Job) -> Answer:
        assert isinstance(job, ProgramJob)
        if job.require_host_placement and "jax.device_put(" not in job.source:
            return Skipped("no host placement")
        return BITCAST if "tanh" in job.source else COMPILED

    opened(answer)
    out = tmp_path / "out"
    start = write(tmp_path / "p.json", chain(3))
    words = ("reduce", start, "--out", str(out), "--tier", "placement", "--keep", "tanh")
    data, code = machine(*words)
    tier = data["tiers"]["placement"]
    assert (code, data["partial"], tier["minimal"], tier["size"]) == (0, False, False, 2)
    assert tier["certificate"]["counts"]["fails-the-same"] >= 1
    (file,) = out.glob("_smaller-*/program.json")
    assert tier["smaller"] == str(file)
    ran = invoke(*words)
    assert "; not 1-minimal: a smaller neighbour" in ran.stdout
    assert "; 1-minimal" not in ran.stdout
    (line,) = (line for line in ran.stdout.splitlines() if line.startswith("to go on with what fails the same: "))
    further = shlex.split(line.partition(": ")[2])
    assert further == [
        "scanshrink", "reduce", str(file), "--libtpu", TARGET.libtpu, "--topology", TARGET.topology,
        "--keep", "tanh", "--out", str(out),
    ]  # fmt: skip
    data, code = machine(*further[1:])
    assert code == 0, data
    tier = data["tiers"]["program"]  # what places nothing is no placement
    assert (tier["minimal"], tier["smaller"], tier["size"]) == (True, None, 1)
    assert Path(data["case"]).is_relative_to(out)


def test_an_empty_out_is_no_folder(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    pools = opened(to_the_host)
    ran = invoke("reduce", write(tmp_path / "p.json", chain(2)), "--out", "")
    one_error(ran, "'--out'", "the path is empty")
    one_error(invoke("reduce", ""), "the program's name is empty")
    assert pools.calls == []


def test_options_that_are_not_needed(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    pools = opened(to_the_host)
    pools_target = msgspec.structs.replace(TARGET, options=(("xla_a", 1),), topology="v6e:2x2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reducer.cli.reduce.targets", lambda *_: [pools_target])
        ran = invoke("reduce", write(tmp_path / "p.json", chain(2)), "--out", str(tmp_path / "out"), "--json")
    data = json.loads(ran.stdout)
    assert data["dropped"] == ["xla_a=1", "topology v6e:2x2"]
    assert (data["target"]["options"], data["target"]["topology"]) == ({}, "v5e:2x2")
    assert pools.calls[0][0].options == (("xla_a", 1),)
    assert only_case(tmp_path / "out").target.options == {}


def test_sigusr1_shows_the_best_so_far(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    asked = 0

    def answer(job: Job) -> Answer:
        nonlocal asked
        asked += 1
        if asked in (1, 12):
            signal.raise_signal(signal.SIGUSR1)
        return to_the_host(job)

    opened(answer)
    before = signal.getsignal(signal.SIGUSR1)
    ran = invoke("reduce", write(tmp_path / "p.json", chain(4)), "--out", str(tmp_path / "out"))
    assert ran.exit_code == 0
    assert "nothing yet: the start is being checked" in ran.stderr
    assert "1 equation at the placement tier" in ran.stderr
    assert "{ lambda ;" in ran.stderr
    assert signal.getsignal(signal.SIGUSR1) is before


def test_ctrl_c_saves_the_best_so_far(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    asked = 0

    def answer(job: Job) -> Answer:
        nonlocal asked
        asked += 1
        if asked == 9:
            signal.raise_signal(signal.SIGINT)
        return to_the_host(job)

    opened(answer)
    ran = invoke("reduce", write(tmp_path / "p.json", chain(6)), "--out", str(tmp_path / "out"))
    assert ran.exit_code == 0
    assert "ending after the compile under way" in ran.stderr
    assert "stopped early; the same command goes on" in ran.stdout
    assert "Not fully shrunk" in only_case(tmp_path / "out").notes[0]


def test_ctrl_c_while_the_start_is_checked(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    def answer(job: Job) -> Answer:
        signal.raise_signal(signal.SIGINT)
        return to_the_host(job)

    opened(answer)
    ran = invoke("reduce", write(tmp_path / "p.json", chain(6)), "--out", str(tmp_path / "out"))
    assert (ran.exit_code, ran.stdout) == (130, "")
    assert "interrupted" in ran.stderr


def test_a_case_of_another_release(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    opened(to_the_host)
    invoke("reduce", write(tmp_path / "p.json", chain(2)), "--out", str(tmp_path / "out"))
    case = only_case(tmp_path / "out")
    asked: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reducer.cli.reduce.targets", lambda *words: asked.append(words) or [TARGET])
        ran = invoke("reduce", str(tmp_path / "out" / case.slug), "--out", str(tmp_path / "again"))
        assert asked == [(["0.0.52"], "v5e:2x2", ())]
        invoke("reduce", str(tmp_path / "out" / case.slug), "--out", str(tmp_path / "b"), "--libtpu", "0.0.50.1")
        assert asked[1] == (["0.0.50.1"], "v5e:2x2", ())
    assert ran.exit_code == 0
    again = only_case(tmp_path / "again")
    assert (again.minimum.program, again.start) == (case.minimum.program, case.start)
