"""A user's own `@given` test: each signature is an exception type of its own, and is reported by itself."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import strategies
from reducer.failures import CompilerFailure, failure_type
from reducer.ir.equations import Checkpoint, Program, Scan
from reducer.ir.walk import equations


def test_one_class_per_signature():
    one, two = failure_type("INTERNAL Bitcast cannot have x"), failure_type("INTERNAL Bitcast cannot have y")
    assert one is failure_type("INTERNAL Bitcast cannot have x")
    assert one is not two
    assert one.__name__ != two.__name__
    assert issubclass(one, CompilerFailure)
    assert one.signature == "INTERNAL Bitcast cannot have x"
    with pytest.raises(CompilerFailure, match="the message"):
        raise one("the message")


@pytest.mark.parametrize("text", ["", "é\ud800", "1 2 3", "x" * 100_000])
def test_any_text_is_a_signature(text):
    assert failure_type(text).__name__.isidentifier()
    assert failure_type(text).signature == text


def test_two_signatures_are_two_reported_failures():
    def fails_like(program: Program) -> str | None:
        kinds = [type(eqn) for _, _, eqn in equations(program)]
        if Checkpoint in kinds and kinds.count(Scan) > 1:
            return "INTERNAL Bitcast"
        return "UNIMPLEMENTED Lane slice" if Scan in kinds else None

    @settings(
        database=None,
        derandomize=True,
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategies.layer_stacks(gradient=True))
    def compiles(program):
        if (signature := fails_like(program)) is not None:
            raise failure_type(signature)(signature)

    with pytest.raises(BaseExceptionGroup) as caught:
        compiles()
    assert {type(e) for e in caught.value.exceptions} == {
        failure_type("INTERNAL Bitcast"),
        failure_type("UNIMPLEMENTED Lane slice"),
    }
