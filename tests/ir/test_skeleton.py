"""What two programs of one skeleton may differ in, and what they may not."""

from __future__ import annotations

import msgspec
import pytest

from reducer.ir.build import Builder, lit
from reducer.ir.equations import BARRIER, Entry, Grad, Mesh, Program
from reducer.ir.policies import OffloadNames, SaveNames
from reducer.ir.skeleton import skeleton
from tests.ir.samples import SEEDS, seed, t, unary, zoo
from tests.ir.shuffling import shuffled

replace = msgspec.structs.replace


def layers(
    *,
    outer: int = 4,
    inner: int = 3,
    shape: str = "f32[8]",
    name: str = "h",
    offload: bool = True,
    constant: float = 1.0,
    mention: str | None = None,
    barrier: bool = False,
    host: bool = False,
) -> Program:
    x = t(shape)
    mention = name if mention is None else mention
    b = Builder()
    a = b.param(x)
    body = b.block(b.op("sin", b.op("mul", b.name(a, name), lit(constant, x.dtype))))
    policy = OffloadNames((mention,)) if offload else SaveNames((mention,))
    c = Builder()
    ckpt = c.block(*c.checkpoint(body, c.param(x), policy=policy))
    d = Builder()
    first = d.block(*d.scan(ckpt, length=inner, carry=[d.param(x)], metadata=BARRIER if barrier else ()))
    e = Builder()
    out = e.scan(first, length=outer, carry=[e.param(x)])
    return Program(e.block(*(e.transfer(o, "host") for o in out) if host else out))


@pytest.mark.parametrize(
    "other",
    [
        {"outer": 12, "inner": 2},
        {"shape": "f32[2,4]"},
        {"shape": "bf16[16]"},
        {"name": "k"},
        {"constant": 0.5},
    ],
)
def test_the_same(other: dict) -> None:
    assert skeleton(layers(**other)) == skeleton(layers())


@pytest.mark.parametrize(
    "other",
    [{"inner": 1}, {"outer": 1}, {"offload": False}, {"mention": "other"}, {"barrier": True}, {"host": True}],
)
def test_not_the_same(other: dict) -> None:
    assert skeleton(layers(**other)) != skeleton(layers())


def test_surroundings_count() -> None:
    program = Program(unary("sin", t("f32[4]")), mesh=Mesh((("x", 2),)))
    variants = [
        program,
        replace(program, mesh=None),
        replace(program, gradient=Grad((0,))),
        replace(program, gradient=Grad((0,), with_value=False)),
        replace(program, inputs=(Entry(("x",)),)),
        replace(program, inputs=(Entry(donated=True),)),
        replace(program, result_specs=((),)),
    ]
    assert len({skeleton(v) for v in variants}) == len(variants)


def test_seeds() -> None:
    assert len({skeleton(seed(name)) for name in SEEDS}) == 4


def test_order_does_not_matter() -> None:
    assert {skeleton(shuffled(zoo(), k)) for k in range(20)} == {skeleton(zoo())}


def test_stable_across_processes() -> None:
    assert skeleton(seed("nested")) == "1703138407384584"
