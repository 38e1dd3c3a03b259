"""The rule: an owed stack against the buffers of a compiled program."""

from __future__ import annotations

from typing import Any

import pytest

from reducer.ledger import Ledger, Owed, Stack, judge, ledger_of, ledger_text, loss_text


def stack(*loops: int, **fields: Any) -> Stack:
    named = {"name": "h", "where": "eqns[0].body", **fields}
    return Stack(dtype="float32", shape=(*loops, 8, 128), loops=loops, **named)


def standing(owed: Stack, buffers: dict[str, tuple[int, ...]], partitions: int = 1) -> str:
    (line,) = judge([owed], buffers, partitions=partitions)
    return line.standing


@pytest.mark.parametrize(
    ("buffers", "expected"),
    [
        ({"f32[4,3,8,128]": (0, 5)}, "kept"),
        ({"f32[4,3,8,128]": (5,)}, "kept"),
        ({"f32[4,3,8,128]": (0,)}, "lost"),
        ({"f32[4,3,8,128]": (0, 1)}, "lost"),
        ({"f32[4,3,8,128]": (0,), "f32[3,8,128]": (5,)}, "lost"),
        # Dimensions merged, or of size one added: still that many elements on the host.
        ({"f32[4,3,8,128]": (0,), "f32[12,8,128]": (5,)}, "kept"),
        ({"f32[4,3,8,128]": (0,), "f32[4,3,1,8,128]": (5,)}, "kept"),
        # Merged on the device says nothing: another value may be of that size.
        ({"f32[12,8,128]": (0,)}, "undecided"),
        ({"f32[4,1,3,8,128]": (0,)}, "lost"),
        # Another dtype is another value.
        ({"bf16[4,3,8,128]": (5,), "f32[4,3,8,128]": (0,)}, "lost"),
        ({"bf16[4,3,8,128]": (5,)}, "undecided"),
        ({}, "undecided"),
    ],
)
def test_standing(buffers: dict[str, tuple[int, ...]], expected: str) -> None:
    assert standing(stack(4, 3), buffers) == expected


def test_an_invariant_stack_is_never_lost() -> None:
    assert standing(stack(4, 3, invariant=True), {"f32[4,3,8,128]": (0,)}) == "undecided"


def test_an_unrolled_stack_is_never_lost() -> None:
    # Its turns' values lie apart, so a buffer of its shape is another value: the weights, for instance.
    assert standing(stack(6, unrolled=True), {"f32[6,8,128]": (0,), "f32[8,128]": (5,)}) == "undecided"
    assert standing(stack(6, unrolled=True), {"f32[6,8,128]": (5,)}) == "kept"


@pytest.mark.parametrize(
    ("fields", "carried", "expected"),
    [
        # A loop of 6 turns, two at a time, carries the whole stack: that is what the unrolled loop leaves.
        ({}, {"f32[3,2,8,128]": (0,)}, "lost"),
        ({}, {"f32[3,2,8,128]": (1, 1)}, "lost"),
        # One turn's value on the host is no more than a slice of it.
        ({}, {"f32[3,2,8,128]": (0,), "f32[8,128]": (5,)}, "lost"),
        # More than that may be a piece of the stack, and then it is kept in pieces.
        ({}, {"f32[3,2,8,128]": (0,), "f32[3,8,128]": (5,)}, "undecided"),
        ({}, {"f32[3,2,8,128]": (0,), "bf16[3,8,128]": (5,)}, "lost"),
        # The weights may be of that size; bf16 ones are another value for sure.
        ({"alone": False}, {"f32[3,2,8,128]": (0,)}, "undecided"),
        ({}, {"bf16[3,2,8,128]": (0,)}, "undecided"),
        ({"invariant": True}, {"f32[3,2,8,128]": (0,)}, "undecided"),
        ({}, {}, "undecided"),
    ],
)
def test_an_unrolled_stack_is_lost_where_a_loop_carries_it(
    fields: dict[str, bool], carried: dict[str, tuple[int, ...]], expected: str
) -> None:
    owed = stack(6, **{"unrolled": True, "alone": True, **fields})
    (line,) = judge([owed], {"f32[8,128]": (5,)}, carried=carried)
    assert line.standing == expected
    assert (line.carried, line.found) == ((True, ("f32[3,2,8,128]",)) if expected == "lost" else (False, ()))


def test_over_several_devices_what_loops_carry_says_nothing() -> None:
    owed = stack(6, unrolled=True, alone=True)
    (line,) = judge([owed], {}, carried={"f32[3,2,8,128]": (0,)}, partitions=2)
    assert line.standing == "undecided"


@pytest.mark.parametrize(
    ("fields", "carried", "expected"),
    [
        ({}, (5, 5), ["kept", "kept"]),
        ({}, (0, 5, 5), ["kept", "kept"]),
        ({}, (0, 5), ["kept", "lost"]),
        ({}, (1, 5), ["kept", "lost"]),
        # Two values that are equal may be one: then nothing lies on the device.
        ({}, (5,), ["kept", "undecided"]),
        # Something else may be of that size.
        ({"alone": False}, (0, 5), ["kept", "undecided"]),
        # No loop is left: nothing can be counted.
        ({}, (), ["kept", "undecided"]),
        # Not one after the other in one loop, but each in a loop of its own: they may share a buffer.
        ({"loop": "another"}, (0, 5), ["kept", "kept"]),
        ({"output": True}, (0, 5), ["kept", "kept"]),
    ],
)
def test_of_stacks_alike_no_more_are_kept_than_a_loop_carries(
    fields: dict[str, Any], carried: tuple[int, ...], expected: list[str]
) -> None:
    first = stack(6, alone=True, loop="eqns[0].body")
    second = stack(6, **{"name": "g", "alone": True, "loop": "eqns[0].body", **fields})
    lines = judge([first, second], {"f32[6,8,128]": (0, 5)}, carried={"f32[6,8,128]": carried, "s32[6]": (0,)})
    assert [line.standing for line in lines] == expected
    assert [line.alike for line in lines] == ([1, 1] if expected == ["kept", "kept"] else [1, 2])


