"""What a placement-tier program owes to host memory, read from its equations."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest

from reducer.ir.build import Builder
from reducer.ir.equations import Block, Grad, Program, Var
from reducer.ir.normal import normalise
from reducer.ir.types import Type
from reducer.ledger import Stack, owed_stacks

TILE = Type("float32", (8, 128))


def owed(block: Block) -> list[tuple[tuple[int, ...], tuple[int, ...], str, bool, bool]]:
    stacks = owed_stacks(normalise(Program(block)))
    return [(s.shape, s.loops, s.name, s.invariant, s.output) for s in stacks]


def forward(*, names: tuple[str, ...] = ("h",), moved: str = "carry") -> Block:
    """c, k -> sin(c), and a copy of c (or of k, which the loop does not change) on the host for each name."""
    b = Builder()
    c, k = b.param(TILE), b.param(TILE)
    kept = [b.transfer(b.name(c if moved == "carry" else k, name), "host") for name in names]
    return b.block(b.op("sin", c), *kept)


def backward(count: int = 1) -> Block:
    """c, h... -> c + h + ..., where each h comes from the host."""
    b = Builder()
    c = b.param(TILE)
    hosts = [b.param(TILE.in_memory("host")) for _ in range(count)]
    for host in hosts:
        c = b.op("add", c, b.transfer(host, "device"))
    return b.block(c)


def there_and_back(body: Block, length: int, count: int = 1) -> Block:
    """One loop stacks, the next consumes."""
    b = Builder()
    x, k = b.param(TILE), b.param(TILE)
    y, *stacks = b.scan(_swapped(body), length=length, consts=(k,), carry=(x,))
    return b.block(*b.scan(backward(count), length=length, carry=(y,), xs=tuple(stacks), reverse=True))


def _swapped(body: Block) -> Block:
    """The second parameter first, as a scan's constants come."""
    c, k = body.params
    return Block((k, c), body.eqns, body.results)


def test_a_stack_grows_by_the_loop_it_leaves() -> None:
    assert owed(there_and_back(forward(), 12)) == [((12, 8, 128), (12,), "h", False, False)]


def test_one_value_under_two_names_is_owed_once() -> None:
    assert owed(there_and_back(forward(names=("h", "g")), 12, 2)) == [((12, 8, 128), (12,), "h", False, False)]


def test_what_a_loop_does_not_change_is_marked() -> None:
    assert owed(there_and_back(forward(moved="constant"), 12)) == [((12, 8, 128), (12,), "h", True, False)]


def test_a_stack_leaves_two_loops() -> None:
    inner = Builder()
    c, k = inner.param(TILE), inner.param(TILE)
    results = inner.scan(_swapped(forward()), length=3, consts=(k,), carry=(c,))
    outer_body = inner.block(*results)
    b = Builder()
    x, k = b.param(TILE), b.param(TILE)
    y, stack = b.scan(_swapped(outer_body), length=4, consts=(k,), carry=(x,))
    use = Builder()
    c = use.param(TILE)
    hs = use.param(TILE.stacked(3).in_memory("host"))
    consumed = use.block(*use.scan(backward(), length=3, carry=(c,), xs=(hs,)))
    block = b.block(*b.scan(consumed, length=4, carry=(y,), xs=(stack,)))
    assert owed(block) == [((4, 3, 8, 128), (4, 3), "h", False, False)]


def test_what_is_consumed_inside_a_loop_does_not_escape_it() -> None:
    """Gradient accumulation: each step stacks, consumes, and forgets."""
    step = Builder()
    c, k = step.param(TILE), step.param(TILE)
    y, stack = step.scan(_swapped(forward()), length=3, consts=(k,), carry=(c,))
    body = step.block(*step.scan(backward(), length=3, carry=(y,), xs=(stack,)))
    b = Builder()
    x, k = b.param(TILE), b.param(TILE)
    block = b.block(*b.scan(_swapped(body), length=4, consts=(k,), carry=(x,)))
    assert owed(block) == [((3, 8, 128), (3,), "h", False, False)]


def test_a_result_on_the_host_is_an_output() -> None:
    b = Builder()
    x, k = b.param(TILE), b.param(TILE)
    block = b.block(*b.scan(_swapped(forward()), length=6, consts=(k,), carry=(x,)))
    assert owed(block) == [((6, 8, 128), (6,), "h", False, True)]


