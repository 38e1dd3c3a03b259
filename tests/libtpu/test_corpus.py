"""Every committed case on the installed libtpu: failing as recorded is an expected failure, compiling is news."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reducer.corpus import Corpus
from reducer.corpus.regression import hold
from reducer.corpus.runner import Runner

pytestmark = pytest.mark.slow

CORPUS = Corpus(Path(__file__).resolve().parents[2] / "corpus")


@pytest.fixture(scope="module")
def run(private_cache: Path) -> Iterator[Runner]:
    del private_cache  # must be set before a worker inherits the environment
    with Runner(CORPUS, workers=1) as runner:
        yield runner


@pytest.mark.parametrize("slug", CORPUS.slugs())
def test_case(slug: str, run: Runner, request: pytest.FixtureRequest) -> None:
    case = CORPUS.get(slug)
    hold(request, case, run(case))


def test_there_are_cases() -> None:
    assert CORPUS.slugs(), f"{CORPUS.folder} holds no case: the tests above ran on nothing"
