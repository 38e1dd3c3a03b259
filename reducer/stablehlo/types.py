"""Tensor types: from their text and back."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from reducer.errors import ProgramError

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


def fill(type_text: str, scalar: int = 0) -> str:
    """The text of an attribute that fills a tensor of this type with 0 or 1.

    Raises:
        ProgramError: the type has no constants, as a token, or none that are known here.
    """
    found = tensor(type_text)
    if found is not None:
        if found.element == "i1":
            return f"dense<{'true' if scalar else 'false'}> : {type_text}"
        if re.fullmatch(r"u?i\d+", found.element):
            return f"dense<{scalar}> : {type_text}"
        if re.fullmatch(r"(?:bf|tf|f)\d+\w*", found.element):
            return f"dense<{scalar}.000000e+00> : {type_text}"
        if found.element in ("complex<f32>", "complex<f64>"):
            return f"dense<({scalar}.000000e+00,0.000000e+00)> : {type_text}"
    raise ProgramError(f"no constant of type {type_text}")


def is_filled(attribute: str) -> bool:
    """True for a constant that is a splat of 0 or 1."""
    return re.fullmatch(r"dense<\(?(?:[01]|[01]\.0*e\+00|true|false)(?:,0\.0*e\+00\))?> : .*", attribute) is not None


def is_splat(attribute: str) -> bool:
    """True for a constant all of whose elements are one number."""
    return re.fullmatch(r"dense<[^\[\]\"]*> : tensor<.*", attribute) is not None


def is_zero(attribute: str) -> bool:
    """True for a constant that is zero throughout."""
    return re.fullmatch(r"dense<(?:0|-?0\.0*e\+00|false|\(0\.0*e\+00,0\.0*e\+00\))> : .*", attribute) is not None
