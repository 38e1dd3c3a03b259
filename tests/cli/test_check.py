"""`scanshrink check`: outcomes, verdicts, expectations, several programs and targets."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reducer.corpus import Case, CaseTarget, Corpus, TierMinimum, slug_for
from reducer.errors import WorkerError
from reducer.evidence import certified, certified_module
from reducer.ir.canonical import canonical
from reducer.ir.codec import decode
from reducer.ir.equations import Program
from reducer.ir.order import size
from reducer.oracle.fake import FakeOracle
from reducer.oracle.jobs import Job, ModuleJob, ProgramJob, ScriptJob
from reducer.oracle.modules import module_job
from reducer.oracle.outcome import Answer, Compiled, Crashed, Incompatible, Invalid, Memory, Rejected, TimedOut
from reducer.oracle.programs import program_job
from reducer.oracle.signature import signature
from reducer.stablehlo import Module, read_module
from reducer.stablehlo.normal import numbered

from .fakes import BITCAST, COMPILED, TARGET, Opened, chain, invoke, machine, one_error, write

RESULT = {
    "program",
    "target",
    "outcome",
    "verdict",
    "signature",
    "family",
    "message",
    "memory",
    "ledger",
    "rate",
    "seconds",
}
FOUND = signature(BITCAST)
assert FOUND is not None


FLAT = Path(__file__).parents[1] / "seed" / "flat.json"


@pytest.fixture
def a_program(tmp_path: Path) -> str:
    return write(tmp_path / "p.json", chain(2))


def case(folder: Path, *, tier: str = "program", options: dict[str, bool] | None = None) -> str:
    program = chain(2, gradient=True)
    minimum = TierMinimum(size=size(program), program=program)
    if tier == "stablehlo":
        minimum = TierMinimum(size=3, module="stablehlo.mlir")
    made = Case(
        slug=slug_for("x", kind="error", signature="s", tier=tier),
        kind="error",
        signature="s",
        family="f",
        target=CaseTarget(libtpu="0.0.50.1", sha256="c" * 64, topology="v6e:2x2", options=options or {}),
        tiers={tier: minimum},  # type: ignore[dict-item]
    )
    text = "module attributes {mhlo.num_partitions = 4 : i32} {\n func.func @main() { return }\n}"
    return str(Corpus(folder).add(made, {"stablehlo.mlir": text} if tier == "stablehlo" else {}).path)


def test_a_program_that_compiles(a_program: str, pools: Opened) -> None:
    ran = invoke("check", a_program)
    assert ran.exit_code == 0
    assert ran.stdout == f"{a_program}  libtpu 0.0.52  compiled  0.75 s  host temp 12288 B, device temp 0 B\n"
    assert ran.stderr == ""
    ((target, _, _),) = pools.calls
    assert target == TARGET


def test_a_failure(a_program: str, pools: Opened) -> None:
    pools.answer = lambda _: BITCAST
    ran = invoke("check", a_program)
    assert ran.exit_code == 0
    assert ran.stdout == f"{a_program}  libtpu 0.0.52  rejected  0.75 s  {FOUND.text}\n"


def test_json_of_a_compiled_program(a_program: str, pools: Opened) -> None:
    del pools
    data, code = machine("check", a_program)
    assert code == 0
    assert set(data) == {"schema", "command", "results"}
    (result,) = data["results"]
    assert set(result) == RESULT
    assert result["target"] == {"libtpu": "0.0.52", "sha256": "a" * 64, "topology": "v5e:2x2", "options": {}}
    assert (result["outcome"], result["verdict"], result["signature"], result["family"]) == (
        "compiled",
        "ok",
        None,
        None,
    )
    assert result["memory"]["host_temp"] == 12288
    assert (result["program"], result["message"], result["seconds"]) == (a_program, "", 0.75)


@pytest.mark.parametrize(
    ("answer", "outcome", "verdict"),
    [
        (BITCAST, "rejected", "failed"),
        (Crashed("SIGABRT", "a.cc:5] Check failed: x"), "crashed", "failed"),
        (TimedOut(60.0), "timed-out", "failed"),
        (Rejected("INVALID_ARGUMENT: E1200: layout"), "rejected", "user-error"),
        (Rejected("RESOURCE_EXHAUSTED: Ran out of memory"), "rejected", "not-measurable"),
    ],
)
def test_json_of_failures(a_program: str, pools: Opened, answer: Answer, outcome: str, verdict: str) -> None:
    pools.answer = lambda _: answer
    data, code = machine("check", a_program)
    (result,) = data["results"]
    assert (code, result["outcome"], result["verdict"]) == (0, outcome, verdict)
    found = signature(answer)  # type: ignore[arg-type]
    assert found is not None
    assert (result["signature"], result["family"], result["memory"]) == (found.text, found.family, None)


@pytest.mark.parametrize(
    "answer",
    [Invalid("ValueError: boom\n  at x.py:3"), Crashed("exit 4", "bye", "lower"), TimedOut(60.0, "lower")],
)
def test_what_never_reaches_the_compiler_is_bad_input(a_program: str, pools: Opened, answer: Answer) -> None:
    pools.answer = lambda _: answer
    one_error(invoke("check", a_program), f"scanshrink check: {a_program}: ", "never reached the compiler")
    data, code = machine("check", a_program)
    assert code == 2
    assert data["error"]["kind"] == "input"
    assert data["results"][0]["verdict"] == "user-error"


def test_one_bad_program_does_not_hide_the_others(a_program: str, tmp_path: Path, pools: Opened) -> None:
    bad = write(tmp_path / "bad.json", chain(5))
    pools.answer = lambda job: Invalid("no") if job.source.count("tanh") == 5 else COMPILED  # type: ignore[union-attr]
    ran = invoke("check", bad, a_program)
    assert ran.exit_code == 2
    assert ran.stdout.startswith(f"{a_program}  libtpu 0.0.52  compiled")
    assert ran.stderr.startswith(f"scanshrink check: {bad}: no")
    data, code = machine("check", bad, a_program)
    assert (code, [row["outcome"] for row in data["results"]]) == (2, ["invalid", "compiled"])


def test_a_libtpu_that_does_not_fit(a_program: str, pools: Opened) -> None:
    pools.answer = lambda _: Incompatible("libtpu 0.0.20 does not work with this jaxlib: x + 1 does not compile")
    ran = invoke("check", a_program, "--libtpu", "0.0.20")
    assert ran.exit_code == 2
    assert ran.stderr.startswith("scanshrink check: libtpu 0.0.20 does not work with this jaxlib")
    assert ran.stderr.count("\n") == 1
    data, code = machine("check", a_program, "--libtpu", "0.0.20")
    assert (code, data["error"]["kind"], data["results"][0]["verdict"]) == (2, "target", "not-measurable")


@pytest.mark.parametrize(
    ("expect", "code"),
    [
        ("rejected", 0),
        ("failed", 0),
        (FOUND.text, 0),
        (FOUND.family, 0),
        ("compiled", 1),
        ("ok", 1),
        ("async-start-mismatch", 1),
        ("INTERNAL something else", 1),
    ],
)
def test_expectations(a_program: str, pools: Opened, expect: str, code: int) -> None:
    pools.answer = lambda _: BITCAST
    ran = invoke("check", a_program, "--expect", expect)
    assert ran.exit_code == code
    assert (ran.stderr != "") == (code == 1)
    data, also = machine("check", a_program, "--expect", expect)
    assert (also, len(data["results"])) == (code, 1)


@pytest.mark.parametrize(
    ("expect", "hint"),
    [
        ("rejectd", "did you mean rejected?"),
        ("bitcast-memory-spce", "did you mean bitcast-memory-space?"),
        (
            "bogus",
            "an outcome (compiled, rejected, crashed, timed-out, invalid, incompatible), a verdict (ok, failed, "
            "lost-offload, offload-costs, pair-differs, slow-compile, nothing-to-offload, flaky, user-error, "
            "not-measurable), a family such as async-start-mismatch, or a whole signature",
        ),
        ("", "an outcome (compiled,"),
    ],
)
def test_what_nothing_is_called_is_bad_usage(a_program: str, pools: Opened, expect: str, hint: str) -> None:
    ran = invoke("check", a_program, "--expect", expect)
    assert ran.exit_code == 2
    assert ran.stderr.startswith(f"scanshrink check: --expect {expect}: nothing is called that ({hint}")
    assert ran.stderr.count("\n") == 1
    assert pools.calls == []


def test_invalid_can_be_expected(a_program: str, pools: Opened) -> None:
    pools.answer = lambda _: Invalid("no")
    assert invoke("check", a_program, "--expect", "invalid").exit_code == 0
    assert invoke("check", a_program, "--expect", "compiled").exit_code == 1


def test_every_program_must_be_as_expected(a_program: str, tmp_path: Path, pools: Opened) -> None:
    other = write(tmp_path / "q.json", chain(5))
    pools.answer = lambda job: BITCAST if job.source.count("tanh") == 5 else COMPILED  # type: ignore[union-attr]
    assert invoke("check", a_program, other, "--expect", "compiled").exit_code == 1
    assert invoke("check", a_program, a_program, "--expect", "compiled").exit_code == 0


def test_several_releases(a_program: str, pools: Opened) -> None:
    data, _ = machine("check", a_program, "--libtpu", "0.0.50.1", "--libtpu", "0.0.52", "--topology", "v6e:2x2")
    assert [row["target"]["libtpu"] for row in data["results"]] == ["0.0.50.1", "0.0.52"]
    assert {target.topology for target, _, _ in pools.calls} == {"v6e:2x2"}


def test_options_reach_target_and_pool(a_program: str, pools: Opened) -> None:
    words = ("--option", "xla_b=true", "--option", "xla_a=3", "--timeout", "5", "--jobs", "7")
    assert invoke("check", a_program, a_program, *words).exit_code == 0
    ((target, jobs, options),) = pools.calls
    assert target.options == (("xla_a", 3), ("xla_b", True))
    assert (jobs, options["timeout"]) == (2, 5.0)


def test_a_case_is_checked_where_it_was_found(tmp_path: Path, pools: Opened) -> None:
    folder = case(tmp_path, options={"xla_a": True})
    for name in (folder, f"{folder}/case.json"):
        assert machine("check", name)[1] == 0
    assert {(t.topology, t.options) for t, _, _ in pools.calls} == {("v6e:2x2", (("xla_a", True),))}
    pools.calls.clear()
    invoke("check", folder, "--topology", "v5p:2x2x1", "--option", "xla_b=1")
    assert [(t.topology, t.options) for t, _, _ in pools.calls] == [("v5p:2x2x1", (("xla_b", 1),))]


def test_what_each_kind_of_input_becomes(tmp_path: Path, a_program: str, pools: Opened) -> None:
    text = b"module attributes {mhlo.num_partitions = 4 : i32} {\n func.func @main() { return }\n}"
    (tmp_path / "m.mlir").write_bytes(text)
    (tmp_path / "m.mlir.gz").write_bytes(gzip.compress(text))
    (tmp_path / "s.py").write_text("raise SystemExit('never executed here')\n")
    jobs: list[Job] = []

    def answer(job: Job) -> Answer:
        jobs.append(job)
        return COMPILED

    pools.answer = answer
    names = [a_program, str(tmp_path / "m.mlir"), str(tmp_path / "m.mlir.gz"), f"{tmp_path}/s.py:step"]
    names.append(case(tmp_path / "corpus", tier="stablehlo"))
    assert invoke("check", *names).exit_code == 0
    assert [type(job) for job in jobs] == [ProgramJob, ModuleJob, ModuleJob, ScriptJob, ModuleJob]
    assert {job.partitions for job in jobs if isinstance(job, ModuleJob)} == {4}
    assert jobs[3] == ScriptJob(path=str(tmp_path / "s.py"), function="step")


def test_a_worker_that_cannot_be_had(a_program: str, pools: Opened) -> None:
    def answer(_: Job) -> Answer:
        raise WorkerError("workers keep dying", hint="fewer --jobs?")

    pools.answer = answer
    one_error(invoke("check", a_program), "workers keep dying (fewer --jobs?)")


def test_hostile_text_does_not_reach_the_terminal(a_program: str, pools: Opened) -> None:
    pools.answer = lambda _: Rejected("INTERNAL: \x1b[2J\x07 gone\r\nboo")
    assert "\x1b" not in invoke("check", a_program).stdout


Bad = Callable[[Path], str]


def _file(name: str, content: bytes) -> Bad:
    def make(folder: Path) -> str:
        (folder / name).write_bytes(content)
        return str(folder / name)

    return make


def _folder(folder: Path) -> str:
    (folder / "empty").mkdir()
    return str(folder / "empty")


def _newer_case(folder: Path) -> str:
    (folder / "c").mkdir()
    (folder / "c" / "case.json").write_text('{"format": 99, "ir_format": 1}')
    return str(folder / "c")


def _corpus(folder: Path) -> str:
    for name in ("b", "a"):
        (folder / "corpus" / name).mkdir(parents=True)
        (folder / "corpus" / name / "case.json").write_bytes(b"{}")
    return str(folder / "corpus")


_GZ = bytearray(gzip.compress(b"module {}\n" * 1000))
_GZ[30] ^= 255
_GZ[31] ^= 255


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda folder: str(folder / "nothing"), "no such file"),
        (lambda folder: f"{folder / 'nothing'}.py:f", "no such file"),
        (_folder, "a case is a folder with a case.json in it"),
        (_corpus, "is a folder of cases (name one, such as "),
        (_newer_case, "upgrade scanshrink"),
        (_file("newer.json", b'{"format": 99, "program": {}}'), "upgrade scanshrink"),
        (_file("a.json", b"\x00\xff\xfe"), "not a program file"),
        (_file("a.json", b""), "not a program file"),
        (_file("a.json", b"[1, 2"), "not a program file"),
        (_file("a.json", b'{"format": 1, "program": {"block": 3}}'), "not a program"),
        (_file("a.json", b'{"format": 1, "program": {"block": {"params": [], "eqns": [], "results": [7]}}}'), "7"),
        (_file("a.mlir", b""), "is empty"),
        (_file("a.mlir", b" \n"), "is empty"),
        (_file("a.mlir.gz", b"garbage"), "not a gzip file"),
        (_file("a.mlir.gz", gzip.compress(b"module {}" * 99)[:30]), "is cut short"),
        (_file("a.mlir.gz", gzip.compress(b"module {}" * 99)[:5]), "is cut short"),
        (_file("a.mlir.gz", bytes(_GZ)), "is damaged"),
        (_file("a.py", b""), "which function?"),
        (_file("a.txt", b"x"), "is no HLO text"),
        (_file("a.png", b"x"), "not a kind of input"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, pools: Opened, make: Bad, says: str) -> None:
    name = make(tmp_path)
    one_error(invoke("check", name), says, name.partition(".py:")[0])
    assert pools.calls == []
    data, code = machine("check", name)
    assert (code, data["error"]["kind"]) == (2, "input")


def test_a_file_that_unpacks_without_end(tmp_path: Path, pools: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    from reducer.cli import inputs

    monkeypatch.setattr(inputs, "MODULE_LIMIT", 1 << 20)
    bomb = tmp_path / "bomb.mlir.gz"
    bomb.write_bytes(gzip.compress(b"\n" * (2 << 20)))
    one_error(invoke("check", str(bomb)), "unpacks to more than 1 MiB")
    big = tmp_path / "big.mlir"
    big.write_bytes(b"x" * (2 << 20))
    one_error(invoke("check", str(big)), "beyond the limit of 1 MiB")
    del pools


@pytest.mark.parametrize("option", ["novalue", "1bad=2", "=3", "a=1 --option a=2"])
def test_bad_options(a_program: str, pools: Opened, option: str) -> None:
    del pools
    one_error(invoke("check", a_program, "--option", *option.split()), "compiler option")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--topology", "v5e:3x3"), "did you mean"),
        (("--topology", "moon"), "known: v2:2x2"),
        (("--libtpu", "/nowhere/libtpu.so"), "no libtpu at /nowhere/libtpu.so"),
        (("--libtpu", "nightly"), "neither a libtpu release nor a file"),
    ],
)
def test_unknown_targets(a_program: str, words: tuple[str, ...], says: str) -> None:
    one_error(invoke("check", a_program, *words), says)


def test_repeats_that_differ_are_the_verdict_flaky(a_program: str, pools: Opened) -> None:
    answers = iter([COMPILED, BITCAST, COMPILED, COMPILED])
    pools.answer = lambda _: next(answers)
    data, code = machine("check", a_program, "--repeat", "4")
    assert code == 0
    (result,) = data["results"]
    assert result["verdict"] == "flaky"
    assert result["rate"] == {"compiled": 0.75, FOUND.text: 0.25}


def test_repeats_that_agree_are_what_they_are(a_program: str, pools: Opened) -> None:
    pools.answer = lambda _: BITCAST
    ran = invoke("check", a_program, "--repeat", "3", "--expect", "failed")
    assert ran.exit_code == 0
    data, _ = machine("check", a_program, "--repeat", "3")
    assert data["results"][0]["rate"] == {FOUND.text: 1.0}


def test_flaky_repeats_in_words(a_program: str, pools: Opened) -> None:
    answers = iter([BITCAST, COMPILED])
    pools.answer = lambda _: next(answers)
    assert f"flaky: 50% {FOUND.text}; 50% compiled" in invoke("check", a_program, "--repeat", "2").stdout


def test_pairs_show_twins_that_differ(tmp_path: Path, pools: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every program but the one that was asked about fails."""
    monkeypatch.setattr("reducer.cli.pairs.largest_difference", lambda a, b: 0.0 if a != b else 1.0)
    program = write(tmp_path / "flat.json", decode(FLAT.read_bytes()))
    first = iter([COMPILED])
    pools.answer = lambda _: next(first, BITCAST)
    data, code = machine("check", program, "--pairs")
    assert code == 0
    (result,) = data["results"]
    assert result["verdict"] == "pair-differs"
    assert result["outcome"] == "compiled"
    assert [pair["name"] for pair in result["pairs"]["pairs"]] == ["with the barrier", "a loop of n x m steps as two"]
    assert {pair["agrees"] for pair in result["pairs"]["pairs"]} == {False}
    assert {pair["largest_difference"] for pair in result["pairs"]["pairs"]} == {0.0}
    assert "rejected" in result["pairs"]["cost"]["reason"]


