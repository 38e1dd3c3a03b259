"""`--keep`: the notation, and what it matches."""

from __future__ import annotations

import pytest

from reducer.errors import InputError
from reducer.ir.build import Builder
from reducer.ir.equations import Program
from reducer.ir.policies import OffloadNames
from reducer.ir.types import parse_type
from reducer.reduction.keep import keeps

T = parse_type("f32[8,128]")


def program(*, remat: bool = True, cos: int = 2, name: str = "h", inputs: tuple[str, ...] = ("f32[8,128]",)) -> Program:
    """sin, a scan with `cos` cos in it, and a scan whose step is a checkpoint around a name and a tanh."""
    top, flat, step, body = Builder(), Builder(), Builder(), Builder()
    value = flat.param(T)
    for _ in range(cos):
        value = flat.op("cos", value)
    inner = body.block(body.op("tanh", body.name(body.param(T), name)))
    c = step.param(T)
    (out,) = (
        step.checkpoint(inner, c, policy=OffloadNames((name,))) if remat else (step.op("tanh", step.name(c, name)),)
    )
    x, *_ = map(top.param, map(parse_type, inputs))
    (y,) = top.scan(flat.block(value), carry=[top.op("sin", x)], length=3)
    (z,) = top.scan(step.block(out), carry=[y], length=3)
    return Program(top.block(z))


START = program()


@pytest.mark.parametrize(
    ("pattern", "less", "kept"),
    [
        ("cos", program(cos=1), True),
        ("cos", program(cos=0), False),
        ("cos[1]", program(cos=1), False),
        ("checkpoint", program(remat=False), False),
        ("tanh", program(remat=False), True),
        ("scan/checkpoint", program(remat=False), False),
        ("scan//tanh", program(remat=False), True),
        ("/sin", program(remat=False), True),
        ("/scan[0]/cos", program(cos=1), True),
        ("/scan[1]/checkpoint/tanh", program(cos=1), True),
        ("/scan[1]/checkpoint/tanh", program(remat=False), False),
        ("name=h", program(remat=False), True),
        ("name=h", program(name="g"), False),
        ("policy=h", program(cos=0), True),
        ("policy=h", program(name="g"), False),
        ("policy=h", program(remat=False), False),
        ("input[0]", program(inputs=("f32[8,128]", "f32[2]")), True),
    ],
)
def test_patterns(pattern: str, less: Program, kept: bool) -> None:
    keep = keeps([pattern], START)
    assert keep(START)
    assert keep(less) is kept


def test_an_input_is_known_by_its_type() -> None:
    start = program(inputs=("f32[8,128]", "f32[2]"))
    assert keeps(["input[1]"], start)(program(inputs=("f32[8,128]", "f32[2]", "f32[3]")))
    assert not keeps(["input[1]"], start)(program(inputs=("f32[8,128]", "f32[1]")))


def test_all_patterns_must_hold() -> None:
    keep = keeps(["cos", "checkpoint"], START)
    assert not keep(program(remat=False))
    assert not keep(program(cos=0))
    assert keeps([], START)(program(cos=0))


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("dot_general", "names nothing in the start"),
        ("/cos", "names nothing in the start"),
        ("scan/tanh", "names nothing in the start"),
        ("cos[7]", "names nothing in the start"),
        ("name=g", "names nothing in the start"),
        ("input[3]", "the start has 1 input"),
        ("input", "cannot be read"),
        ("", "cannot be read"),
        ("a b", "cannot be read"),
        ("scan/", "cannot be read"),
        ("cos[-1]", "cannot be read"),
        ("[0]", "cannot be read"),
    ],
)
def test_what_names_nothing_or_cannot_be_read(pattern: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        keeps([pattern], START)


def test_the_hint_names_what_is_there() -> None:
    with pytest.raises(InputError) as error:
        keeps(["dot_general"], START)
    assert error.value.hint == "there are checkpoint, cos, name, scan, sin, tanh"
