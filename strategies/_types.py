"""Strategies for dtypes, shapes and types: those at which the compiler's tiling rules change.

A TPU tile is 8 sublanes by 128 lanes (16 by 128 for two-byte, 32 by 128 for one-byte elements).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

from reducer.ir.types import Memory, Type

Shape = tuple[int, ...]

#: Dtypes a value may have on its way to host memory. The first four carry a gradient.
DTYPES: Final = ("float32", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "int32")

#: Exactly whole tiles.
ALIGNED: Final[tuple[Shape, ...]] = ((8, 128), (16, 128), (8, 256), (2, 8, 128), (4, 8, 128), (32, 128))
#: Sizes 1, ranks 0 and 1, and sizes no tile divides.
ODD: Final[tuple[Shape, ...]] = (
    (),
    (1,),
    (128,),
    (256,),
    (7,),
    (1, 128),
    (8, 1),
    (1, 1),
    (5, 7),
    (4, 130),
    (1, 8, 128),
    (4, 1, 128),
    (3, 5, 7),
)


def dtypes(*, inexact_only: bool = False) -> st.SearchStrategy[str]:
    """A dtype by its NumPy name."""
    return st.sampled_from(DTYPES[:4] if inexact_only else DTYPES)


def shapes(*, min_rank: int = 0, max_rank: int = 3, aligned: bool | None = None) -> st.SearchStrategy[Shape]:
    """A shape of 1 to 4096 elements: whole tiles, sizes 1, scalars, and sizes no tile divides.

    Args:
        min_rank: smallest number of dimensions.
        max_rank: largest number of dimensions, at most 3.
        aligned: only whole 8x128 tiles, only others, or both.
    """
    table = (ALIGNED if aligned is not False else ()) + (ODD if aligned is not True else ())
    return st.sampled_from([shape for shape in table if min_rank <= len(shape) <= max_rank])


def types(
    *,
    dtypes: Sequence[str] = DTYPES,
    min_rank: int = 0,
    max_rank: int = 3,
    aligned: bool | None = None,
    memories: Sequence[Memory] = ("device", "host"),
) -> st.SearchStrategy[Type]:
    """A value type: one of the `dtypes`, a shape as in `shapes`, one of the memory spaces."""
    return st.builds(
        Type,
        st.sampled_from(tuple(dtypes)),
        shapes(min_rank=min_rank, max_rank=max_rank, aligned=aligned),
        st.sampled_from(tuple(memories)),
    )
