"""A find in a model still fails as it does alone, and the model without it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from reducer.ir.codec import decode
from reducer.ir.equations import Program
from reducer.oracle.outcome import Compiled
from reducer.oracle.pool import Pool
from reducer.oracle.programs import program_job
from reducer.oracle.verdict import failure
from strategies import embedded

pytestmark = pytest.mark.slow

SEED = Path(__file__).parents[1] / "seed"


def program(name: str) -> Program:
    return decode((SEED / f"{name}.json").read_bytes())


def test_a_find_fails_the_same_in_a_model(pool: Pool) -> None:
    find = program("trip_count_one")
    alone, inside = (pool.submit(program_job(one)).result() for one in (find, embedded(find, equations=100, seed=0)))
    assert failure(alone) is not None
    assert failure(inside) == failure(alone)


def test_it_is_the_find_that_fails(pool: Pool) -> None:
    # The same seed around a program that is fine.
    model = embedded(program("flat"), equations=100, seed=0)
    assert isinstance(pool.submit(program_job(model)).result().answer, Compiled)
