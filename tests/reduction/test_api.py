"""`reducer.reduce`: what the command does, from Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import reducer
from reducer import api
from reducer.corpus import Case, Corpus, Equivalence
from reducer.errors import InputError
from reducer.ir.equations import Program
from reducer.ir.text import to_text
from reducer.oracle.outcome import Answer, Compiled, Memory
from reducer.oracle.signature import signature as signature_of
from reducer.oracle.target import Target

from .fakes import COMPILED, TARGET, Machine, bug, chain, on_host, text_of
from .test_tiers import policy

START = chain("tanh", "sin")
_found = signature_of(bug())
assert _found is not None
FAMILY = _found.family


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(on_host)
    monkeypatch.setattr(api, "_open_pool", made)

    def resolve(spec: str | None, topology: str, options: Any) -> Target:
        return Target(spec or "0.0.52", TARGET.path, TARGET.sha256, topology, tuple(sorted(dict(options).items())))

    monkeypatch.setattr(api, "resolve_target", resolve)
    return made


TIERS = ("program", "placement")


def test_the_result(tmp_path: Path, machine: Machine) -> None:
    said: list[str] = []
    result = reducer.reduce(START, target="0.0.50.1", jobs=3, out=tmp_path / "out", tiers=TIERS, say=said.append)
    assert result.target == Target("0.0.50.1", TARGET.path, TARGET.sha256)
    (case,) = Corpus(tmp_path / "out")
    assert isinstance(case, Case)
    assert result.folder == str(tmp_path / "out" / case.slug)
    assert result.minimum == case.minimum.program
    assert result.text.startswith("{ lambda ;")
    assert result.signature == case.signature
    assert list(result.files.values()) == [f"{result.folder}/repro.py"]
    assert said[0] == "checking the start: 3 equations, on libtpu 0.0.50.1 (aaaaaaaaaaaa), v5e:2x2"
    assert machine.opened == [result.target]


def test_a_case_has_its_own_target(tmp_path: Path, machine: Machine) -> None:
    options = {"xla_a": 1}

    def answer(job: Any, target: Target) -> Any:
        assert dict(target.options) == options
        return on_host(job, target)

    machine.answer = answer
    wish: dict[str, Any] = {"tiers": TIERS, "jobs": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reducer.reduction.run.minimise_settings", lambda _: None)
        reducer.reduce(START, topology="v6e:2x2", options=options, out=tmp_path / "a", **wish)
        (case,) = Corpus(tmp_path / "a")
        assert isinstance(case, Case)
        again = reducer.reduce(case, out=tmp_path / "b", **wish)
    assert again.target == Target("0.0.52", TARGET.path, TARGET.sha256, "v6e:2x2", (("xla_a", 1),))
    assert again.minimum == case.minimum.program


def test_each_tier_of_a_case_starts_from_its_own_minimum(tmp_path: Path, machine: Machine) -> None:
    machine.answer = lambda *_: bug()
    reducer.reduce(START, out=tmp_path / "a", tiers=TIERS)
    (case,) = Corpus(tmp_path / "a")
    assert isinstance(case, Case)
    placed, held = chain("tanh"), policy()
    tiers = {
        "program": msgspec.structs.replace(case.minimum, program=held),
        "placement": msgspec.structs.replace(case.minimum, program=placed),
    }
    case = msgspec.structs.replace(case, tiers=tiers)
    again = reducer.reduce(case, out=tmp_path / "b", tiers=TIERS)
    assert {tier: stage.start for tier, stage in again.stages.items()} == {"program": held, "placement": placed}


def test_a_case_of_a_slow_compile_is_reduced_as_a_time_out_alone(tmp_path: Path, machine: Machine) -> None:
    reducer.reduce(START, out=tmp_path / "a", tiers=TIERS)
    (case,) = Corpus(tmp_path / "a")
    assert isinstance(case, Case)
    slow = (msgspec.structs.replace(case.outcomes[0], slow_limit=12.25),)
    case = msgspec.structs.replace(case, kind="slow-compile", outcomes=slow)
    opened = len(machine.opened)
    with pytest.raises(InputError, match="which depends on the machine") as error:
        reducer.reduce(case, out=tmp_path / "b")
    assert error.value.hint == "`--signature timeout --timeout 12` keeps what takes longer than that here"
    assert (len(machine.opened), (tmp_path / "b").exists()) == (opened, False)
    machine.answer = lambda *_: COMPILED
    machine.seconds = lambda _: 13.0
    reduced = reducer.reduce(case, signature="timeout", timeout=12, out=tmp_path / "b", tiers=TIERS)
    assert reduced.signature == "timed-out"


def _costs(job: Any, _: Target) -> Answer:
    """It compiles always, and needs more device memory with an offload than without one."""
    return Compiled(Memory(temp=2000 if "save_and_offload_only" in text_of(job) else 1000))


def _differs(job: Any, _: Target) -> Answer:
    """It compiles as it is, and fails with the barrier."""
    return bug() if "skip-simplify-while-loops" in text_of(job) else COMPILED


def test_a_case_that_only_comparing_shows_is_reduced_by_comparing(tmp_path: Path, machine: Machine) -> None:
    machine.answer = _costs
    wish: dict[str, Any] = {"tiers": ("program",), "jobs": 1}
    reducer.reduce(policy(), signature="offload-costs", budget=1, out=tmp_path / "a", **wish)
    (case,) = Corpus(tmp_path / "a")
    assert isinstance(case, Case)
    again = reducer.reduce(case, out=tmp_path / "b", **wish)
    (smaller,) = Corpus(tmp_path / "b")
    assert isinstance(smaller, Case)
    assert (smaller.kind, smaller.signature, again.signature) == ("offload-costs", "offload-costs", "offload-costs")
    assert (case.minimum.size, smaller.minimum.size) == (8, 2)
    assert smaller.minimum.certificate is not None
    assert "fails-the-same" not in smaller.minimum.certificate.counts("offload-costs")


def test_of_a_pair_both_run_on_the_cpu(tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[Program, Program]] = []

    def largest_difference(a: Program, b: Program) -> float:
        ran.append((a, b))
        return 0.25

    monkeypatch.setattr("reducer.evidence.largest_difference", largest_difference)
    machine.answer = _differs
    signature = f"pair-differs with the barrier: {FAMILY}"
    wish: dict[str, Any] = {"tiers": ("program",), "jobs": 1}
    reducer.reduce(policy(), signature=signature, budget=1, out=tmp_path / "a", **wish)
    (case,) = Corpus(tmp_path / "a")
    assert isinstance(case, Case)
    reduced = reducer.reduce(case, out=tmp_path / "b", **wish)
    (smaller,) = Corpus(tmp_path / "b")
    assert isinstance(smaller, Case)
    assert (smaller.kind, smaller.signature, smaller.minimum.size) == ("pair-differs", signature, 1)
    assert smaller.equivalence == Equivalence(same_as="with the barrier", largest_difference=0.25)
    ((program, twin),) = ran
    assert program == reduced.minimum
    assert "skip-simplify-while-loops" not in to_text(program)
    assert "skip-simplify-while-loops" in to_text(twin)


@pytest.mark.parametrize("fn", [3, None, "train.py"])
def test_what_is_no_function(fn: Any) -> None:
    with pytest.raises(InputError, match=f"{type(fn).__name__} is not a function"):
        reducer.capture(fn)


@pytest.mark.parametrize(
    ("program", "wish", "said"),
    [
        (3, {}, "int is not what can be reduced (give a program from reducer.capture, a module from "
         "reducer.stablehlo.read_module, or a case of a corpus)"),
        ("case", {}, "str is not what can be reduced"),
        (START, {"keep": "tanh"}, "keep is one string (it is a list of patterns: keep=['tanh'])"),
        (START, {"tiers": ["module"]}, "tiers is ['module'] (it is a list of program, placement, stablehlo)"),
        (START, {"tiers": []}, "tiers is []"),
        (START, {"tiers": "program"}, "tiers is 'program'"),
    ],
)  # fmt: skip
def test_what_cannot_be_reduced(tmp_path: Path, machine: Machine, program: Any, wish: Any, said: str) -> None:
    with pytest.raises(InputError) as error:
        reducer.reduce(program, out=tmp_path / "out", **wish)
    assert str(error.value).startswith(said)
    assert (machine.opened, (tmp_path / "out").exists()) == ([], False)


def test_what_must_survive_and_what_contradicts(tmp_path: Path, machine: Machine) -> None:
    kept = reducer.reduce(START, keep=["sin"], out=tmp_path / "a", tiers=TIERS)
    assert "sin" in kept.text
    opened = len(machine.opened)
    with pytest.raises(InputError, match="contradict each other"):
        reducer.reduce(START, signature="a", any_failure=True, out=tmp_path / "b")
    assert (len(machine.opened), (tmp_path / "b").exists()) == (opened, False)


def test_importing_it_is_cheap() -> None:
    code = (
        "import sys, reducer\n"
        "heavy = {'jax', 'jaxlib', 'numpy', 'msgspec', 'click', 'rich'} & set(sys.modules)\n"
        "mine = [name for name in sys.modules if name.startswith('reducer.')]\n"
        "print(sorted(heavy), mine, reducer.capture.__name__, reducer.reduce.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] [] capture reduce"
