"""Samples: the same few thousand programs on every run, drawn once."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.strategies import SearchStrategy

import strategies
from reducer.ir.equations import Program

Sampler = Callable[[str], list[Program]]


def draw(strategy: SearchStrategy[Program], count: int) -> list[Program]:
    found: list[Program] = []

    @hypothesis.seed(20)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(strategy)
    def take(program: Program) -> None:
        found.append(program)

    take()
    return found


@pytest.fixture(scope="session")
def sample() -> Sampler:
    """A thousand examples of a strategy by its name, the same on every run."""
    known: dict[str, list[Program]] = {}

    def get(name: str) -> list[Program]:
        if name not in known:
            known[name] = draw(getattr(strategies, name)(), 1000)
        return known[name]

    return get
