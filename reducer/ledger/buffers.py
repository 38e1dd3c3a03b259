"""Where a compiled program's buffers lie: every array shape of the optimized HLO with the memory spaces it occurs in.

`Compiled.as_text()` prints a layout behind each shape, with the memory space in it: in
``f32[8,128]{1,0:T(8,128)S(5)}`` it is host memory; ``S(1)`` is VMEM, and no ``S`` is HBM.
"""

from __future__ import annotations

import re
from collections import Counter

from reducer.ir.types import DTYPES

HOST = 5
"""XLA:TPU's number for host memory."""

#: shape as HLO prints it, without layout (``f32[8,128]``) -> memory spaces, rising.
Buffers = dict[str, tuple[int, ...]]

_WHILE = re.compile(r"= \((.*?)\) while\(")

_SHAPE = re.compile(r"\b([a-z][a-z0-9]*)\[([0-9,]*)\](?:\{([^{}]*)\})?")
_SPACE = re.compile(r"S\((\d+)\)")


def hlo_dtype(dtype: str) -> str:
    """A dtype as HLO prints it: ``s32`` for int32, ``pred`` for bool, ``f8e4m3fn`` for float8_e4m3fn."""
    if dtype == "bool":
        return "pred"
    short = DTYPES[dtype][0]
    return f"s{short[1:]}" if dtype.startswith("int") else short.replace("_", "")


def carried_of(hlo: str) -> Buffers:
    """What loops of an optimized module carry from turn to turn: every array shape with its memory spaces, rising.

    A space stands there as often as one loop carries arrays of that shape in it, at most: of a loop's state nothing
    can be shared, so that two stacks that fill up in one loop are two arrays.
    """
    found: dict[str, Counter[int]] = {}
    for state in _WHILE.findall(hlo):
        here: dict[str, Counter[int]] = {}
        for dtype, dims, layout in _SHAPE.findall(state):
            if dims:
                space = _SPACE.search(layout)
                here.setdefault(f"{dtype}[{dims}]", Counter())[int(space[1]) if space else 0] += 1
        for shape, counts in here.items():
            found[shape] = found.get(shape, Counter()) | counts
    return {shape: tuple(sorted(counts.elements())) for shape, counts in sorted(found.items())}


def buffers_of(hlo: str) -> Buffers:
    """Every array shape of an optimized module's text with the memory spaces it occurs in."""
    found: dict[str, set[int]] = {}
    for dtype, dims, layout in set(_SHAPE.findall(hlo)):
        if not dims:
            continue
        space = _SPACE.search(layout)
        found.setdefault(f"{dtype}[{dims}]", set()).add(int(space[1]) if space else 0)
    return {shape: tuple(sorted(spaces)) for shape, spaces in sorted(found.items())}
