"""Explanations: which values of each parameter were tried, and what is said of them."""

from __future__ import annotations

import pytest

from reducer.corpus import decode_case, encode_case
from reducer.evidence import explained
from reducer.ir.build import Builder
from reducer.ir.canonical import canonical
from reducer.ir.codec import identity
from reducer.ir.equations import BARRIER, Checkpoint, Grad, Op, Program, Scan
from reducer.ir.policies import OffloadNames
from reducer.ir.types import parse_type
from reducer.ir.walk import equations
from reducer.neighbourhood.parameters import parameters
from reducer.oracle.fake import FakeOracle
from reducer.oracle.outcome import Answer, Compiled, Memory
from reducer.shrink.explain import Explained

from .test_certificate import OTHER, WANTED, case


def program() -> Program:
    layer = Builder()
    c = layer.name(layer.param(parse_type("f32[]")), "h")
    body = Builder()
    outs = body.checkpoint(
        layer.block(layer.op("sin", c)), body.param(parse_type("f32[]")), policy=OffloadNames(("h",))
    )
    b = Builder()
    x = b.param(parse_type("f32[]"))
    return canonical(
        Program(
            b.block(*b.scan(body.block(*outs), length=2, carry=[x], metadata=BARRIER)),
            gradient=Grad((0,), with_value=False),
        )
    )


def answer(program: Program) -> Answer:
    """Fails with the barrier and an even length, or a length beyond 4; another policy fails otherwise."""
    found = {type(eqn): eqn for _, _, eqn in equations(program)}
    scan, checkpoint, op = found[Scan], found[Checkpoint], found[Op]
    assert isinstance(scan, Scan)
    assert isinstance(checkpoint, Checkpoint)
    assert isinstance(op, Op)
    if op.primitive == "exp" or not scan.metadata or scan.unroll != 1 or scan.length in (1, 3):
        return Compiled(Memory())
    return WANTED if isinstance(checkpoint.policy, OffloadNames) else OTHER


@pytest.mark.parametrize("workers", [1, 3])
def test_every_parameter_is_told(workers: int) -> None:
    with FakeOracle(answer, workers, key=identity) as oracle:
        done = explained(case(program()), "program", oracle)
        assert len(oracle.calls) <= 40
    told = {e.parameter: e.still_fails for e in done.minimum.explanations}
    assert told == {
        "length of b": "2, 4, 5, 8 (1, 3 compile)",
        "dtype": "any tried: bf16, f16, f32",
        "shape added to every value": "any tried: [1], [2, 8, 128], [8, 128], [8], []",
        "gradient": "any tried: none, value and with respect to a, with respect to a",
        "reverse of b": "any tried: False, True",
        "unroll of b": "only 1 (2 compiles)",
        "barrier (skip-simplify-while-loops_trip-count-one) of b": "required (it compiles without)",
        "prevent_cse of d": "any tried: False, True",
        "policy of d": (
            "save_and_offload_only_these_names(offloaded=(h) device->pinned_host), "
            "save_and_offload_only_these_names(offloaded=(h) device->unpinned_host) "
            "(None, everything_saveable, nothing_saveable, save_only_these_names(h) fail otherwise)"
        ),
        "function of g": "cos, logistic, neg, sin, tanh (exp compiles)",
        "name h": "any tried: attention_out, h, h.0, x",
    }
    assert done.minimum.explanations[0].tried == {
        "2": "fails-the-same",
        "1": "compiles",
        "3": "compiles",
        "4": "fails-the-same",
        "5": "fails-the-same",
        "8": "fails-the-same",
    }
    assert decode_case(encode_case(done)) == done


def test_the_search_is_bounded_and_tries_whole_parameters() -> None:
    with FakeOracle(answer, key=identity) as oracle:
        done = explained(case(program()), "program", oracle, limit=8)
        assert len(oracle.calls) == 7
    assert [e.parameter for e in done.minimum.explanations] == ["length of b", "dtype"]


def test_a_parameter_builds_the_program_it_says() -> None:
    lengths = next(p for p in parameters(program()) if p.name == "length of b")
    for value, build in lengths.others:
        assert [eqn.length for _, _, eqn in equations(build()) if isinstance(eqn, Scan)] == [int(value)]
    assert [value for value, _ in lengths.others] == ["1", "3", "4", "5", "8"]


@pytest.mark.parametrize(
    ("tried", "said"),
    [
        ({"3": "fails-the-same", "1": "compiles", "2": "fails-otherwise"}, "only 3 (1 compiles; 2 fails otherwise)"),
        ({"a": "fails-the-same", "b": "invalid", "c": "fails-the-same"}, "any tried: a, c"),
        ({"there": "fails-the-same", "not there": "fails-otherwise"}, "required (it fails otherwise without)"),
        ({"not there": "fails-the-same", "there": "compiles"}, "must not be there (it compiles with it)"),
        ({"there": "fails-the-same", "not there": "fails-the-same"}, "there or not"),
        ({"1": "fails-the-same", "2": "skipped"}, "only 1 (2 places nothing on the host)"),
    ],
)
def test_what_is_said(tried: dict[str, str], said: str) -> None:
    assert Explained("x", tried).still_fails == said  # type: ignore[arg-type]
