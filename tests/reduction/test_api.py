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
from reducer.corpus import Case, Corpus
from reducer.errors import InputError
from reducer.oracle.target import Target

from .fakes import TARGET, Machine, bug, chain, on_host
from .test_tiers import policy

START = chain("tanh", "sin")


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


@pytest.mark.parametrize("kind", ["pair-differs", "offload-costs", "slow-compile"])
def test_what_only_comparing_shows_is_refused(tmp_path: Path, machine: Machine, kind: str) -> None:
    reducer.reduce(START, out=tmp_path / "a", tiers=TIERS)
    (case,) = Corpus(tmp_path / "a")
    opened = len(machine.opened)
    with pytest.raises(InputError, match="which only comparing shows"):
        reducer.reduce(msgspec.structs.replace(case, kind=kind), out=tmp_path / "b")  # type: ignore[type-var]
    assert (len(machine.opened), (tmp_path / "b").exists()) == (opened, False)


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
