"""Was the offload kept? Each owed stack against the buffers of the compiled program.

A stack is *kept* if host memory holds a buffer of its dtype and number of elements (the compiler may drop or merge
dimensions), *lost* if its very shape (dimensions of size 1 aside) lies only outside host memory, and *undecided*
otherwise, which is never an alarm. An unrolled loop leaves its turns' values apart, and a loop of one turn leaves no
stack worth the name, so that a buffer of the stack's shape would be another value: undecided too. Byte counts decide
nothing: padding and buffer sharing make them wrong both ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import prod
from typing import Literal

import msgspec

from reducer.ledger.buffers import HOST, hlo_dtype
from reducer.ledger.owed import Owed, Stack

Standing = Literal["kept", "lost", "undecided"]


class Line(msgspec.Struct, frozen=True):
    """One line of the memory ledger.

    `owed` is bytes over all devices, without padding; `found` are the buffers of its very shape, as HLO prints them
    (one device's part), and `spaces` the memory spaces they lie in. `slice_on_host`: host memory holds a buffer of
    what one iteration stacks, so that only slices travel.
    """

    stack: Stack
    standing: Standing
    owed: int
    spaces: tuple[int, ...]
    slice_on_host: bool
    found: tuple[str, ...] = ()


class Ledger(msgspec.Struct, frozen=True):
    """The memory ledger of a compiled program. `reason` says why nothing was judged; there are no lines then."""

    lines: tuple[Line, ...] = ()
    partitions: int = 1
    reason: str = ""

    @property
    def lost(self) -> tuple[Line, ...]:
        """The lines whose stack was lost."""
        return tuple(line for line in self.lines if line.standing == "lost")

    @property
    def loss(self) -> str | None:
        """What was lost (`loss_text`); None if nothing was."""
        return loss_text(self.lines)


def ledger_of(owed: Owed, buffers: Mapping[str, tuple[int, ...]] | None, unread: str = "") -> Ledger:
    """The ledger of a program that owes `owed`. `buffers` are its compiled module's, or None, and `unread` says why."""
    if not owed.anything:
        return Ledger(partitions=owed.partitions, reason=owed.reason)
    if buffers is None:
        return Ledger(partitions=owed.partitions, reason=unread or "where its buffers lie is not known")
    return Ledger(judge(owed.stacks, buffers, partitions=owed.partitions), owed.partitions)


def judge(stacks: Iterable[Stack], buffers: Mapping[str, tuple[int, ...]], *, partitions: int = 1) -> tuple[Line, ...]:
    """The ledger of a compiled program.

    Args:
        stacks: what is owed, from `owed_stacks`.
        buffers: from `buffers_of`.
        partitions: devices the program is partitioned over; the compiler chooses the sharding of intermediates, so
            a stack's per-device shape may have any dimension divided.
    """
    parsed = [(*_parse(shape), spaces) for shape, spaces in buffers.items()]
    return tuple(_line(stack, parsed, partitions) for stack in stacks)


def _line(stack: Stack, buffers: list[tuple[str, tuple[int, ...], tuple[int, ...]]], partitions: int) -> Line:
    dtype = hlo_dtype(stack.dtype)
    mine = [(shape, spaces) for kind, shape, spaces in buffers if kind == dtype]
    shapes = set(_per_device(stack.shape, partitions))
    sizes = {prod(shape) for shape in shapes}
    squeezed = {_squeezed(shape) for shape in shapes}
    same = [(shape, spaces) for shape, spaces in mine if _squeezed(shape) in squeezed]
    kept = any(HOST in spaces for shape, spaces in mine if prod(shape) in sizes)
    depth = len(stack.loops)
    slices = {prod(shape[k:]) for shape in shapes for k in range(1, depth + 1)}
    named = (f"{dtype}[{','.join(map(str, shape))}]" for shape, _ in same)
    return Line(
        stack=stack,
        standing="kept" if kept else "lost" if same and _decidable(stack) else "undecided",
        owed=stack.nbytes,
        spaces=tuple(sorted({space for _, spaces in same for space in spaces})),
        slice_on_host=any(HOST in spaces for shape, spaces in mine if prod(shape) in slices),
        found=tuple(sorted(named)),
    )


def _decidable(stack: Stack) -> bool:
    """Whether the compiler has to make one array of this stack's shape, wherever it puts it."""
    return prod(stack.loops) > 1 and not stack.invariant and not stack.unrolled


def loss_text(lines: Iterable[Line]) -> str | None:
    """What was lost, in a few words that stay while a program shrinks; None if nothing was.

    ``outer stack``: only the slices of the innermost loops travel to the host and back. ``part``: another stack of
    the program is kept. ``all``: nothing of it is ever on the host.
    """
    listed = list(lines)
    lost = [line for line in listed if line.standing == "lost"]
    if not lost:
        return None
    if any(line.standing == "kept" for line in listed):
        what = "part"
    else:
        what = "outer stack" if all(line.slice_on_host for line in lost) else "all"
    depth = max(len(line.stack.loops) for line in lost)
    return f"{what}, {depth} loop{'s' if depth > 1 else ''} deep"


def _parse(shape: str) -> tuple[str, tuple[int, ...]]:
    dtype, _, dims = shape.rstrip("]").partition("[")
    return dtype, tuple(int(d) for d in dims.split(",") if d)


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(d for d in shape if d != 1)


def _per_device(shape: tuple[int, ...], partitions: int) -> Iterator[tuple[int, ...]]:
    """The shapes one device may hold: some dimensions divided, by `partitions` at most altogether."""
    choices = [[k for k in range(1, partitions + 1) if partitions % k == 0 and d % k == 0] for d in shape]
    for divisors in product(*choices):
        if partitions % prod(divisors) == 0:
            yield tuple(d // k for d, k in zip(shape, divisors, strict=True))