def test_pairs_show_an_offload_that_costs(tmp_path: Path, pools: Opened) -> None:
    program = write(tmp_path / "flat.json", decode(FLAT.read_bytes()))
    sizes = iter([0, 0, 0, 500, 300])
    pools.answer = lambda _: Compiled(Memory(host_temp=1, temp=next(sizes)))
    ran = invoke("check", program, "--pairs")
    assert "pair, with the barrier: ok (agrees)" in ran.stdout
    assert (
        "device temp, scaled up: 500 B offloaded, 300 B saved on the device: the offload COSTS device memory"
        in ran.stdout
    )
    sizes = iter([0, 0, 0, 500, 300])
    assert machine("check", program, "--pairs")[0]["results"][0]["verdict"] == "offload-costs"


def certified_case(folder: Path, answer: Callable[[Job], Answer]) -> str:
    """A case whose minimum fails with the bitcast failure, with its certificate."""
    program = canonical(chain(1))
    assert FOUND is not None
    made = Case(
        slug=slug_for("x", kind="error", signature=FOUND.text, tier="placement"),
        kind="error",
        signature=FOUND.text,
        family=FOUND.family,
        target=CaseTarget(libtpu="0.0.50.1", sha256="c" * 64, topology="v6e:2x2"),
        tiers={"placement": TierMinimum(size=size(program), program=program)},
    )
    oracle: FakeOracle[Program] = FakeOracle(lambda p: answer(program_job(p)))
    return str(Corpus(folder).add(certified(made, "placement", oracle), {}).path)


