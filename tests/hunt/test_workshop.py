"""The real workshop on a real corpus, with a pool that answers by the program's text."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reducer.corpus import Case, Corpus
from reducer.corpus.notes import HUNT_ENDED, MET, REDUCTION_ENDED, noted
from reducer.errors import StorageError
from reducer.hunt import Find, Stopped, Unstable
from reducer.hunt.workshop import UNREDUCED, RealWorkshop
from reducer.ir.equations import Program
from reducer.ir.order import size
from reducer.ir.tiers import sort_of, tier_of
from reducer.neighbourhood import NAME
from reducer.oracle.confirm import Confirmation
from reducer.oracle.jobs import ProgramJob
from reducer.oracle.outcome import Answer, Crashed, Result, TimedOut
from reducer.oracle.signature import signature
from reducer.oracle.target import Target

from .fakes import COMPILED, bug, mixed, placement, program

TARGET = Target(libtpu="0.0.52", path="/x/libtpu.so", sha256="a" * 64)
ALPHA = bug("alpha")


class FakePool:
    """Answers by `answer(text)`; the module's text is `module`."""

    workers = 1
    target = TARGET

    def __init__(self, answer: Callable[[str], Answer]) -> None:
        self.answer = answer
        self.module = "module @m {}"

    def submit(self, job: ProgramJob, **_: Any) -> Future[Result]:
        future: Future[Result] = Future()
        future.set_result(Result(self.answer(job.source), module_key=job.key, module=self.module))
        return future

    def confirm(self, job: ProgramJob, times: int = 2, **_: Any) -> Future[Confirmation]:
        future: Future[Confirmation] = Future()
        future.set_result(Confirmation.of([Result(self.answer(job.source)) for _ in range(times)]))
        return future


def on_host(text: str) -> Answer:
    """Fails if something is moved to the host."""
    return ALPHA if "device_put(" in text else COMPILED


def find(start: Program, answer: Answer = ALPHA, **fields: Any) -> Find:
    found = signature(answer)  # type: ignore[arg-type]
    assert found is not None
    made = Find(
        signature=found.text,
        family=found.family,
        slug=found.slug,
        start=start,
        program=start,
        message="",
        strategy="placements",
        tier=tier_of(start),
        sort=sort_of(start),
        started_size=size(start),
        first_seconds=2.0,
        size=size(start),
    )
    return msgspec.structs.replace(made, **fields)


def workshop(
    folder: Path, answer: Callable[[str], Answer] = on_host, *, target: Target = TARGET, **options: Any
) -> RealWorkshop:
    pool = FakePool(answer)
    pool.target = target
    return RealWorkshop(pool, Corpus(folder), seed=5, **options)  # type: ignore[arg-type]


def only(folder: Path) -> Case:
    (case,) = Corpus(folder)
    assert isinstance(case, Case)
    return case


def test_known_signatures() -> None:
    shop = workshop(Path("unused"), known=frozenset({"a"}))
    assert shop.known("a")
    assert not shop.known("b")


def test_confirming(tmp_path: Path) -> None:
    answers = iter([ALPHA, ALPHA, ALPHA, COMPILED, bug("beta"), bug("beta")])
    shop = workshop(tmp_path, lambda _: next(answers))
    assert shop.confirm(find(placement(2)))
    assert not shop.confirm(find(placement(2)))
    assert not shop.confirm(find(placement(2)))


@pytest.mark.parametrize("note", [REDUCTION_ENDED, HUNT_ENDED, MET])
def test_a_case_that_is_not_shrunk_is_not_recalled(tmp_path: Path, note: str) -> None:
    shop, one = workshop(tmp_path), find(placement(2))
    assert shop.reduce(one, lambda _: None) == []
    one.reduced_seconds = 1.0
    shop.keep(one)
    assert shop.recall(find(placement(4)))
    slug = only(tmp_path).slug
    Corpus(tmp_path).update(slug, lambda case: noted(case, unshrunk=note))
    assert not shop.recall(find(placement(4)))
    # Another find of it, shrunk to the same minimum, says that it is.
    shop.keep(one)
    assert only(tmp_path).notes == ()


