"""Types and constants: the text of a tensor type or a dense attribute -> a type of the IR, the text of a scalar."""

from __future__ import annotations

import re
import struct
from typing import Final

from reducer.errors import ProgramError
from reducer.ir.scalars import canonical_scalar
from reducer.ir.types import DTYPES, Type
from reducer.stablehlo.model import Value
from reducer.stablehlo.types import tensor

_DTYPES: Final = {
    "f32": "float32",
    "bf16": "bfloat16",
    "f16": "float16",
    "f64": "float64",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "complex<f32>": "complex64",
    "i1": "bool",
    **{f"i{n}": f"int{n}" for n in (4, 8, 16, 32, 64)},
    **{f"ui{n}": f"uint{n}" for n in (4, 8, 16, 32, 64)},
}
_DENSE: Final = re.compile(r"dense<(.*)> : (tensor<.*>)", re.DOTALL)
_COMPLEX: Final = re.compile(r"\((.+), ?(.+)\)")
_ELEMENT: Final = re.compile(r"\([^)]*\)|[^\[\],\s]+")
#: Unpacks the bits of a floating dtype; bfloat16 is the upper half of a float32.
_BITS: Final = {"float16": ("<e", "<H"), "float32": ("<f", "<I"), "float64": ("<d", "<Q")}


def type_of(value: Value) -> Type:
    """The type of a value, on the device: StableHLO's types know no memory spaces.

    Raises:
        ProgramError: no array the IR knows: a token, a dynamic shape, an unknown dtype.
    """
    return _type(value.type)


def _type(text: str) -> Type:
    found = tensor(text)
    if found is None or found.element not in _DTYPES:
        raise ProgramError(f"not expressible: a value of type {text:.120}")
    return Type(_DTYPES[found.element], found.shape)


def splat(text: str) -> str | None:
    """The scalar that a constant repeats, as the IR writes it; None for a constant of several different elements.

    Raises:
        ProgramError: not a dense constant of a dtype with scalars.
    """
    inside, type_ = _parts(text)
    if type_.size == 0:
        return canonical_scalar("False" if type_.dtype == "bool" else "0" if type_.integer else "0.0", type_.dtype)
    if inside.startswith(("[", '"')):
        return None
    return canonical_scalar(_scalar(inside, type_.dtype), type_.dtype)


def runs(text: str) -> list[tuple[str, int]] | None:
    """The elements of a constant in order, as runs of equal scalars; None if it is written as bytes."""
    inside, type_ = _parts(text)
    if inside.startswith('"'):
        return None
    found: list[tuple[str, int]] = []
    for word in _ELEMENT.findall(inside):
        scalar = canonical_scalar(_scalar(word, type_.dtype), type_.dtype)
        if found and found[-1][0] == scalar:
            found[-1] = (scalar, found[-1][1] + 1)
        else:
            found.append((scalar, 1))
    return found


def is_range(text: str) -> bool:
    """True for the constant [0, 1, 2, ...]."""
    inside, type_ = _parts(text)
    if type_.rank != 1 or not type_.integer or not inside.startswith("["):
        return False
    return _ELEMENT.findall(inside) == [str(n) for n in range(type_.size)]


def _parts(text: str) -> tuple[str, Type]:
    match = _DENSE.fullmatch(text)
    if match is None:
        raise ProgramError(f"not expressible: the constant {text:.80}")
    return match[1], _type(match[2])


def _scalar(text: str, dtype: str) -> str:
    kind = DTYPES[dtype][2]
    if kind == "b":
        return {"true": "True", "false": "False"}[text]
    if kind == "i":
        return str(int(text, 0))
    if kind == "c":
        match = _COMPLEX.fullmatch(text)
        if match is None:
            raise ProgramError(f"not expressible: the complex constant {text:.80}")
        return repr(complex(_float(match[1], "float32"), _float(match[2], "float32")))
    return repr(_float(text, dtype))


def _float(text: str, dtype: str) -> float:
    """A number, or the bits of one in hexadecimal, which is how MLIR writes what decimals cannot say."""
    if not text.startswith(("0x", "-0x")):
        return float(text)
    bits = int(text, 16)
    if dtype == "bfloat16":
        dtype, bits = "float32", bits << 16
    if dtype not in _BITS:
        raise ProgramError(f"not expressible: the {dtype} constant {text:.80}")
    number, integer = _BITS[dtype]
    return float(struct.unpack(number, struct.pack(integer, bits))[0])