def only(program: Program) -> Callable[[Job], Answer]:
    """Nothing but this program fails."""
    key = program_job(program).key
    return lambda job: BITCAST if isinstance(job, ProgramJob) and job.key == key else COMPILED


def test_a_certificate_that_holds(tmp_path: Path, pools: Opened) -> None:
    pools.answer = only(canonical(chain(1)))
    folder = certified_case(tmp_path, pools.answer)
    ran = invoke("check", "--certificate", folder)
    assert ran.exit_code == 0, ran.output
    first, second = ran.stdout.splitlines()
    assert first.startswith(f"{folder}  libtpu 0.0.50.1  rejected")
    assert second.startswith("  placement: the certificate holds: ")
    assert second.endswith("compile)")
    ((target, _, _),) = pools.calls
    assert target.topology == "v6e:2x2"
    answered, code = machine("check", "--certificate", folder)
    assert code == 0
    (row,) = answered["results"]
    found = row["certificate"]["placement"]
    assert found == {
        "holds": True,
        "neighbours": found["neighbours"],
        "counts": {"compiles": found["neighbours"]},
        "failing": [],
        "differing": {},
    }


def test_a_certificate_that_does_not_hold(tmp_path: Path, pools: Opened) -> None:
    folder = certified_case(tmp_path, only(canonical(chain(1))))
    pools.answer = lambda _: BITCAST
    ran = invoke("check", "--certificate", folder)
    assert ran.exit_code == 1
    assert "the certificate does NOT hold" in ran.stdout
    assert "    fails the same: delete eqns[0]\n" in ran.stdout
    answered, code = machine("check", "--certificate", folder)
    assert code == 1
    assert answered["results"][0]["certificate"]["placement"]["failing"]


