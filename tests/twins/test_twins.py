"""Twins of the seed programs, and the same programs with their offload saved on the device, or scaled up."""

from __future__ import annotations

from pathlib import Path

import pytest

from reducer.errors import ProgramError
from reducer.ir.build import Builder
from reducer.ir.check import check
from reducer.ir.codec import decode
from reducer.ir.equations import BARRIER, Checkpoint, Grad, Program, Scan
from reducer.ir.normal import normalise
from reducer.ir.policies import Both, OffloadDots, OffloadNames, Plain, Policy, SaveNames
from reducer.ir.types import Type
from reducer.ir.walk import equations
from reducer.twins import ENOUGH, named_bytes, saved_on_device, scaled_up, twins

SEED = Path(__file__).parents[1] / "seed"
TILE = Type("float32", (8, 128))


def seed(name: str) -> Program:
    return decode((SEED / f"{name}.json").read_bytes())


def loops(program: Program) -> list[tuple[int, bool]]:
    """Length of every loop, outermost first, and whether it has the barrier."""
    return [(e.length, e.metadata == BARRIER) for _, _, e in equations(program) if isinstance(e, Scan)]


def policies(program: Program) -> list[Policy | None]:
    return [e.policy for _, _, e in equations(program) if isinstance(e, Checkpoint)]


def of(policy: Policy) -> Program:
    """``checkpoint(sin(name(x)))`` with a policy."""
    inner = Builder()
    body = inner.block(inner.op("sin", inner.name(inner.param(TILE), "h")))
    b = Builder()
    return Program(b.block(*b.checkpoint(body, b.param(TILE), policy=policy)), gradient=Grad((0,)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "flat",
            {"with the barrier": [(12, True)], "a loop of n x m steps as two": [(6, False), (2, False)]},
        ),
        (
            "nested",
            {
                "with the barrier": [(4, True), (3, True)],
                "a loop of n x m steps as two": [(2, False), (2, False), (3, False)],
            },
        ),
        (
            "trip_count_one",
            {
                "without loops of one step": [(12, False)],
                "without the barrier": [(12, False), (1, False)],
                "a loop of n x m steps as two": [(6, False), (2, False), (1, True)],
            },
        ),
    ],
)
def test_twins_of_the_seed(name: str, expected: dict[str, list[tuple[int, bool]]]) -> None:
    program = seed(name)
    found = {twin.name: loops(twin.program) for twin in twins(program)}
    for twin, shape in expected.items():
        assert found[twin] == shape, twin
    for twin in twins(program):
        check(twin.program)
        assert [v.type for v in twin.program.block.params] == [v.type for v in program.block.params]


def test_a_loop_of_one_step_unwrapped_is_the_flat_program() -> None:
    """Reshapes of its weights apart: the seed's two programs take them in different shapes."""
    (twin,) = (t for t in twins(seed("trip_count_one_no_barrier")) if t.name == "without loops of one step")
    assert loops(twin.program) == loops(seed("flat"))


def test_a_loop_without_inputs_does_the_same_in_either_direction() -> None:
    step = Builder()
    body = step.block(step.op("sin", step.param(TILE)))
    b = Builder()
    program = Program(b.block(*b.scan(body, length=5, carry=(b.param(TILE),))))
    (twin,) = (t for t in twins(program) if t.name == "loops without inputs reversed")
    (scan,) = (e for _, _, e in equations(twin.program) if isinstance(e, Scan))
    assert scan.reverse


def test_names_that_nothing_carries_are_dropped() -> None:
    (twin,) = (t for t in twins(of(OffloadNames(("q", "h"), saved=("r",)))) if t.name == "without absent names")
    assert policies(twin.program) == [OffloadNames(("h",))]


def test_a_prime_length_is_not_split() -> None:
    step = Builder()
    body = step.block(step.op("sin", step.param(TILE)))
    b = Builder()
    program = Program(b.block(*b.scan(body, length=7, carry=(b.param(TILE),))))
    assert "a loop of n x m steps as two" not in {t.name for t in twins(program)}


@pytest.mark.parametrize(
    ("policy", "saved"),
    [
        (OffloadNames(("h",), saved=("g",)), SaveNames(("h", "g"))),
        (OffloadDots(), Plain("dots_with_no_batch_dims_saveable")),
        (Both(Plain("dots_saveable"), OffloadNames(("h",))), Both(Plain("dots_saveable"), SaveNames(("h",)))),
    ],
)
def test_the_same_values_saved_on_the_device(policy: Policy, saved: Policy) -> None:
    assert policies(saved_on_device(of(policy))) == [saved]


def test_without_an_offload_there_is_nothing_to_save() -> None:
    with pytest.raises(ProgramError, match="no policy of this program offloads anything"):
        saved_on_device(of(SaveNames(("h",))))


def test_bytes_of_what_is_named_count_every_turn() -> None:
    assert named_bytes(seed("flat")) == named_bytes(seed("nested")) == 12 * 8 * 128 * 4
    assert named_bytes(of(SaveNames(("h",)))) == 0


def test_scaling_grows_the_batch_and_not_the_weights() -> None:
    large = scaled_up(seed("nested"))
    x, w = (var.type.shape for var in normalise(large).block.params)
    assert named_bytes(large) >= ENOUGH
    assert (x[1], w) == (128, (4, 3, 128, 128))
    assert scaled_up(large) == large


def test_what_names_nothing_cannot_be_scaled() -> None:
    with pytest.raises(ProgramError, match="no dimension of this program"):
        scaled_up(of(SaveNames(("h",))))