def test_a_find_is_saved_with_a_note_until_it_is_reduced(tmp_path: Path) -> None:
    shop = workshop(tmp_path)
    one = find(placement(4), finds=3)
    shop.keep(one)
    case = only(tmp_path)
    assert (case.finds, case.notes, case.minimum.size, case.tier) == (3, (UNREDUCED,), 5, "placement")
    assert case.minimum.certificate is None
    assert case.found is not None
    assert (case.found.seed, case.found.strategy, case.found.started_size) == (5, "placements", 5)
    assert Path(one.case) == tmp_path / case.slug
    assert (Path(one.case) / "repro.py").read_text().startswith(("#!", "#", '"""', "import"))
    assert (Path(one.case) / "program.mlir").read_text() == "module @m {}"
    assert shop.reduce(one, lambda _: None) == []
    one.reduced_seconds = 1.0
    one.finds = 5
    shop.keep(one)
    case = only(tmp_path)
    assert (case.finds, case.notes, case.minimum.size) == (5, (), 1)
    assert case.minimum.program == one.program
    assert case.minimum.certificate is not None
    assert case.minimum.certificate.neighbourhood == NAME
    assert case.start is not None
    assert case.start.program == placement(4)
    assert UNREDUCED not in (Path(one.case) / "case.json").read_text()


def test_a_find_that_changes_its_failure_is_not_saved(tmp_path: Path) -> None:
    for answer in (COMPILED, bug("beta")):
        with pytest.raises(Unstable):
            workshop(tmp_path, lambda _, answer=answer: answer).keep(find(placement(2)))
    assert list(Corpus(tmp_path)) == []


def test_a_crash_is_saved(tmp_path: Path) -> None:
    crash = Crashed("SIGABRT", "host_offload_utils.cc:225] Check failed: x == 1 Expecting one")
    shop = workshop(tmp_path, lambda _: crash)
    shop.keep(find(placement(2), crash))
    assert only(tmp_path).outcomes[0].outcome == "crashed"


def test_a_case_without_a_module(tmp_path: Path) -> None:
    pool = FakePool(on_host)
    pool.module = ""
    one = find(placement(2))
    RealWorkshop(pool, Corpus(tmp_path), seed=5).keep(one)  # type: ignore[arg-type]
    assert only(tmp_path).minimum.files == ("repro.py",)
    assert not (Path(one.case) / "program.mlir").exists()


def test_a_full_disk_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        workshop(tmp_path / "file").keep(find(placement(2)))


def test_a_reduction_can_be_stopped(tmp_path: Path) -> None:
    one = find(placement(6))

    def step(now: Find) -> None:
        if now.size < 7:
            raise Stopped

    with pytest.raises(Stopped):
        workshop(tmp_path).reduce(one, step)
    assert one.size == size(one.program) < 7
    assert one.compiles >= 1


def test_a_start_that_compiles_is_unstable(tmp_path: Path) -> None:
    with pytest.raises(Unstable, match="does not fail as wanted"):
        workshop(tmp_path, lambda _: COMPILED).reduce(find(placement(2)), lambda _: None)


def test_the_budget_ends_a_reduction(tmp_path: Path) -> None:
    one = find(placement(6))
    workshop(tmp_path, budget=2).reduce(one, lambda _: None)
    assert one.compiles == 2


def test_other_failures_are_handed_over(tmp_path: Path) -> None:
    def answer(text: str) -> Answer:
        return ALPHA if text.count("tanh") >= 3 else bug("beta")

    others = workshop(tmp_path, answer).reduce(find(placement(5)), lambda _: None)
    assert [signature(result.outcome).text.split()[3] for _, result in others] == ["beta"]  # type: ignore[union-attr]


def test_the_corpus_is_remembered(tmp_path: Path) -> None:
    shop = workshop(tmp_path)
    assert not shop.recall(find(placement(3)))
    shop.keep(find(placement(3)))
    assert not shop.recall(find(placement(3))), "what was not shrunk is worth another try"
    shop.keep(find(placement(1), reduced_seconds=1.0))
    again = find(placement(3))
    assert shop.recall(again)
    assert (again.size, again.program, again.case) == (2, placement(1), str(tmp_path / only(tmp_path).slug))
    assert again.start == placement(3)


