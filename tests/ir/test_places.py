"""What can be seen of host placements without lowering a program."""

from __future__ import annotations

import pytest

from reducer.ir.build import Builder
from reducer.ir.equations import Block, Grad, Program
from reducer.ir.places import may_place
from reducer.ir.policies import Both, OffloadDots, OffloadNames, Policy, SaveNames
from reducer.ir.types import parse_type

VECTOR = parse_type("f32[8]")
MATRIX = parse_type("f32[8,8]")
HOST = parse_type("f32[8]<host>")


def body(name: str = "x") -> Block:
    b = Builder()
    return b.block(b.op("sin", b.name(b.param(VECTOR), name)))


def product() -> Block:
    b = Builder()
    x = b.param(MATRIX)
    return b.block(b.matmul(x, x))


def checkpointed(policy: Policy | None, inner: Block, *, gradient: bool = True) -> Program:
    b = Builder()
    x = b.param(inner.params[0].type)
    return Program(b.block(*b.checkpoint(inner, x, policy=policy)), Grad((0,)) if gradient else None)


OFFLOAD = OffloadNames(("x",))


@pytest.mark.parametrize(
    ("program", "may"),
    [
        (checkpointed(OFFLOAD, body()), True),
        (checkpointed(OFFLOAD, body("y")), False),
        (checkpointed(OFFLOAD, body(), gradient=False), False),
        (checkpointed(SaveNames(("x",)), body()), False),
        (checkpointed(None, body()), False),
        (checkpointed(Both(SaveNames(("x",)), OFFLOAD), body()), True),
        (checkpointed(OffloadDots(), product()), True),
        (checkpointed(OffloadDots(), body()), False),
        (checkpointed(OFFLOAD, product()), False),
    ],
)
def test_policies(program: Program, may: bool) -> None:
    assert may_place(program) is may


def test_a_policy_reaches_into_regions() -> None:
    b = Builder()
    inner = b.block(*b.call(body(), b.param(VECTOR)))
    assert may_place(checkpointed(OFFLOAD, inner))


def test_a_move_to_the_host_and_an_input_there() -> None:
    b = Builder()
    assert may_place(Program(b.block(b.transfer(b.param(VECTOR), "host"))))
    b = Builder()
    assert may_place(Program(b.block(b.op("sin", b.param(HOST)))))
    b = Builder()
    assert not may_place(Program(b.block(b.op("sin", b.param(VECTOR)))))
