"""Passes on dtypes: everything of one dtype made float32 (or int32) at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from reducer.ir.equations import Program
from reducer.ir.types import DTYPES
from reducer.ir.walk import bindings, blocks
from reducer.ir.whole import with_dtype
from reducer.passes.base import Candidate


def dtypes_of(program: Program) -> tuple[str, ...]:
    """Every dtype a variable of the program has, in order of occurrence."""
    return tuple(dict.fromkeys(var.type.dtype for place in blocks(program) for var in bindings(place.block)))


def unify_dtypes(program: Program) -> Iterator[Candidate[Program]]:
    """All floats made float32, then one dtype at a time; integers made int32.

    Or everything made one of the other dtypes, where that removes conversions.
    """
    present = dtypes_of(program)
    for kind, plain in (("f", "float32"), ("i", "int32")):
        others = [d for d in present if DTYPES[d][2] == kind and d != plain]
        if len(others) > 1:
            yield partial(with_dtype, program, frozenset(others), plain)
        for dtype in others:
            yield partial(with_dtype, program, frozenset({dtype}), plain)
            if kind == "f" and dtype != "bfloat16":
                yield partial(with_dtype, program, frozenset({dtype}), "bfloat16")
    floats = [d for d in present if DTYPES[d][2] == "f"]
    if len(floats) > 1:
        for plain in dict.fromkeys((*floats, "bfloat16")):
            if plain != "float32":
                yield partial(with_dtype, program, frozenset(floats) - {plain}, plain)
