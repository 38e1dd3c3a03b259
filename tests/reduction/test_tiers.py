"""From tier to tier: modules are reduced and raised, and what cannot be had is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from reducer.corpus import Case, Corpus
from reducer.corpus.casefile import read_regular
from reducer.errors import InputError, ProgramError
from reducer.ir.equations import Block as Block_
from reducer.ir.equations import Op, Program, Var
from reducer.ir.types import Type
from reducer.oracle.jobs import Job, ModuleJob, ProgramJob
from reducer.oracle.outcome import Answer, Compiled, Memory
from reducer.oracle.target import Target
from reducer.reduction import Refused, wanted_of
from reducer.stablehlo import Block, Function, Module, Operation, Value, to_text

from .fakes import COMPILED, Heard, Machine, bug, chain, on_host, reduce, text_of

ALL = frozenset({"program", "placement", "stablehlo"})


def module(*names: str) -> Module:
    """These elementwise operations, each of the one before."""
    kind = "tensor<8x128xf32>"
    values = [Value(i, kind) for i in range(len(names) + 1)]
    operations = [Operation(f"stablehlo.{name}", (values[i],), (values[i + 1],)) for i, name in enumerate(names)]
    body = Block((values[0],), (*operations, Operation("func.return", (values[-1],))))
    return Module((Function("main", body, ((),), ((),), (("sym_visibility", '"public"'),)),))


def said_of(job: Job, module_name: str, program_name: str) -> bool:
    if isinstance(job, ModuleJob):
        return f"stablehlo.{module_name}" in job.module.decode()
    return f"{program_name}(" in text_of(job)


def both(job: Job, _: Target) -> Answer:
    """Fails with a tanh, at both tiers."""
    return bug() if said_of(job, "tanh", "tanh") else COMPILED


def only_module(job: Job, _: Target) -> Answer:
    """Fails with a tanh in a module."""
    return bug() if isinstance(job, ModuleJob) and said_of(job, "tanh", "") else COMPILED


def only(folder: Path) -> Case:
    (case,) = Corpus(folder)
    assert isinstance(case, Case)
    return case


def test_a_module_is_reduced_and_then_raised(tmp_path: Path) -> None:
    reduced, _ = reduce(tmp_path, module("sine", "tanh", "cosine"), both, tiers=ALL)
    # Begun at the lower tier, it is known by the higher one.
    assert list(reduced.stages) == ["placement", "stablehlo"]
    assert isinstance(reduced.minimum, Program)
    sizes = {tier: stage.level.size(stage.best) for tier, stage in reduced.stages.items()}
    assert sizes == {"stablehlo": 1, "placement": 1}
    case = only(tmp_path)
    assert {tier: minimum.files for tier, minimum in case.tiers.items()} == {
        "placement": ("repro.py",),
        "stablehlo": ("repro_stablehlo.py", "stablehlo.mlir"),
    }
    certificate = case.tiers["stablehlo"].certificate
    assert certificate is not None
    assert certificate.neighbours
    assert "fails-the-same" not in certificate.counts(case.signature)
    assert case.start is not None
    assert (case.start.tier, case.start.file) == ("stablehlo", "start.mlir.gz")
    folder = tmp_path / case.slug
    assert "tanh" in read_regular(folder / "stablehlo.mlir").decode()
    script = (folder / "repro_stablehlo.py").read_text()
    assert "stablehlo.tanh" in script
    assert "stablehlo.sine" not in script


def test_a_minimum_that_no_program_can_say_is_raised_from_what_came_before_it(tmp_path: Path) -> None:
    # As programs, modules fail only as long as there is something besides the tanh.
    def answer(job: Job, _: Target) -> Answer:
        alone = isinstance(job, ProgramJob) and not any(f"{name}(" in text_of(job) for name in ("sin", "exp", "cos"))
        return bug() if said_of(job, "tanh", "tanh") and not alone else COMPILED

    reduced, _ = reduce(tmp_path, module("sine", "exponential", "cosine", "tanh"), answer, tiers=ALL)
    stages = reduced.stages
    assert [stages["stablehlo"].level.size(m) for m in stages["stablehlo"].milestones] == [2, 1]
    assert stages["stablehlo"].level.size(stages["stablehlo"].best) == 1
    placement = stages["placement"]
    assert (placement.level.size(placement.start), placement.level.size(placement.best)) == (2, 2)


def test_values_that_do_not_matter_are_those_of_the_tier_s_own_failure(tmp_path: Path) -> None:
    """The tiers of a reduction of any failure need not fail in the same way."""

    def answer(job: Job, _: Target) -> Answer:
        text = text_of(job)
        return bug("alpha") if "jax.checkpoint" in text else bug("beta") if "jax.device_put(" in text else COMPILED

    wanted = wanted_of(any_failure=True)
    reduced, _ = reduce(tmp_path, policy(), answer, wanted=wanted, stored={"placement": chain("tanh", "sin")})
    assert list(reduced.stages) == ["program", "placement"]
    assert "alpha" in reduced.signature
    verdicts = {verdict for one in reduced.explanations["placement"] for verdict in one.tried.values()}
    assert "fails-the-same" in verdicts
    assert "fails-otherwise" not in verdicts


def test_what_cannot_be_raised_stays_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Module) -> Program:
        raise ProgramError("not expressible: stablehlo.tanh")

    monkeypatch.setattr("reducer.reduction.descent.raise_module", refuse)
    heard = Heard()
    reduced, _ = reduce(tmp_path, module("sine", "tanh"), both, tiers=ALL, heard=heard)
    assert reduced.unreached == {"placement": "not expressible: stablehlo.tanh"}
    assert only(tmp_path).tier == "stablehlo"
    assert "no placement tier: not expressible: stablehlo.tanh" in heard.lines


def test_that_no_module_can_be_raised_is_said_once(tmp_path: Path) -> None:
    heard = Heard()
    reduced, _ = reduce(tmp_path, module("sine", "exponential", "cosine", "tanh"), only_module, tiers=ALL, heard=heard)
    # The minimum, what came before it, and the module itself.
    assert sum(line.startswith("checking what the minimum becomes") for line in heard.lines) == 4
    said = "what the minimum becomes at the placement tier does not fail as asked for: compiled"
    assert [line for line in heard.lines if line.startswith("no placement")] == [f"no placement tier: {said}"]
    assert reduced.unreached == {"placement": said}


def test_a_step_is_not_taken_if_the_failure_does_not_stay(tmp_path: Path) -> None:
    reduced, _ = reduce(tmp_path, module("sine", "tanh"), only_module, tiers=ALL)
    said = "what the minimum becomes at the placement tier does not fail as asked for: compiled"
    assert reduced.unreached == {"placement": said}
    assert only(tmp_path).tier == "stablehlo"


def test_a_module_at_the_placement_tier_alone(tmp_path: Path) -> None:
    reduced, machine = reduce(tmp_path, module("sine", "tanh"), both, tiers=frozenset({"placement"}))
    assert list(reduced.stages) == ["placement"]
    assert "module" not in machine.asked
    assert only(tmp_path).tier == "placement"


def test_a_module_that_does_not_fail(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="the start does not fail as asked for: compiled"):
        reduce(tmp_path / "out", module("sine"), both, tiers=ALL)
    assert not (tmp_path / "out").exists()


def test_a_module_has_no_program_tier(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be reduced at the tier asked for: it is of the stablehlo tier"):
        reduce(tmp_path / "out", module("tanh"), both, tiers=frozenset({"program"}))


@pytest.mark.parametrize(("pattern", "size"), [("cosine", 2), ("stablehlo.sine", 2), ("/tanh", 1), ("input[0]", 1)])
def test_what_is_to_be_kept_in_a_module(tmp_path: Path, pattern: str, size: int) -> None:
    start = module("sine", "tanh", "cosine")
    reduced, _ = reduce(tmp_path, start, only_module, tiers=ALL, keep=(pattern,))
    assert reduced.stages["stablehlo"].level.size(reduced.stages["stablehlo"].best) == size


def test_a_pattern_that_names_nothing_in_a_module(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        reduce(tmp_path / "out", module("sine", "tanh"), both, tiers=ALL, keep=("cosine",))
    assert error.value.hint == "there are return, sine, tanh"


def test_the_same_module_again_asks_nothing(tmp_path: Path) -> None:
    start = module("sine", "tanh", "cosine")
    first, _ = reduce(tmp_path, start, both, tiers=ALL)
    again, machine = reduce(tmp_path, start, both, tiers=ALL)
    assert (machine.asked, again.text, again.compiles) == ([], first.text, first.compiles)


def policy() -> Program:
    from .test_keep import program

    return program()


@pytest.mark.parametrize("fails", ["program", "placement"])
def test_of_a_start_at_several_tiers_the_highest_that_fails_is_reduced(tmp_path: Path, fails: str) -> None:
    def answer(job: Job, _: Target) -> Answer:
        text = text_of(job)
        mine = "jax.checkpoint" in text if fails == "program" else "jax.device_put(" in text
        return bug() if mine else COMPILED

    tiers = frozenset({"program", "placement"})
    starts = (policy(), chain("tanh", "sin"))
    reduced, _ = reduce(tmp_path, policy(), answer, tiers=tiers - {"program"} if fails == "" else tiers, starts=starts)
    assert next(iter(reduced.stages)) == fails
    if fails == "placement":
        assert reduced.unreached == {"program": "the start does not fail as asked for: compiled"}
        assert only(tmp_path).tier == "placement"


def test_none_of_several_fails(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="does not fail as asked for"):
        reduce(tmp_path, policy(), lambda *_: COMPILED, starts=(policy(), chain("tanh")))


def test_a_start_whose_placement_is_of_the_same_tier_is_refused_as_well(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"^the start does not fail as asked for: compiled$"):
        reduce(tmp_path, policy(), lambda *_: COMPILED, starts=(policy(), policy()))


def test_a_start_that_does_not_fail_at_the_only_tier_asked_for_is_refused(tmp_path: Path) -> None:
    tiers = frozenset({"program"})
    with pytest.raises(Refused, match=r"^the start does not fail as asked for: compiled$"):
        reduce(tmp_path, policy(), lambda *_: COMPILED, tiers=tiers, starts=(policy(), chain("tanh")))


@pytest.mark.slow
def test_a_program_at_the_lowest_tier_alone(tmp_path: Path) -> None:
    from reducer.reduction import Reduction

    from .fakes import request

    machine = Machine(lambda job, target: both(job, target) if isinstance(job, ModuleJob) else on_host(job, target))
    machine.module = to_text(module("sine", "tanh"))
    wish = request(tmp_path, chain("tanh"), tiers=frozenset({"stablehlo"}))
    reduced = Reduction(wish, machine, Heard()).run()
    assert list(reduced.stages) == ["stablehlo"]
    assert reduced.stages["stablehlo"].level.size(reduced.minimum) == 1


def test_a_failure_that_dead_code_takes_part_in_is_refused_in_words(tmp_path: Path) -> None:
    t = Type("float32", (8, 128))
    block = Block_((Var(0, t),), (Op(outs=(Var(1, t),), primitive="tanh", args=(0,)),), (0,))

    def answer(job: Job, _: Target) -> Answer:
        return bug() if "tanh(" in text_of(job) else COMPILED

    with pytest.raises(Refused, match="without dead code it does not fail any more"):
        reduce(tmp_path / "out", Program(block), answer)
    assert not (tmp_path / "out").exists()


def test_a_failure_that_shows_beside_other_programs(tmp_path: Path) -> None:
    def answer(job: Job, _: Target) -> Answer:
        # It compiles always, and needs more device memory with an offload than without one.
        return Compiled(Memory(temp=2000 if "save_and_offload_only" in text_of(job) else 1000))

    wish = {"wanted": wanted_of(signature="offload-costs"), "tiers": frozenset({"program"})}
    reduced, machine = reduce(tmp_path, policy(), answer, **wish)
    case = only(tmp_path)
    assert (case.kind, case.signature, reduced.signature) == ("offload-costs", "offload-costs", "offload-costs")
    assert case.minimum.size < 10
    assert "save_and_offload_only_these_names" in reduced.text
    assert reduced.stages["program"].minimal
    again, machine = reduce(tmp_path, policy(), answer, **wish)
    assert (machine.asked, again.text) == ([], reduced.text)


def test_by_itself_it_does_not_fail(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="does not fail as asked for: compiled"):
        reduce(tmp_path, policy(), lambda *_: COMPILED, wanted=wanted_of(signature="offload-costs"))