def test_inputs_on_the_host_are_not_owed() -> None:
    b = Builder()
    x, h = b.param(TILE), b.param(TILE.in_memory("host"))
    assert owed(b.block(b.op("add", x, b.transfer(h, "device")))) == []


def test_a_value_outside_loops_owes_itself() -> None:
    b = Builder()
    x = b.param(TILE)
    host = b.transfer(b.op("sin", x), "host")
    assert owed(b.block(b.transfer(host, "device"))) == [((8, 128), (), "", False, False)]


def test_branches_of_a_cond_owe_what_they_return() -> None:
    branch = Builder()
    x = branch.param(TILE)
    moving = branch.block(branch.transfer(branch.op("sin", x), "host"))
    body = Builder()
    c, flag = body.param(TILE), body.param(Type("int32"))
    (kept,) = body.cond(flag, (moving, moving), c)
    body_block = body.block(body.op("cos", c), kept)
    b = Builder()
    x, flag = b.param(TILE), b.param(Type("int32"))
    swapped = Block((body_block.params[1], body_block.params[0]), body_block.eqns, body_block.results)
    y, stack = b.scan(swapped, length=5, consts=(flag,), carry=(x,))
    block = b.block(*b.scan(backward(), length=5, carry=(y,), xs=(stack,)))
    assert {row[:2] for row in owed(block)} == {((5, 8, 128), (5,))}


def test_a_program_with_a_gradient_is_not_at_the_placement_tier() -> None:
    b = Builder()
    x = b.param(TILE)
    with pytest.raises(AssertionError, match="after differentiation"):
        owed_stacks(Program(b.block(x), gradient=Grad((0,))))


def test_where_names_the_block_of_the_transfer() -> None:
    (stack,) = owed_stacks(normalise(Program(there_and_back(forward(), 12))))
    assert stack == Stack("float32", (12, 8, 128), (12,), "h", "eqns[0].body", loop="eqns[0].body", alone=True)


@pytest.mark.parametrize(("unroll", "unrolled"), [(1, False), (2, True), (6, True)])
def test_unrolling_is_seen(unroll: int, unrolled: bool) -> None:
    b = Builder()
    x, k = b.param(TILE), b.param(TILE)
    block = b.block(*b.scan(_swapped(forward()), length=6, consts=(k,), carry=(x,)))
    (scan,) = block.eqns
    block = msgspec.structs.replace(block, eqns=(msgspec.structs.replace(scan, unroll=unroll),))
    (stack,) = owed_stacks(normalise(Program(block)))
    assert stack.unrolled is unrolled


def test_invariance_is_seen_through_a_region() -> None:
    """A loop inside a checkpoint: what its body does not change is as invariant as without one."""
    inner = Builder()
    x, k = inner.param(TILE), inner.param(TILE)
    results = inner.scan(_swapped(forward(moved="constant")), length=6, consts=(k,), carry=(x,))
    b = Builder()
    x, k = b.param(TILE), b.param(TILE)
    y, stack = b.call(inner.block(*results), x, k)
    assert owed(b.block(*b.scan(backward(), length=6, carry=(y,), xs=(stack,)))) == [
        ((6, 8, 128), (6,), "h", True, False)
    ]


def test_a_stack_is_alone_unless_a_value_on_the_device_has_as_many_elements() -> None:
    def stack(other: tuple[int, ...], memory: Literal["device", "host"] = "device") -> Stack:
        block = there_and_back(forward(), 12)
        beside = Var(99, Type("bfloat16", other, memory))
        (found,) = owed_stacks(normalise(Program(Block((*block.params, beside), block.eqns, block.results))))
        return found

    assert stack((12, 8, 64)).alone
    assert not stack((96, 128)).alone
    assert stack((96, 128), "host").alone


def test_the_outermost_loop_that_a_stack_leaves() -> None:
    b = Builder()
    x, k = b.param(TILE), b.param(TILE)
    inner = Builder()
    c, kk = inner.param(TILE), inner.param(TILE)
    turn = inner.block(*inner.scan(_swapped(forward()), length=3, consts=(kk,), carry=(c,)))
    y, stack = b.scan(_swapped(turn), length=4, consts=(k,), carry=(x,))
    (found,) = owed_stacks(normalise(Program(b.block(y, stack))))
    assert (found.where, found.loop) == ("eqns[0].body.eqns[0].body", "eqns[0].body")
