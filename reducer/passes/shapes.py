"""Passes on sizes: trip counts, dimensions that are shrunk wherever they flow, axes dropped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from reducer.errors import ProgramError
from reducer.ir.check import check
from reducer.ir.dims import Dimension, dimensions, resized, without_axis
from reducer.ir.equations import Program
from reducer.passes.base import Candidate, Edits, Numbers

#: Dimensions up to this size are small.
SMALL = 3


def _free(program: Program, *, lengths: bool) -> list[Dimension]:
    return [d for d in dimensions(program) if not d.pinned and d.size > 1 and d.is_length is lengths]


def shrink_all_dimensions(program: Program) -> Edits[Program]:
    """Any set of dimensions at once, each to 1; loops keep their lengths."""
    free = _free(program, lengths=False)
    return Edits(len(free), lambda positions: resized(program, [(free[k], 1) for k in positions]))


def shrink_large_dimensions(program: Program) -> Edits[Program]:
    """The same of dimensions that are not small already.

    What has been lowered to two or three will go no further in most cases, and `shrink_dimensions` sees to that.
    """
    free = [d for d in _free(program, lengths=False) if d.size > SMALL]
    return Edits(len(free), lambda positions: resized(program, [(free[k], 1) for k in positions]))


def shorten_loops(program: Program) -> Iterator[Candidate[Program]]:
    """All loops at once to two turns: one is often too few, and three are rarely needed."""
    long = [d for d in _free(program, lengths=True) if d.size > 2]
    if long:
        yield lambda: resized(program, [(d, 2) for d in long])


def shrink_dimensions(program: Program) -> Numbers[Program]:
    """Lengths and dimensions, one after the other, as low as each will go."""
    free = [*_free(program, lengths=True), *_free(program, lengths=False)]

    def apply(values: Sequence[int]) -> Program:
        return resized(program, [(d, n) for d, n in zip(free, values, strict=True) if n != d.size])

    return Numbers(tuple(d.size for d in free), (1,) * len(free), apply)


def shrink_to_tiles(program: Program) -> Iterator[Candidate[Program]]:
    """One dimension to a lower multiple of 128 or 8, which the compiler lays out without padding: half, or the next."""
    for dimension in _free(program, lengths=False):
        size = dimension.size
        sizes = {n // tile * tile for tile in (128, 8) for n in (size // 2, size - 1)}
        for n in sorted(n for n in sizes if n > 0):
            yield partial(resized, program, [(dimension, n)])


def drop_all_axes(program: Program) -> Iterator[Candidate[Program]]:
    """All axes of size 1 that are no lengths, as far as operations can do without: towards scalars."""
    if any(d.size == 1 and not d.is_length for d in dimensions(program)):
        yield lambda: _drop(program)


def _drop(program: Program) -> Program:
    skipped = 0
    while True:
        # Dropping renames axes, so the dimensions are looked at anew each time.
        droppable = [d for d in dimensions(program) if d.size == 1 and not d.is_length]
        if skipped >= len(droppable):
            return program
        try:
            smaller = without_axis(program, droppable[skipped])
            check(smaller)
        except ProgramError:
            skipped += 1
        else:
            program = smaller


def drop_axes(program: Program) -> Iterator[Candidate[Program]]:
    """One axis of size 1, wherever it flows; the last ones first. A loop whose length it is becomes its body.

    All of them at once before, if there are several.
    """
    yield from drop_all_axes(program)
    for dimension in reversed(dimensions(program)):
        if dimension.size == 1:
            yield partial(without_axis, program, dimension)