def test_a_minimum_that_does_not_fail_any_more(tmp_path: Path, pools: Opened) -> None:
    folder = certified_case(tmp_path, only(canonical(chain(1))))
    pools.answer = lambda _: COMPILED
    ran = invoke("check", "--certificate", folder)
    assert ran.exit_code == 1
    assert "does not fail as its case says" in ran.stderr


@pytest.mark.slow
def test_the_certificate_of_a_module(tmp_path: Path, pools: Opened) -> None:
    """It is read in a process of its own, which takes a second."""
    text = "func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
    text += "  %0 = stablehlo.sine %a : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n"
    module = numbered(read_module(text.encode()))
    minimum = module_job(module).module

    def answer(job: Job) -> Answer:
        assert isinstance(job, ModuleJob)
        return BITCAST if job.module == minimum else COMPILED

    assert FOUND is not None
    made = Case(
        slug=slug_for("x", kind="error", signature=FOUND.text, tier="stablehlo"),
        kind="error",
        signature=FOUND.text,
        family=FOUND.family,
        target=CaseTarget(libtpu="0.0.50.1", sha256="c" * 64, topology="v5e:2x2"),
        tiers={"stablehlo": TierMinimum(size=1, module="program.mlir")},
    )
    oracle: FakeOracle[Module] = FakeOracle(lambda m: answer(module_job(m)))
    certificate = certified_module(made, module, oracle)
    folder = str(Corpus(tmp_path).add(certificate, {"program.mlir": minimum}).path)
    pools.answer = answer
    data, code = machine("check", "--certificate", folder)
    assert code == 0, data
    found = data["results"][0]["certificate"]["stablehlo"]
    assert (found["holds"], found["neighbours"] > 0) == (True, True)
    assert {options["use_cache"] for _, _, options in pools.calls} == {False}


