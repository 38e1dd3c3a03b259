"""Scalar texts: what the `value` of a `Lit` or a `Fill` may say, its canonical spelling, and conversion.

The text of a scalar ends up as a number in a Python script, so exactly Python's own spellings are accepted:
``-3``, ``1.5``, ``1e-05``, ``inf``, ``-inf``, ``nan``, ``True``. The canonical text of a floating value is the
shortest decimal that rounds to it *in its dtype*: ``0.1`` for the bfloat16 0.10009765625.
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache
from math import copysign, inf, isfinite, trunc
from typing import Final

from reducer.errors import ProgramError
from reducer.ir.equations import Lit
from reducer.ir.types import DTYPES

_INTEGER: Final = re.compile(r"-?\d{1,20}")
_FLOAT: Final = re.compile(r"-?(?:inf|\d{1,40}(?:\.\d{1,40})?(?:e[+-]?\d{1,4})?)|nan")
_COMPLEX: Final = re.compile(r"\(?[-+.0-9a-z]{1,100}j?\)?")
#: struct format of the floating dtypes that have one; bfloat16 is the upper half of a float32.
_FORMATS: Final = {"float16": "<e", "float32": "<f", "float64": "<d"}


def bits_of(dtype: str) -> int:
    """Width of an integer dtype in bits."""
    return int(re.sub(r"\D", "", dtype))


def integer_range(dtype: str) -> tuple[int, int]:
    """Smallest and largest value of an integer dtype."""
    n = bits_of(dtype)
    return (0, 2**n - 1) if dtype.startswith("u") else (-(2 ** (n - 1)), 2 ** (n - 1) - 1)


def parse_scalar(text: str, dtype: str) -> bool | int | float | complex:
    """The value a scalar's text says.

    Raises:
        ProgramError: the text is no value of that dtype, or the dtype has no scalars (PRNG keys).
    """
    kind = DTYPES[dtype][2] if dtype in DTYPES else ""
    if kind == "b" and text in ("True", "False"):
        return text == "True"
    if kind == "i" and _INTEGER.fullmatch(text):
        low, high = integer_range(dtype)
        if low <= int(text) <= high:
            return int(text)
        raise ProgramError(f"{text} is out of the range of {dtype}", hint=f"{low} to {high}")
    if kind == "f" and _FLOAT.fullmatch(text):
        return float(text)
    if kind == "c" and _COMPLEX.fullmatch(text):
        try:
            return complex(text)
        except ValueError:
            pass
    raise ProgramError(f"{text!r} is not a scalar of {dtype}", hint="written as Python writes it: 1.0, -3, nan, True")


def rounded(value: float, dtype: str) -> float | None:
    """The nearest value of a floating dtype, ties to even; None for dtypes not known here (8-bit floats)."""
    if not isfinite(value) or dtype == "float64":
        return value
    if dtype == "bfloat16":
        return _bfloat16(value)
    if dtype not in _FORMATS:
        return None
    try:
        (out,) = struct.unpack(_FORMATS[dtype], struct.pack(_FORMATS[dtype], value))
    except OverflowError:
        return copysign(inf, value)
    return float(out)


def _bfloat16(value: float) -> float:
    # Directly from the double: by way of float32 a tie could be rounded twice.
    (bits,) = struct.unpack("<Q", struct.pack("<d", abs(value)))
    exponent = max((bits >> 52) - 1023, -126)
    quantum = 2.0 ** (exponent - 7)
    out = round(abs(value) / quantum) * quantum  # the quotient is exact: a power of two divides
    return copysign(inf if out >= 2.0**128 else out, value)


@lru_cache(maxsize=4096)
def canonical_scalar(text: str, dtype: str) -> str:
    """The shortest text of the same value; texts of dtypes without a rounding rule here stay as they are.

    Raises:
        ProgramError: not a scalar of that dtype.
    """
    value = parse_scalar(text, dtype)
    if not isinstance(value, float):
        return repr(value)
    return _shortest(value, dtype)


def _shortest(value: float, dtype: str) -> str:
    target = rounded(value, dtype)
    if target is None or not isfinite(target):
        return repr(value if target is None else target)
    for digits in range(1, 17):
        short = float(f"{target:.{digits}g}")
        if rounded(short, dtype) == target:
            return repr(short)
    return repr(target)


def convert_scalar(lit: Lit, dtype: str) -> Lit | None:
    """The scalar in another dtype as XLA's convert gives it, or None if that is not decided here.

    Not decided: 8-bit floats, complex numbers, keys, and a float outside an integer dtype's range.

    Raises:
        ProgramError: `lit` is not a scalar of its dtype.
    """
    value = parse_scalar(lit.value, lit.dtype)
    kind = DTYPES[dtype][2]
    if isinstance(value, complex):
        return None
    if isinstance(value, float):
        exact = rounded(value, lit.dtype)
        if exact is None:
            return None
        value = exact
    if kind == "b":
        return Lit(dtype, str(value != 0))
    if kind == "f":
        # An integer beyond 2**53 is not exact as a double: rounding it twice could be wrong.
        if (abs(value) > 2**53 and isinstance(value, int)) or rounded(float(value), dtype) is None:
            return None
        return Lit(dtype, _shortest(float(value), dtype))
    if kind == "i":
        return _to_integer(value, dtype)
    return None


def _to_integer(value: float, dtype: str) -> Lit | None:
    if not isfinite(value):
        return None
    whole, (low, high) = trunc(value), integer_range(dtype)
    if low <= whole <= high:
        return Lit(dtype, str(whole))
    if isinstance(value, float):
        return None
    n = bits_of(dtype)  # integers wrap around
    whole %= 2**n
    return Lit(dtype, str(whole - 2**n if whole > high else whole))
