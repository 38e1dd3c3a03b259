"""Programs that are said to compute the same, run on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from reducer.errors import ProgramError
from reducer.ir.build import Builder
from reducer.ir.codec import decode
from reducer.ir.equations import Program
from reducer.ir.types import Type
from reducer.lowering.equivalence import difference, largest_difference
from reducer.twins import saved_on_device, twins

SEED = Path(__file__).parents[1] / "seed"
TILE = Type("float32", (8, 128))


def unary(primitive: str, dtype: str = "float32") -> Program:
    b = Builder()
    return Program(b.block(b.op(primitive, b.param(Type(dtype, (8, 128))))))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["flat", "trip_count_one"])
def test_twins_compute_the_same(name: str) -> None:
    program = decode((SEED / f"{name}.json").read_bytes())
    derived = list(twins(program))
    assert len(derived) >= 2
    for twin in derived:
        assert difference(program, twin.program) <= 1e-6, twin.name
    assert difference(program, saved_on_device(program)) <= 1e-6


def test_a_difference_is_seen() -> None:
    assert difference(unary("sin"), unary("sin")) == 0.0
    assert difference(unary("sin"), unary("cos")) > 0.5


def test_what_is_not_a_number_on_both_sides_is_no_difference() -> None:
    assert difference(unary("log"), unary("log")) == 0.0


def test_other_inputs_cannot_be_compared() -> None:
    with pytest.raises(ProgramError, match="different inputs"):
        difference(unary("sin"), unary("sin", "bfloat16"))


@pytest.mark.slow
def test_in_a_process_of_its_own() -> None:
    assert largest_difference(unary("sin"), unary("sin")) == 0.0
    with pytest.raises(ProgramError, match=r"not compared on the CPU: .*different inputs"):
        largest_difference(unary("sin"), unary("sin", "bfloat16"))
