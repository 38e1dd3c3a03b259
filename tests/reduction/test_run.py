"""A whole reduction: tiers, settings, side finds, going on after an end at any moment."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reducer.corpus import Case, Corpus
from reducer.corpus.recheck import recheck
from reducer.errors import InputError, StorageError
from reducer.evidence import certified
from reducer.ir.codec import identity
from reducer.ir.equations import Block, Grad, Op, Program, Transfer, Var
from reducer.ir.types import Type
from reducer.oracle.confirm import Confirmation
from reducer.oracle.jobs import Job
from reducer.oracle.outcome import Answer, Compiled, Memory, Result, TimedOut
from reducer.oracle.programs import ProgramOracle
from reducer.oracle.signature import signature
from reducer.oracle.target import Target
from reducer.reduction import Progress, Reduction, Refused, Wanted, wanted_of
from reducer.reduction.saving import MET, UNREDUCED

from .fakes import (
    COMPILED,
    TARGET,
    FakePool,
    Heard,
    Machine,
    bug,
    chain,
    on_host,
    reduce,
    request,
    text_of,
    with_options,
)

START = chain("tanh", "sin", "cos", "exp")


def cases(folder: Path) -> list[Case]:
    found = list(Corpus(folder))
    assert all(isinstance(case, Case) for case in found)
    return [case for case in found if isinstance(case, Case)]


def only(folder: Path) -> Case:
    (case,) = cases(folder)
    return case


def only_shrunk(folder: Path) -> Case:
    (case,) = (case for case in cases(folder) if MET not in case.notes)
    return case


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_the_minimum_its_certificate_and_what_does_not_matter(tmp_path: Path) -> None:
    reduced, _ = reduce(tmp_path, START)
    case = only(tmp_path)
    assert case.minimum.size == 1
    assert case.minimum.certificate is not None
    assert case.minimum.certificate.counts(case.signature).get("fails-the-same") is None
    assert [one.parameter for one in case.minimum.explanations] != []
    assert case.start is not None
    assert case.start.program == START
    assert case.notes == ()
    assert reduced.signature == case.signature
    assert not reduced.partial
    assert [p.name for p in tmp_path.iterdir() if not p.name.startswith(".")] == [case.slug]


def test_nothing_is_compiled_before_it_is_known_where_to_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    machine = Machine(on_host)
    with pytest.raises(StorageError, match="cannot write to"):
        Reduction(request(tmp_path / "file", START), machine, Heard()).run()
    assert (machine.asked, machine.opened) == ([], [])


def test_a_pattern_that_names_nothing_is_found_before_anything_is_done(tmp_path: Path) -> None:
    machine = Machine(on_host)
    with pytest.raises(InputError, match="names nothing"):
        Reduction(request(tmp_path / "out", START, keep=("dot_general",)), machine, Heard()).run()
    assert (machine.opened, (tmp_path / "out").exists()) == ([], False)


def test_what_is_to_be_kept_is(tmp_path: Path) -> None:
    reduced, machine = reduce(tmp_path, START, keep=("cos", "input[0]"), certificate=False)
    assert (reduced.text.count("cos"), reduced.text.count("f32[8,128]<host>")) == (1, 1)
    assert reduced.stages["placement"].level.size(reduced.minimum) == 2
    asked = [text for text in machine.asked if "jax.device_put(" in text]
    assert all("cos(" in text for text in asked)


def test_the_certificate_says_what_was_not_tried_since_it_was_to_be_kept(tmp_path: Path) -> None:
    reduce(tmp_path, START, keep=("cos",))
    case = only(tmp_path)
    stored = case.minimum.certificate
    assert stored is not None
    counts = stored.counts(case.signature)
    assert counts["not-kept"] > 0
    assert "fails-the-same" not in counts
    assert case.notes == ("Minimal among what keeps, as was asked for: cos.",)
    tried = [verdict for one in case.minimum.explanations for verdict in one.tried.values()]
    assert "fails-the-same" in tried
    assert "skipped" not in tried
    # Asked about all the same, some of them fail, which the certificate does not deny.
    pool = FakePool(Machine(on_host), TARGET, 1)
    again = certified(case, "placement", ProgramOracle(pool, want_ledger=True))  # type: ignore[arg-type]
    now = again.minimum.certificate
    assert now is not None
    assert now.counts(case.signature)["fails-the-same"] > 0
    found = recheck(stored, now, case.signature)
    assert (found.holds, found.counts["not-kept"]) == (True, counts["not-kept"])


ALPHA = signature(bug("alpha"))
assert ALPHA is not None


@pytest.mark.parametrize(
    ("wanted", "size"),
    [
        (wanted_of(), 2),
        (wanted_of(signature=ALPHA.text), 2),
        (wanted_of(family=ALPHA.family), 2),
        (wanted_of(any_failure=True), 1),
    ],
)
def test_the_failure_that_is_kept(tmp_path: Path, wanted: Wanted, size: int) -> None:
    reduced, _ = reduce(tmp_path, START, two_bugs, wanted=wanted)
    assert reduced.stages["placement"].level.size(reduced.minimum) == size
    assert (reduced.signature == ALPHA.text) is (size == 2)


@pytest.mark.parametrize(
    ("answer", "wanted", "said"),
    [
        (lambda *_: COMPILED, Wanted(), "the start does not fail as asked for: compiled"),
        (on_host, Wanted("signature", "another"), "the start does not fail as asked for: rejected INTERNAL"),
        (on_host, Wanted("signature", "timed-out"), "the start does not time out: rejected after 0.8 s"),
        (
            lambda *_: TimedOut(900.0),
            Wanted(),
            "does not come to an end within 900 s; --signature timeout reduces it",
        ),
    ],
)
def test_a_start_that_does_not_fail_as_asked_for(tmp_path: Path, answer: Any, wanted: Wanted, said: str) -> None:
    with pytest.raises(Refused, match=said):
        reduce(tmp_path / "out", START, answer, wanted=wanted)
    assert not (tmp_path / "out").exists()
    # It is asked anew the next time: nothing of it is remembered.
    with pytest.raises(Refused):
        reduce(tmp_path / "out", START, answer, wanted=wanted)


def test_a_hang_can_be_reduced(tmp_path: Path) -> None:
    def answer(job: Job, _: Target) -> Answer:
        return TimedOut(5.0) if "jax.device_put(" in text_of(job) else COMPILED

    reduced, _ = reduce(tmp_path, START, answer, wanted=wanted_of(signature="timeout"), timeout=5.0)
    assert (reduced.signature, reduced.stages["placement"].confirmed.limit) == ("timed-out", 5.0)
    assert only(tmp_path).minimum.size == 1


@dataclass
class Slow:
    """Takes `seconds` with something on the host, and none without; is cut off at the limit that it is given."""

    seconds: float
    limits: list[float] = field(default_factory=list)

    def __call__(self, target: Target, jobs: int, /, **_: Any) -> Any:
        return self.pool(target, jobs)

    @contextlib.contextmanager
    def pool(self, target: Target, jobs: int) -> Iterator[Any]:
        slow = self

        class Timed(FakePool):
            def submit(self, job: Job, *, timeout: float = 60.0, **_: Any) -> Future[Result]:
                slow.limits.append(timeout)
                took = slow.seconds if "jax.device_put(" in text_of(job) else 0.0
                answer: Answer = TimedOut(timeout) if took > timeout else COMPILED
                done: Future[Result] = Future()
                done.set_result(Result(answer, 0.0, min(took, timeout), module_key=getattr(job, "key", "")))
                return done

            def confirm(self, job: Job, times: int = 2, *, timeout: float = 60.0, **_: Any) -> Future[Confirmation]:
                done: Future[Confirmation] = Future()
                done.set_result(Confirmation.of([self.submit(job, timeout=timeout).result() for _ in range(times)]))
                return done

        yield Timed(Machine(on_host), target, jobs)


def test_a_slow_compile_can_be_reduced(tmp_path: Path) -> None:
    slow = Slow(20.0)
    wish = request(tmp_path, START, wanted=wanted_of(signature="timeout"), certificate=False)
    reduced = Reduction(wish, slow, Heard()).run()
    stage = reduced.stages["placement"]
    # It comes to an end within the usual limit, so half of what it takes is the limit.
    assert slow.limits[0] == 60.0
    assert stage.confirmed.limit == 10.0
    assert set(slow.limits[1:]) == {10.0}
    assert "TIMEOUT = 20 " in (tmp_path / only(tmp_path).slug / "repro.py").read_text()
    assert (reduced.signature, stage.level.size(stage.best)) == ("timed-out", 1)


@pytest.mark.parametrize("start", [20.0, 16.0])
def test_a_slow_compile_that_is_remembered_is_timed_again(tmp_path: Path, start: float) -> None:
    # Everything is in the cache as compiled. A minimum may be faster than the start, as long as half of it is exceeded.
    machine = Machine(lambda *_: COMPILED)
    machine.remembers = True

    def seconds(job: Job) -> float:
        text = text_of(job)
        return 0.0 if "jax.device_put(" not in text else start if "exp(" in text else 12.0

    machine.seconds = seconds
    wish = request(tmp_path, START, wanted=wanted_of(signature="timeout"))
    reduced = Reduction(wish, machine, Heard()).run()
    stage = reduced.stages["placement"]
    assert (reduced.signature, stage.level.size(stage.best)) == ("timed-out", 1)
    assert stage.confirmed.limit == (start + 0.25) / 2
    assert only(tmp_path).minimum.certificate is not None


def test_a_fast_compile_is_not_slow(tmp_path: Path) -> None:
    reduction = Reduction(request(tmp_path, START, wanted=wanted_of(signature="timeout")), Slow(1.0), Heard())
    with pytest.raises(Refused, match=r"does not time out: compiled after 1\.0 s"):
        reduction.run()


def test_the_limit_is_that_of_the_start(tmp_path: Path) -> None:
    reduced, _ = reduce(tmp_path / "a", START)
    assert reduced.stages["placement"].confirmed.limit == 60.0  # ten times 0.75 s is less
    reduced, _ = reduce(tmp_path / "b", START, timeout=7.0)
    assert reduced.stages["placement"].confirmed.limit == 7.0


@pytest.mark.parametrize("remembers", [False, True])
def test_the_limit_is_the_same_whether_the_start_was_compiled_before(tmp_path: Path, remembers: bool) -> None:
    machine = Machine(on_host)
    machine.seconds, machine.remembers = lambda _: 200.0, remembers
    reduced = Reduction(request(tmp_path, START), machine, Heard()).run()
    # 200 s, and the 0.25 s that lowering takes.
    assert reduced.stages["placement"].confirmed.limit == 2002.5


# --- tiers


def policy_program() -> Program:
    from .test_keep import program

    made = program()
    return msgspec.structs.replace(made, gradient=Grad((0,)))


def test_only_the_tier_asked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be reduced at the tier asked for: it is of the placement tier"):
        reduce(tmp_path / "out", START, tiers=frozenset({"program"}))


def test_a_case_starts_each_tier_from_what_is_stored(tmp_path: Path) -> None:
    def answer(_: Job, __: Target) -> Answer:
        return bug()

    first, _ = reduce(tmp_path / "a", policy_program(), answer, tiers=frozenset({"program"}))
    case = only(tmp_path / "a")
    assert case.tier == "program"
    stored = chain("tanh")
    assert case.minimum.program is not None
    again, _ = reduce(tmp_path / "b", case.minimum.program, answer, case=case, stored={"placement": stored})
    assert again.stages["placement"].start == stored
    assert identity(again.minimum) == identity(first.minimum)  # type: ignore[arg-type]
    assert not again.stages["program"].changed


def mixed_program() -> Program:
    """With a policy, and something on the host besides."""
    from .test_keep import program

    block = program().block
    (result,) = block.results
    assert isinstance(result, int)
    kind = Type("float32", (8, 128)).in_memory("host")
    moved = Transfer(outs=(Var(result + 1, kind),), arg=result, memory="host")
    return Program(msgspec.structs.replace(block, eqns=(*block.eqns, moved), results=(result + 1,)))


def test_of_two_minima_of_a_tier_the_smaller_stays_with_the_compiles_of_both(tmp_path: Path) -> None:
    def answer(job: Job, _: Target) -> Answer:
        text = text_of(job)
        there = "cos(" in text or ("tanh(" in text and "exp(" in text)
        return bug() if there and "jax.device_put(" in text else COMPILED

    alone, _ = reduce(tmp_path / "a", mixed_program(), answer)
    stored = chain("tanh", "exp")
    other, _ = reduce(tmp_path / "b", stored, answer)
    assert [alone.stages["placement"].level.size(one.minimum) for one in (alone, other)] == [2, 3]
    both, _ = reduce(tmp_path / "c", mixed_program(), answer, stored={"placement": stored})
    assert both.minimum == alone.minimum
    assert both.stages["placement"].minimal
    counted = [one.stages["placement"].compiles for one in (alone, other, both)]
    assert counted[2] == counted[0] + counted[1]


def test_a_tier_that_cannot_be_reduced_leaves_what_was_there(tmp_path: Path) -> None:
    t = Type("float32", (8, 128))
    ops = tuple(Op(outs=(Var(n, t),), primitive=name, args=(0,)) for n, name in ((1, "exp"), (2, "tanh")))
    dead = Program(Block((Var(0, t),), ops, (2,)))

    def answer(job: Job, _: Target) -> Answer:
        text = text_of(job)
        return bug() if ("cos(" in text and "jax.device_put(" in text) or "exp(" in text else COMPILED

    reduced, _ = reduce(tmp_path, mixed_program(), answer, stored={"placement": dead})
    assert list(reduced.stages) == ["placement"]
    assert "without dead code" in reduced.unreached["placement"]
    assert only(tmp_path).minimum.program == reduced.minimum


# --- settings


def test_options_and_topology_that_are_not_needed_go(tmp_path: Path) -> None:
    def answer(job: Job, target: Target) -> Answer:
        needed = dict(target.options).get("xla_needed") == 1
        return bug() if needed and "jax.device_put(" in text_of(job) else COMPILED

    target = msgspec.structs.replace(with_options(xla_a=True, xla_needed=1, xla_z="x"), topology="v6e:2x2")
    reduced, machine = reduce(tmp_path, START, answer, target=target)
    assert reduced.dropped == ("xla_a=True", "xla_z=x", "topology v6e:2x2")
    assert reduced.target == with_options(xla_needed=1)
    case = only(tmp_path)
    assert (case.target.options, case.target.topology) == ({"xla_needed": 1}, "v5e:2x2")
    assert machine.opened[-1] == reduced.target


def test_what_becomes_smaller_on_the_target_that_is_left(tmp_path: Path) -> None:
    def answer(job: Job, target: Target) -> Answer:
        text = text_of(job)
        held = "exp(" in text or not target.options
        return bug() if held and "jax.device_put(" in text else COMPILED

    reduced, _ = reduce(tmp_path, START, answer, target=with_options(xla_a=True))
    assert (only(tmp_path).minimum.size, reduced.dropped) == (1, ("xla_a=True",))


def test_a_flaky_failure_is_asked_about_as_often_on_another_target(tmp_path: Path) -> None:
    runs: dict[tuple[str, bool], int] = {}

    def answer(job: Job, target: Target) -> Answer:
        """Three of four times; without the option, only the first time."""
        text, whole = text_of(job), bool(target.options)
        runs[text, whole] = runs.get((text, whole), 0) + 1
        fails = runs[text, whole] % 4 if whole else runs[text, whole] == 1
        return bug() if fails and "jax.device_put(" in text else COMPILED

    reduced, _ = reduce(tmp_path, START, answer, target=with_options(xla_a=True), certificate=False)
    assert reduced.dropped == ()
    assert only(tmp_path).target.options == {"xla_a": True}


def test_an_option_that_is_needed_after_all_comes_back(tmp_path: Path) -> None:
    asked: dict[str, int] = {}

    def answer(job: Job, target: Target) -> Answer:
        """Without the option a program fails once, and never again."""
        text = text_of(job)
        if not target.options:
            asked[text] = asked.get(text, 0) + 1
        return bug() if "jax.device_put(" in text and (target.options or asked[text] == 1) else COMPILED

    heard = Heard()
    reduced, machine = reduce(tmp_path, START, answer, target=with_options(xla_a=True), heard=heard)
    assert (reduced.dropped, reduced.partial) == ((), False)
    assert any("xla_a=True: needed after all" in line for line in heard.lines)
    case = only(tmp_path)
    assert (case.target.options, case.minimum.size) == ({"xla_a": True}, 1)
    assert case.minimum.certificate is not None
    assert (machine.most, machine.open) == (2, 0)


def test_only_the_pools_of_one_target_are_open(tmp_path: Path) -> None:
    reduced, machine = reduce(tmp_path, START, target=with_options(xla_a=True, xla_b=True), jobs=3)
    assert len(reduced.dropped) == 2
    # That of the run, and one worker that tries what can be left out.
    assert (machine.most, len(machine.opened), machine.open) == (4, 4, 0)


# --- other failures


def two_bugs(job: Job, _: Target) -> Answer:
    """alpha with an exp, beta without, nothing where nothing is moved to the host."""
    text = text_of(job)
    return bug("alpha" if "exp(" in text else "beta") if "jax.device_put(" in text else COMPILED


def test_other_failures_are_offered_to_the_corpus(tmp_path: Path) -> None:
    reduced, _ = reduce(tmp_path, START, two_bugs)
    (find,) = reduced.finds
    assert "beta" in find.signature
    by = {case.signature: case for case in cases(tmp_path)}
    assert set(by) == {reduced.signature, find.signature}
    met = by[find.signature]
    assert (met.notes, str(tmp_path / met.slug)) == ((MET,), find.case)
    assert met.found is not None
    assert met.found.strategy == f"met while reducing {reduced.signature}"


def test_one_that_does_not_come_again_is_not_saved(tmp_path: Path) -> None:
    times: dict[str, int] = {}

    def answer(job: Job, target: Target) -> Answer:
        found = two_bugs(job, target)
        text = text_of(job)
        times[text] = times.get(text, 0) + 1
        return COMPILED if found == bug("beta") and times[text] > 1 else found

    reduced, _ = reduce(tmp_path, START, answer)
    assert [find.case for find in reduced.finds] == [""]
    assert len(cases(tmp_path)) == 1


# --- going on


class Ended(Exception):
    """The process died."""


@pytest.mark.parametrize("after", [1, 4, 9, 15, 20])
def test_the_same_request_goes_on_without_asking_twice(tmp_path: Path, cache: Path, after: int) -> None:
    whole, machine = reduce(tmp_path / "whole", START, two_bugs)
    asked = machine.asked
    shutil.rmtree(cache / "runs")

    left = after

    def dying(job: Job, target: Target) -> Answer:
        nonlocal left
        left -= 1
        if left < 0:
            raise Ended
        return two_bugs(job, target)

    first = Machine(dying)
    with pytest.raises(Ended):
        Reduction(request(tmp_path / "out", START), first, Heard()).run()
    heard = Heard()
    reduced, second = reduce(tmp_path / "out", START, two_bugs, heard=heard)
    assert first.asked[:after] + second.asked == asked
    assert any(line.startswith("going on with ") for line in heard.lines)
    assert folder_bytes(tmp_path / "out") == folder_bytes(tmp_path / "whole")
    assert reduced.compiles == whole.compiles


def test_a_second_run_asks_nothing_and_changes_nothing(tmp_path: Path, cache: Path) -> None:
    first, _ = reduce(tmp_path / "out", START, two_bugs)
    (journal,) = (cache / "runs").glob("*.jsonl")
    written = journal.read_bytes()
    before = folder_bytes(tmp_path / "out")
    again, machine = reduce(tmp_path / "out", START, two_bugs)
    assert (machine.asked, again.text, journal.read_bytes()) == ([], first.text, written)
    assert folder_bytes(tmp_path / "out") == before


def test_the_best_so_far_lies_in_the_folder_until_the_case_does(tmp_path: Path) -> None:
    seen: list[set[str]] = []

    def look(_: Progress) -> None:
        seen.extend({p.name for p in folder.iterdir()} for folder in (tmp_path / "out").glob("_unfinished-*"))

    heard = Heard()
    heard.then = look
    reduce(tmp_path / "out", START, heard=heard)
    assert seen
    assert seen[-1] == {"program.json", "repro_placement.py"}
    assert list((tmp_path / "out").glob("_unfinished-*")) == []


@pytest.mark.parametrize("at", [1, 5, 20, 40])
def test_stopped_at_any_moment_it_saves_the_best_so_far(tmp_path: Path, at: int) -> None:
    heard = Heard()
    machine = Machine(on_host)
    reduction = Reduction(request(tmp_path / "out", START), machine, heard)
    heard.then = lambda _: reduction.stop() if len(heard.moments) == at else None
    reduced = reduction.run()
    case = only(tmp_path / "out")
    assert (reduced.partial, case.notes) == (True, (UNREDUCED,))
    assert case.minimum.program == reduced.minimum
    assert "eqns" not in reduction.shown()
    assert reduction.shown().startswith(reduced.text)
    again, _ = reduce(tmp_path / "out", START)
    assert not again.partial
    case = only(tmp_path / "out")
    assert (case.minimum.size, case.notes, case.finds) == (1, (), 1)
    reduce(tmp_path / "whole", START)
    assert folder_bytes(tmp_path / "out") == folder_bytes(tmp_path / "whole")


def test_a_case_is_reduced_again_where_it_is(tmp_path: Path) -> None:
    out = tmp_path / "out"
    reduce(out, START, budget=1)
    Corpus(out).update(only(out).slug, lambda case: msgspec.structs.replace(case, finds=7))
    before = only(out)
    assert before.minimum.certificate is None
    reduce(out, before.minimum.program, case=before)
    after = only(out)
    assert (after.slug, after.finds, after.notes, after.minimum.size) == (before.slug, 7, (), 1)
    assert after.minimum.certificate is not None
    assert (after.start, after.found.strategy) == (before.start, before.found.strategy)


@pytest.mark.parametrize("budget", [1, 3])
def test_a_budget_that_ended_it_leaves_no_trace_once_it_is_done(tmp_path: Path, budget: int) -> None:
    first, _ = reduce(tmp_path / "out", START, budget=budget)
    assert (first.partial, only(tmp_path / "out").notes) == (True, (UNREDUCED,))
    reduce(tmp_path / "out", START)
    reduce(tmp_path / "whole", START)
    one, whole = only(tmp_path / "out"), only(tmp_path / "whole")
    assert (one.notes, one.finds, one.minimum) == ((), 1, whole.minimum)
    assert one.minimum.certificate is not None


class Killed(BaseException):
    """A second signal, that waits for nothing."""


def stop_at_the_certificate(reduction: Reduction, heard: Heard, *, at: int) -> None:
    seen: list[Progress] = []

    def look(moment: Progress) -> None:
        if moment.doing == "record every neighbour of the minimum":
            seen.append(moment)
            if len(seen) == at:
                reduction.stop()

    heard.then = look


def test_the_case_is_saved_before_anything_else_is_found_out(tmp_path: Path) -> None:
    heard = Heard()

    def look(moment: Progress) -> None:
        if moment.doing == "record every neighbour of the minimum":
            raise Killed

    heard.then = look
    with pytest.raises(Killed):
        reduce(tmp_path / "out", START, two_bugs, heard=heard)
    case = only(tmp_path / "out")
    assert (case.minimum.size, case.notes, case.minimum.certificate) == (2, (), None)
    reduce(tmp_path / "out", START, two_bugs)
    assert [case.finds for case in cases(tmp_path / "out")] == [1, 1]
    assert only_shrunk(tmp_path / "out").minimum.certificate is not None


def test_stopped_at_the_certificate_it_says_so_and_goes_on(tmp_path: Path) -> None:
    heard = Heard()
    reduction = Reduction(request(tmp_path / "out", START), Machine(two_bugs), heard)
    stop_at_the_certificate(reduction, heard, at=3)
    reduced = reduction.run()
    assert (reduced.partial, reduced.finds, reduced.stages["placement"].minimal) == (True, (), True)
    assert heard.lines[-1] == "ended before all was recorded; the minimum is saved, and the same command goes on"
    assert only(tmp_path / "out").minimum.certificate is None
    again, _ = reduce(tmp_path / "out", START, two_bugs)
    assert (again.partial, len(again.finds), "placement" in again.explanations) == (False, 1, True)
    assert only_shrunk(tmp_path / "out").minimum.certificate is not None


def test_what_was_minimal_is_not_while_it_is_reduced_again(tmp_path: Path) -> None:
    def answer(job: Job, target: Target) -> Answer:
        text = text_of(job)
        held = "exp(" in text or not target.options
        return bug() if held and "jax.device_put(" in text else COMPILED

    heard = Heard()
    machine = Machine(answer)
    reduction = Reduction(request(tmp_path, START, target=with_options(xla_a=True)), machine, heard)
    heard.then = lambda _: reduction.stop() if heard.lines[-1].startswith("xla_a=True is not needed") else None
    reduced = reduction.run()
    assert (reduced.partial, reduced.stages["placement"].minimal) == (True, False)
    assert only(tmp_path).notes == (UNREDUCED,)


@pytest.mark.parametrize("budget", [1, 2, 3, 4])
def test_a_budget_counts_what_earlier_runs_compiled(tmp_path: Path, budget: int) -> None:
    first, _ = reduce(tmp_path / "out", START, budget=budget)
    assert (sum(stage.compiles for stage in first.stages.values()), first.partial) == (budget, True)
    again, machine = reduce(tmp_path / "out", START, budget=budget)
    assert (again.text, machine.asked) == (first.text, [])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"libtpu": "0.0.50.1", "sha256": "b" * 64}, "libtpu 0.0.52"),
        ({"topology": "v6e:2x2"}, "topology v5e:2x2"),
        ({"options": (("xla_a", 1),)}, "options none"),
    ],
)
def test_a_run_on_another_target_starts_anew_and_says_so(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    reduce(tmp_path / "a", START, budget=2)
    heard = Heard()
    other = msgspec.structs.replace(TARGET, **change)
    _, machine = reduce(tmp_path / "b", START, target=other, heard=heard, settings=False)
    assert heard.lines[0] == (
        f"an unfinished reduction of this start was for {said}: none of its answers is used, and this one starts anew"
    )
    whole = reduce(tmp_path / "c", chain("tanh", "sin", "cos", "exp"), target=other, settings=False)[1]
    assert machine.asked != []
    assert whole.asked == []


def test_progress(tmp_path: Path) -> None:
    heard = Heard()
    reduce(tmp_path, START, two_bugs, heard=heard)
    counted = [m for m in heard.moments if m.total is not None]
    assert all(m.total is not None and 0 <= m.tried <= m.total for m in counted)
    last = counted[-1]
    assert (last.doing, last.tried) == ("record every neighbour of the minimum", last.total)
    assert len({m.doing for m in counted}) > 2
    assert {m.tier for m in heard.moments} == {"placement"}
    compiles = [m.compiles for m in heard.moments]
    assert compiles == sorted(compiles)


def test_memory_figures_are_not_compared(tmp_path: Path) -> None:
    reduced, _ = reduce(tmp_path, START, lambda job, _: bug() if "tanh" in text_of(job) else Compiled(Memory(temp=1)))
    assert "tanh" in reduced.text
