"""Was the offload kept? Each owed stack against the buffers of the compiled program.

A stack is *kept* if host memory holds a buffer of its dtype and number of elements (the compiler may drop or merge
dimensions), *lost* if its very shape (dimensions of size 1 aside) lies only outside host memory, and *undecided*
otherwise, which is never an alarm. Byte counts decide nothing: padding and buffer sharing make them wrong both ways.

Two sorts of stacks need more. Of an *unrolled* loop the compiler need not make one array, and a buffer of the stack's
shape may be another value, the weights for instance. And of several stacks *alike* (one dtype and size) that fill up in
one loop, one on the host says nothing of the others. Both are judged by what loops carry in device memory: if nothing
else of the program has as many elements (`Stack.alone`), that is the stack, or one like it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Literal

import msgspec

from reducer.ledger.buffers import HOST, hlo_dtype
from reducer.ledger.owed import Owed, Stack

Standing = Literal["kept", "lost", "undecided"]
Spaces = Mapping[str, tuple[int, ...]]


class Line(msgspec.Struct, frozen=True):
    """One line of the memory ledger.

    `owed` is bytes over all devices, without padding; `found` are the buffers of its very shape, as HLO prints them
    (one device's part), and `spaces` the memory spaces they lie in. `slice_on_host`: host memory holds a buffer of
    what one iteration stacks, so that only slices travel. `carried`: it was judged by what loops carry, and `found`
    are those arrays; of `alike` stacks it is then not known which is which.
    """

    stack: Stack
    standing: Standing
    owed: int
    spaces: tuple[int, ...]
    slice_on_host: bool
    found: tuple[str, ...] = ()
    carried: bool = False
    alike: int = 1


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


def ledger_of(owed: Owed, buffers: Spaces | None, unread: str = "", *, carried: Spaces | None = None) -> Ledger:
    """The ledger of a program that owes `owed`.

    `buffers` are its compiled module's, or None, and `unread` says why; `carried` is what its loops carry.
    """
    if not owed.anything:
        return Ledger(partitions=owed.partitions, reason=owed.reason)
    if buffers is None:
        return Ledger(partitions=owed.partitions, reason=unread or "where its buffers lie is not known")
    return Ledger(judge(owed.stacks, buffers, carried=carried or {}, partitions=owed.partitions), owed.partitions)


def judge(
    stacks: Iterable[Stack], buffers: Spaces, *, carried: Spaces | None = None, partitions: int = 1
) -> tuple[Line, ...]:
    """The ledger of a compiled program.

    Args:
        stacks: what is owed, from `owed_stacks`.
        buffers: from `buffers_of`.
        carried: from `carried_of`; without it nothing is lost that needs it.
        partitions: devices the program is partitioned over; the compiler chooses the sharding of intermediates, so
            a stack's per-device shape may have any dimension divided.
    """
    parsed = [(*_parse(shape), spaces) for shape, spaces in buffers.items()]
    lines = [_line(stack, parsed, partitions) for stack in stacks]
    if carried and partitions == 1:
        moving = [(shape, *_parse(shape), spaces) for shape, spaces in carried.items()]
        lines = _alike([_unrolled(line, moving) for line in lines], moving)
    return tuple(lines)


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
    return _a_stack(stack) and not stack.unrolled


def _a_stack(stack: Stack) -> bool:
    """Whether it is more than one value, each turn's another one."""
    return prod(stack.loops) > 1 and not stack.invariant


_Moving = Sequence[tuple[str, str, tuple[int, ...], tuple[int, ...]]]


def _states(stack: Stack, moving: _Moving) -> list[tuple[str, tuple[int, ...]]]:
    """Arrays of the stack's dtype and number of elements that some loop carries."""
    dtype, size = hlo_dtype(stack.dtype), prod(stack.shape)
    return [(name, spaces) for name, kind, shape, spaces in moving if kind == dtype and prod(shape) == size]


def _unrolled(line: Line, moving: _Moving) -> Line:
    """An unrolled stack that is nowhere on the host, and that a loop carries on the device, is lost.

    What loops carry on the host may be pieces of it, unless it is no more than one turn stacks.
    """
    stack = line.stack
    states = _states(stack, moving)
    if line.standing != "undecided" or not states or not stack.alone or not _a_stack(stack):
        return line
    turn, dtype = prod(stack.shape) // stack.loops[0], hlo_dtype(stack.dtype)
    pieces = any(kind == dtype and HOST in spaces and prod(shape) > turn for _, kind, shape, spaces in moving)
    return line if pieces else _lost(line, states)


def _alike(lines: list[Line], moving: _Moving) -> list[Line]:
    """Of stacks alike that fill up in one loop no more are kept than a loop carries in host memory."""
    groups: dict[tuple[str, str, int], list[int]] = {}
    for i, line in enumerate(lines):
        if line.standing == "kept" and _a_stack(line.stack) and line.stack.loop and not line.stack.output:
            key = (line.stack.loop, line.stack.dtype, prod(line.stack.shape))
            groups.setdefault(key, []).append(i)
    judged = list(lines)
    for members in groups.values():
        states = _states(lines[members[0]].stack, moving)
        on_host = sum(space == HOST for _, spaces in states for space in spaces)
        on_device = any(space != HOST for _, spaces in states for space in spaces)
        for i in members[max(on_host, 1) :]:
            line = msgspec.structs.replace(lines[i], alike=len(members))
            lost = on_host and on_device and line.stack.alone
            judged[i] = _lost(line, states) if lost else msgspec.structs.replace(line, standing="undecided")
    return judged


def _lost(line: Line, states: list[tuple[str, tuple[int, ...]]]) -> Line:
    on_device = [(name, spaces) for name, spaces in states if set(spaces) != {HOST}]
    return msgspec.structs.replace(
        line,
        standing="lost",
        carried=True,
        found=tuple(name for name, _ in on_device),
        spaces=tuple(sorted({space for _, spaces in on_device for space in spaces if space != HOST})),
    )


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
