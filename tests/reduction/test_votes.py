"""How often a candidate of a flaky failure is asked."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest

from reducer.oracle.jobs import Job
from reducer.oracle.outcome import Answer, Invalid, Result
from reducer.oracle.target import Target
from reducer.reduction import Refused
from reducer.reduction.asking import _Vote, done
from reducer.reduction.votes import Votes, votes_for

from .fakes import COMPILED, Heard, bug, chain, reduce, text_of


@pytest.mark.parametrize(
    ("failing", "runs", "votes"),
    [
        (3, 3, Votes(1, 1)),
        (11, 12, Votes(1, 2)),
        (9, 12, Votes(2, 5)),
        (6, 12, Votes(2, 8)),
        (4, 12, Votes(3, 17)),
        (3, 12, None),
        (1, 12, None),
    ],
)
def test_the_rule(failing: int, runs: int, votes: Votes | None) -> None:
    assert votes_for(failing, runs) == votes


def asked(*answers: Answer) -> Callable[[], Future[Result]]:
    left = iter(answers)
    return lambda: done(Result(next(left)))


def test_asking_ends_as_soon_as_it_is_decided() -> None:
    def wanted(result: Result) -> bool:
        return result.answer == bug()

    yes = _Vote(asked(bug(), COMPILED, bug(), COMPILED), wanted, Votes(2, 4)).result()
    assert (yes.answer, yes.compiles) == (bug(), 3)
    no = _Vote(asked(COMPILED, COMPILED, bug(), COMPILED), wanted, Votes(2, 4)).result()
    assert (no.answer, no.compiles) == (COMPILED, 4)
    never = _Vote(asked(Invalid("does not trace")), wanted, Votes(2, 4)).result()
    assert (never.answer, never.compiles) == (Invalid("does not trace"), 1)


def test_an_error_ends_a_vote() -> None:
    broken: Future[Result] = Future()
    broken.set_exception(OSError("no worker"))
    with pytest.raises(OSError, match="no worker"):
        _Vote(lambda: broken, lambda _: True, Votes(2, 4)).result()


def test_a_vote_that_waits_can_be_withdrawn_and_one_under_way_cannot() -> None:
    waiting: Future[Result] = Future()
    vote = _Vote(lambda: waiting, lambda _: True, Votes(2, 4))
    assert vote.cancel()
    assert (vote.cancelled(), waiting.cancelled()) == (True, True)
    first, second = done(Result(COMPILED)), Future[Result]()
    vote = _Vote(iter([first, second]).__next__, lambda _: False, Votes(2, 4))
    assert not vote.cancel()


class Sometimes:
    """Fails as `on_host` would in all but each fourth run of a program."""

    def __init__(self, each: int) -> None:
        self.each, self.runs = each, dict[str, int]()

    def __call__(self, job: Job, _: Target) -> Answer:
        text = text_of(job)
        self.runs[text] = self.runs.get(text, 0) + 1
        return bug() if "jax.device_put(" in text and self.runs[text] % self.each else COMPILED


def test_a_flaky_start_is_reduced_with_votes_and_without_the_cache(tmp_path: Path) -> None:
    heard = Heard()
    reduced, machine = reduce(tmp_path, chain("tanh", "sin", "cos"), Sometimes(4), heard=heard, certificate=False)
    assert reduced.rate == (9, 12)
    assert [line for line in heard.lines if "flaky" in line] == [
        "the start is flaky: it failed as asked for in 9 of 12 runs; a candidate counts as failing if it fails 2 times "
        "within 5 runs"
    ]
    assert reduced.stages["placement"].level.size(reduced.minimum) == 1
    assert machine.cached == [True, False]
    assert (machine.most, machine.open) == (1, 0)


def test_a_start_that_fails_too_rarely_is_refused_with_its_rate(tmp_path: Path) -> None:
    answers = iter([bug(), *[COMPILED] * 11])
    with pytest.raises(Refused, match="in 1 of 12 runs: too rarely") as refused:
        reduce(tmp_path / "out", chain("tanh"), lambda *_: next(answers))
    assert refused.value.rate["compiled"] == 0.917
    assert not (tmp_path / "out").exists()