def test_what_a_certificate_does_not_go_with(tmp_path: Path, pools: Opened) -> None:
    folder = certified_case(tmp_path, only(canonical(chain(1))))
    for option in (("--pairs",), ("--repeat", "2"), ("--expect", "compiled")):
        one_error(invoke("check", "--certificate", folder, *option), "--certificate goes with none of")
    assert pools.calls == []


def test_a_module_that_lies_outside_its_case(tmp_path: Path, pools: Opened) -> None:
    assert FOUND is not None
    made = Case(
        slug=slug_for("x", kind="error", signature=FOUND.text, tier="stablehlo"),
        kind="error",
        signature=FOUND.text,
        family=FOUND.family,
        target=CaseTarget(libtpu="0.0.50.1", sha256="c" * 64, topology="v5e:2x2"),
        tiers={"stablehlo": TierMinimum(size=1, module="program.mlir")},
    )
    folder = Corpus(tmp_path / "corpus").add(made, {"program.mlir": "module {}"}).path
    (folder / "program.mlir").unlink()
    (folder / "program.mlir").symlink_to(tmp_path / "secret")
    one_error(invoke("check", str(folder)), "is a symbolic link")
    assert pools.calls == []


def test_what_has_no_certificate(tmp_path: Path, a_program: str, pools: Opened) -> None:
    del pools
    one_error(invoke("check", "--certificate", a_program), "is no case")
    folder = case(tmp_path)
    for name in (folder, f"{folder}/case.json"):
        said = f"`scanshrink reduce {name} --out {os.path.relpath(Path(folder).parent)}` makes one"
        one_error(invoke("check", "--certificate", name), "has no certificate", said)


def test_a_damaged_case_does_not_hide_the_others(tmp_path: Path, a_program: str, pools: Opened) -> None:
    del pools
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "case.json").write_text("{")
    ran = invoke("check", str(tmp_path / "bad"), a_program)
    assert ran.exit_code == 2
    assert "case.json" in ran.stderr
    assert ran.stdout.startswith(a_program)
    data, code = machine("check", str(tmp_path / "bad"), a_program)
    assert (code, [row["program"] for row in data["results"]]) == (2, [a_program])
    assert data["error"]["kind"] == "input"