def test_two_alike_in_words() -> None:
    owed = Owed(tuple(stack(6, alone=True, loop="eqns[0].body", name=name) for name in "hg"))
    buffers = {"f32[6,8,128]": (0, 1, 5)}
    ledger = ledger_of(owed, buffers, carried={"f32[6,8,128]": (1, 5)})
    assert ledger.loss == "part, 1 loop deep"
    assert ledger_text(ledger).splitlines()[1] == (
        "'g', f32[6,8,128] over loops of 6, owes 24576 B of host memory: lost (VMEM (one of 2 alike))"
    )
    ledger = ledger_of(owed, buffers, carried={})
    assert ledger.loss is None


def test_loops_of_one_turn_stack_nothing() -> None:
    assert standing(stack(1, 1), {"f32[8,128]": (0,)}) == "undecided"
    assert standing(stack(1, 2), {"f32[2,8,128]": (0,)}) == "lost"


def test_a_value_of_no_loop_is_never_lost() -> None:
    # A copy out of VMEM and back is the compiler's business; only stacks are worth host memory.
    assert standing(stack(), {"f32[8,128]": (0,)}) == "undecided"


@pytest.mark.parametrize(
    ("buffers", "expected"),
    [
        ({"f32[4,2,128]": (5,), "f32[4,8,128]": (0,)}, "kept"),
        ({"f32[4,8,32]": (0,), "f32[8,32]": (5,)}, "lost"),
        ({"f32[4,4,64]": (0,)}, "lost"),
        ({"f32[4,8,16]": (0,)}, "undecided"),  # divided by more than there are partitions
    ],
)
def test_any_dimension_may_be_divided_among_partitions(buffers: dict[str, tuple[int, ...]], expected: str) -> None:
    assert standing(stack(4), buffers, partitions=4) == expected


def test_the_line_says_what_was_found_where() -> None:
    (line,) = judge([stack(4, 3)], {"f32[4,3,8,128]": (0, 1), "f32[1,3,8,128]": (5,), "s32[4]": (0,)})
    assert (line.owed, line.spaces, line.found, line.slice_on_host) == (49152, (0, 1), ("f32[4,3,8,128]",), True)


@pytest.mark.parametrize(
    ("buffers", "expected"),
    [
        ({"f32[4,3,8,128]": (0,), "f32[3,8,128]": (5,)}, "outer stack, 2 loops deep"),
        ({"f32[4,3,8,128]": (0,)}, "all, 2 loops deep"),
        ({"f32[4,3,8,128]": (5,)}, None),
        ({}, None),
    ],
)
def test_what_is_lost_in_words(buffers: dict[str, tuple[int, ...]], expected: str | None) -> None:
    assert loss_text(judge([stack(4, 3)], buffers)) == expected


def test_part_is_lost_where_another_stack_is_kept() -> None:
    lines = judge([stack(4, 3), stack(6)], {"f32[4,3,8,128]": (0,), "f32[6,8,128]": (5,)})
    assert loss_text(lines) == "part, 2 loops deep"


def test_one_loop_is_singular() -> None:
    assert loss_text(judge([stack(6)], {"f32[6,8,128]": (0,)})) == "all, 1 loop deep"


def test_what_is_not_known_is_no_loss() -> None:
    owed = Owed((stack(4, 3),))
    for ledger in (ledger_of(Owed(reason="no trace"), {"f32[4,3,8,128]": (0,)}), ledger_of(owed, None, "no text")):
        assert ledger.loss is None
        assert ledger.lines == ()
    assert ledger_text(ledger_of(owed, None, "no text")) == "not judged: no text"


def test_the_ledger_in_words() -> None:
    owed = Owed((stack(4, 3), stack(6)), partitions=1)
    ledger = ledger_of(owed, {"f32[4,3,8,128]": (0,), "f32[8,128]": (5,), "f32[6,8,128]": (0, 5)})
    assert ledger_text(ledger) == (
        "'h', f32[4,3,8,128] over loops of 4 x 3, owes 49152 B of host memory: lost (HBM, slices on the host)\n"
        "'h', f32[6,8,128] over loops of 6, owes 24576 B of host memory: kept (host)"
    )
    assert [line.stack.loops for line in ledger.lost] == [(4, 3)]


def test_owed_bytes_are_a_range_where_the_compiler_chooses_the_sharding() -> None:
    ledger = ledger_of(Owed((stack(4),), partitions=4), {"f32[4,8,32]": (5,)})
    assert ledger_text(ledger) == (
        "'h', f32[4,8,128] over loops of 4, owes 4096 to 16384 B of host memory: kept (host)"
    )


def test_an_empty_ledger() -> None:
    assert Ledger().loss is None
    assert ledger_text(Ledger()) == ""
