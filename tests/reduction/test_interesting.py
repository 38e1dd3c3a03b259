"""A user's own script says what is interesting."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from reducer.corpus import Case, Corpus
from reducer.errors import InputError
from reducer.oracle.jobs import Job, ModuleJob
from reducer.oracle.outcome import Answer
from reducer.oracle.target import Target
from reducer.reduction import Progress, Refused, wanted_of
from reducer.reduction.interesting import Script
from reducer.reduction.wanted import INTERESTING, uninteresting

from .fakes import COMPILED, Heard, bug, chain, on_host, reduce
from .test_tiers import module, policy


def script(path: Path, text: str, *, executable: bool = True) -> Path:
    path.write_text(text)
    path.chmod(0o755 if executable else 0o644)
    return path


def test_the_candidate_is_alone_in_a_new_folder_that_goes(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    path = script(tmp_path / "s.sh", f'#!/bin/sh\n(pwd; ls -A; echo "$@"; cat "$1") > {seen}\n')
    with Script(path) as one:
        assert one.run("repro.py", "text\n", 60.0).answer == INTERESTING
    folder, *rest = seen.read_text().splitlines()
    assert rest == ["repro.py", "repro.py", "text"]
    assert not os.path.exists(folder)


@pytest.mark.parametrize("code", [1, 2, 77, 125])
def test_any_other_exit_code_is_not_interesting(tmp_path: Path, code: int) -> None:
    with Script(script(tmp_path / "s.sh", f"#!/bin/sh\nexit {code}\n")) as one:
        assert one.run("repro.py", "", 60.0).answer == uninteresting(f"exit code {code}")


def test_no_shell_reads_its_name(tmp_path: Path) -> None:
    with Script(script(tmp_path / "a b;$(touch x).sh", "#!/bin/sh\nexit 0\n")) as one:
        assert one.run("repro.py", "", 60.0).answer == INTERESTING


def test_a_script_that_hangs_goes_with_what_it_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    path = script(tmp_path / "s.sh", f"#!/bin/sh\nsleep 1000 &\necho $! > {pid}.new\nmv {pid}.new {pid}\nwait\n")
    with Script(path) as one:
        assert one.run("repro.py", "", 1.0).answer == uninteresting("no end within 1 s")
    if not pid.exists():
        pytest.skip("the machine is so busy that it had not started anything")
    process, end = Path(f"/proc/{pid.read_text().strip()}/stat"), time.monotonic() + 60
    while process.exists() and process.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < end, "what the script had started lives on"


def test_python_runs_what_is_not_executable(tmp_path: Path) -> None:
    path = script(tmp_path / "s.py", f"import sys\nassert sys.executable == {sys.executable!r}\n", executable=False)
    with Script(path) as one:
        assert one.run("repro.py", "", 60.0).answer == INTERESTING


@pytest.mark.parametrize(
    ("name", "text", "executable", "said"),
    [
        ("gone.sh", None, True, "cannot be read"),
        ("s.sh", "#!/bin/sh\n", False, "is not executable"),
        ("s.sh", "#!/no/such/interpreter\n", True, "cannot be run"),
        ("s.sh", "#!/bin/sh\nno-such-command-anywhere\n", True, "was not found"),
    ],
)
def test_a_script_that_cannot_be_run_is_bad_input(
    tmp_path: Path, name: str, text: str | None, executable: bool, said: str
) -> None:
    path = tmp_path / name
    if text is not None:
        script(path, text, executable=executable)
    with pytest.raises(InputError, match=said), Script(path) as one:
        one.run("repro.py", "", 60.0)


SIN = "#!/bin/sh\ngrep -q 'jnp.sin(\\|lax.sin(' \"$1\"\n"


def never(*_: object) -> Answer:
    return COMPILED


def test_what_is_interesting_is_kept_and_asked_once(tmp_path: Path) -> None:
    path = script(tmp_path / "s.sh", f"{SIN[:-1]} && echo x >> {tmp_path / 'asked'}\n")
    asking = {"wanted": wanted_of(script=str(path)), "script": path}
    reduced, machine = reduce(tmp_path / "out", chain("tanh", "sin", "cos"), never, **asking)
    assert reduced.text.count("= sin ") == 1
    assert next(iter(reduced.stages.values())).level.size(reduced.minimum) == 1
    assert reduced.signature == ""
    asked = (tmp_path / "asked").read_text()
    before = len(machine.asked)
    again, machine = reduce(tmp_path / "out", chain("tanh", "sin", "cos"), never, **asking)
    assert again.text == reduced.text
    assert (tmp_path / "asked").read_text() == asked
    assert len(machine.asked) == 0, before


def test_what_does_not_fail_is_no_case_but_files(tmp_path: Path) -> None:
    path = script(tmp_path / "s.sh", SIN)
    reduced, _ = reduce(tmp_path / "out", chain("sin", "cos"), never, wanted=wanted_of(script="x"), script=path)
    assert list(Corpus(tmp_path / "out")) == []
    (tier,) = reduced.files
    assert "sin" in Path(reduced.files[tier]).read_text()
    assert sorted(p.name for p in Path(reduced.folder).iterdir()) == [f"{tier}-program.json", f"{tier}-repro.py"]


def test_what_fails_as_well_is_a_case(tmp_path: Path) -> None:
    path = script(tmp_path / "s.sh", "#!/bin/sh\ngrep -q 'jax.device_put(' \"$1\"\n")
    reduced, _ = reduce(tmp_path / "out", chain("sin", "cos"), on_host, wanted=wanted_of(script="x"), script=path)
    (case,) = Corpus(tmp_path / "out")
    assert str(tmp_path / "out" / case.slug) == reduced.folder  # type: ignore[union-attr]


def test_a_start_that_is_not_interesting_is_refused(tmp_path: Path) -> None:
    path = script(tmp_path / "s.sh", "#!/bin/sh\nexit 3\n")
    with pytest.raises(Refused, match="the start is not interesting: exit code 3"):
        reduce(tmp_path / "out", chain("sin"), never, wanted=wanted_of(script="x"), script=path)


def test_a_refused_start_comes_with_the_script_s_last_words(tmp_path: Path) -> None:
    path = script(tmp_path / "s.sh", "#!/bin/sh\necho first >&2\necho no such tool >&2\necho >&2\nexit 1\n")
    with pytest.raises(Refused, match=r"exit code 1 \(the script said: no such tool\)$"):
        reduce(tmp_path / "out", chain("sin"), never, wanted=wanted_of(script="x"), script=path)


def test_what_it_expects_is_what_the_start_did(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    path = script(tmp_path / "s.sh", f'#!/bin/sh\ncp "$1" {kept}\ngrep -q "jax.device_put(" "$1"\n')

    def answer(job: object, target: Target) -> Answer:
        return on_host(job, target)  # type: ignore[arg-type]

    reduce(tmp_path / "out", chain("sin"), answer, wanted=wanted_of(script="x"), script=path)
    assert '"fragments": ["the alpha invariant is violated"]' in kept.read_text()


def test_each_of_several_starts_is_judged_by_itself(tmp_path: Path) -> None:
    path = script(tmp_path / "s.sh", "#!/bin/sh\ngrep -q 'jax.device_put(' \"$1\"\n")
    starts = (policy(), chain("sin", "cos"))
    reduced, _ = reduce(tmp_path / "out", policy(), never, starts=starts, wanted=wanted_of(script="x"), script=path)
    assert list(reduced.stages) == ["placement"]
    assert reduced.unreached == {"program": "the start is not interesting: exit code 1"}


def test_of_several_tiers_only_what_fails_is_the_case(tmp_path: Path) -> None:
    path = script(tmp_path / "s.sh", "#!/bin/sh\ngrep -q 'tanh' \"$1\"\n")

    def answer(job: Job, _: Target) -> Answer:
        return bug() if isinstance(job, ModuleJob) else COMPILED

    tiers = frozenset({"placement", "stablehlo"})
    wish = {"wanted": wanted_of(script="x"), "script": path, "tiers": tiers}
    reduced, _ = reduce(tmp_path / "out", module("sine", "tanh"), answer, **wish)
    assert list(reduced.stages) == ["placement", "stablehlo"]
    (case,) = Corpus(tmp_path / "out")
    assert isinstance(case, Case)
    assert list(case.tiers) == ["stablehlo"]
    assert (reduced.folder, reduced.signature) == (str(tmp_path / "out" / case.slug), case.signature)
    plain = Path(reduced.files["placement"])
    assert (plain.name, plain.parent.name.startswith("_interesting-")) == ("placement-repro.py", True)
    assert "tanh" in plain.read_text()


def test_the_best_so_far_has_the_script_of_what_the_compiler_said(tmp_path: Path) -> None:
    path = script(tmp_path / "s.sh", "#!/bin/sh\ngrep -q 'jax.device_put(' \"$1\"\n")
    seen: set[str] = set()

    def look(_: Progress) -> None:
        seen.update(p.read_text() for p in (tmp_path / "out").glob("_unfinished-*/repro*"))

    heard = Heard()
    heard.then = look
    reduce(tmp_path / "out", chain("sin", "cos"), on_host, wanted=wanted_of(script="x"), script=path, heard=heard)
    assert seen
    assert all("the alpha invariant is violated" in text and "interesting" not in text for text in seen)