def test_a_mixed_find_recalls_what_it_may_become(tmp_path: Path) -> None:
    shop = workshop(tmp_path)
    shop.keep(find(placement(1), reduced_seconds=1.0))
    assert shop.recall(find(mixed(3)))
    assert not shop.recall(find(program(3)))


def test_another_target_is_not_recalled(tmp_path: Path) -> None:
    workshop(tmp_path).keep(find(placement(1), reduced_seconds=1.0))
    for other in (
        msgspec.structs.replace(TARGET, sha256="b" * 64),
        msgspec.structs.replace(TARGET, topology="v6e:2x2"),
        msgspec.structs.replace(TARGET, options=(("xla_x", 1),)),
    ):
        assert not workshop(tmp_path, target=other).recall(find(placement(3)))


def test_a_smaller_case_of_another_hunt_is_not_marked(tmp_path: Path) -> None:
    shop = workshop(tmp_path)
    shop.keep(find(placement(1), reduced_seconds=1.0))
    late = find(placement(5))
    shop.keep(late)
    case = only(tmp_path)
    assert (case.notes, case.finds, case.minimum.size) == ((), 2, 2)
    late.reduced_seconds = 2.0
    shop.keep(late)
    assert (late.size, only(tmp_path).finds) == (2, 2)


def test_counting_on(tmp_path: Path) -> None:
    shop = workshop(tmp_path)
    one = find(placement(2))
    shop.keep(one)
    one.finds = 9
    shop.settle(one)
    shop.settle(one)
    assert only(tmp_path).finds == 9


def test_shelving_does_not_touch_what_is_there(tmp_path: Path) -> None:
    shop = workshop(tmp_path)
    shop.shelve(find(mixed(4)))
    case = only(tmp_path)
    assert (case.tier, case.notes) == ("program", (UNREDUCED,))
    again = find(mixed(2))
    shop.shelve(again)
    assert only(tmp_path) == case
    assert again.case == str(tmp_path / case.slug)


def test_shelving_what_is_gone(tmp_path: Path) -> None:
    one = find(mixed(4))
    workshop(tmp_path, lambda _: COMPILED).shelve(one)
    assert one.state == "flaky"
    assert list(Corpus(tmp_path)) == []


# -- what comes and goes ----------------------------------------------------------------------------------------------


def turns(*answers: Answer) -> Callable[[str], Answer]:
    """One answer after the other."""
    left = list(answers)
    return lambda _: left.pop(0)


def test_a_failure_that_comes_and_goes_is_saved_with_its_rates(tmp_path: Path) -> None:
    shop = workshop(tmp_path, turns(COMPILED, ALPHA, *[COMPILED] * 7, ALPHA))
    met = find(placement(2))
    assert not shop.confirm(met)
    shop.keep_flaky(met)
    (case,) = Corpus(tmp_path)
    assert isinstance(case, Case)
    assert (case.kind, case.signature, case.family) == ("flaky", f"flaky {met.signature}", "flaky")
    (record,) = case.outcomes
    # Two repeats, eight more, and the first sighting.
    assert record.rates == {met.signature: round(3 / 11, 3), "compiled": round(8 / 11, 3)}
    assert (record.outcome, record.signature) == ("rejected", case.signature)
    assert met.case == str(tmp_path / case.slug)
    assert met.repeats == {"compiled": 8, met.signature: 2}
    assert '"runs": 10' in (tmp_path / case.slug / "repro.py").read_text()


@pytest.mark.parametrize("reason", ["never again", "timed out", "not wanted", "compared"])
def test_what_is_not_saved_as_flaky(tmp_path: Path, reason: str) -> None:
    again = COMPILED if reason == "never again" else ALPHA
    shop = workshop(tmp_path, turns(COMPILED, *[again] * 9), want_flaky=reason != "not wanted")
    met = find(placement(2), TimedOut(60.0) if reason == "timed out" else ALPHA)
    if reason == "compared":
        met.kind = "pair-differs"
    else:
        assert not shop.confirm(met)
    shop.keep_flaky(met)
    assert list(Corpus(tmp_path)) == []
    assert met.case == ""
