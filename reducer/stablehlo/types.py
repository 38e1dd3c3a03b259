"""Tensor types: from their text and back."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

_TENSOR = re.compile(r"tensor<((?:\d+x)*)([a-z]\w*|complex<\w+>)>")


class Tensor(NamedTuple):
    """A ranked tensor of static shape without an encoding. `element` as MLIR writes it: "f32", "i1", "ui32"."""

    shape: tuple[int, ...]
    element: str

    def __str__(self) -> str:
        return f"tensor<{''.join(f'{n}x' for n in self.shape)}{self.element}>"

    @property
    def elements(self) -> int:
        """How many elements it has."""
        count = 1
        for size in self.shape:
            count *= size
        return count


@functools.lru_cache(maxsize=1 << 16)
def tensor(text: str) -> Tensor | None:
    """The tensor type that `text` denotes; None for any other type: a token, a dynamic shape, an encoding."""
    match = _TENSOR.fullmatch(text)
    if match is None:
        return None
    return Tensor(tuple(int(n) for n in match[1].split("x")[:-1]), match[2])


def zero(type_text: str) -> str | None:
    """The text of an attribute that fills a tensor of this type with zeros; None where there is none."""
    found = tensor(type_text)
    if found is None:
        return None
    if found.element == "i1":
        scalar = "false"
    elif re.fullmatch(r"u?i\d+", found.element):
        scalar = "0"
    elif re.fullmatch(r"(?:bf|tf|f)\d+\w*", found.element):
        scalar = "0.000000e+00"
    elif found.element in ("complex<f32>", "complex<f64>"):
        scalar = "(0.000000e+00,0.000000e+00)"
    else:
        return None
    return f"dense<{scalar}> : {type_text}"
