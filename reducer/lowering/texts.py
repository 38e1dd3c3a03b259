"""Pieces of Python text: expressions with their precedence, literals, attribute values.

Everything in a program is untrusted, so nothing of it is ever pasted: numbers are parsed and printed again, strings
go through `repr`, and names of enums, dtypes and policies are looked up in closed tables.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from reducer.errors import ProgramError
from reducer.ir.equations import ConvDims, Enum, GatherDims, Lit, ScatterDims, Spec
from reducer.ir.types import DTYPES, Type

COMPARE, OR, XOR, AND, SHIFT, ADD, MUL, UNARY, ATOM = range(9)

#: Enum classes of attributes -> where they live, and their members.
_ENUMS: Final[dict[str, tuple[str, frozenset[str]]]] = {
    "Precision": ("lax.Precision", frozenset({"DEFAULT", "HIGH", "HIGHEST"})),
    "GatherScatterMode": (
        "lax.GatherScatterMode",
        frozenset({"CLIP", "FILL_OR_DROP", "PROMISE_IN_BOUNDS", "ONE_HOT"}),
    ),
    "RoundingMethod": ("lax.RoundingMethod", frozenset({"AWAY_FROM_ZERO", "TO_NEAREST_EVEN"})),
    "FftType": ("lax.FftType", frozenset({"FFT", "IFFT", "RFFT", "IRFFT"})),
    "RandomAlgorithm": ("lax.RandomAlgorithm", frozenset({"RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX"})),
    "DotAlgorithmPreset": (
        "lax.DotAlgorithmPreset",
        frozenset(
            (
                "DEFAULT",
                "ANY_F8_ANY_F8_F32",
                "ANY_F8_ANY_F8_F32_FAST_ACCUM",
                "ANY_F8_ANY_F8_ANY",
                "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
                "F16_F16_F16",
                "F16_F16_F32",
                "BF16_BF16_BF16",
                "BF16_BF16_F32",
                "BF16_BF16_F32_X3",
                "BF16_BF16_F32_X6",
                "BF16_BF16_F32_X9",
                "TF32_TF32_F32",
                "TF32_TF32_F32_X3",
                "F32_F32_F32",
                "F64_F64_F64",
            )
        ),
    ),
}

#: PRNG key dtype -> name of its implementation for `jax.random.key`.
KEY_IMPLEMENTATIONS: Final = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}

_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,30}\Z", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Expr:
    """Python text of a value and how tightly it binds (`COMPARE` ... `ATOM`)."""

    text: str
    precedence: int = ATOM

    def within(self, precedence: int) -> str:
        """The text as an operand of something that binds with `precedence`: in parentheses if need be."""
        return self.text if self.precedence >= precedence else f"({self.text})"


def identifier(text: str, fallback: str) -> str:
    """`text` if it can be a Python name, else `fallback`."""
    ok = _IDENTIFIER.match(text) and not keyword.iskeyword(text) and not text.startswith("_")
    return text if ok else fallback


def dtype(name: str) -> str:
    """``jnp.float32``: a dtype that is no PRNG key."""
    if name not in DTYPES or name in KEY_IMPLEMENTATIONS:
        raise ProgramError(f"{name!r} is no dtype of an array of numbers")
    return "jnp.bool_" if name == "bool" else f"jnp.{name}"


def number(value: str, of: str) -> Expr:
    """A scalar as a Python number; `value` is its text as in `Lit`, `of` its dtype."""
    kind = DTYPES[of][2] if of in DTYPES else "?"
    try:
        if kind == "i":
            text = repr(int(value))
        elif kind == "b":
            text = {"True": "True", "False": "False", "1": "True", "0": "False"}[value]
        elif kind == "c":
            text = f"complex({_float(complex(value).real)}, {_float(complex(value).imag)})"
        elif kind == "f":
            text = _float(float(value))
        else:
            raise KeyError(of)
    except (ValueError, KeyError):
        raise ProgramError(f"{value!r} is no scalar of dtype {of}") from None
    return Expr(text, UNARY if text.startswith("-") else ATOM)


def _float(value: float) -> str:
    if value != value:
        return "jnp.nan"
    if value in (float("inf"), float("-inf")):
        return "jnp.inf" if value > 0 else "-jnp.inf"
    return repr(value)


def scalar(lit: Lit) -> Expr:
    """A scalar that keeps its dtype wherever it stands: ``jnp.float32(1.0)``, ``jnp.asarray(True)``."""
    text = number(lit.value, lit.dtype).text
    return Expr(f"jnp.asarray({text})" if lit.dtype == "bool" else f"{dtype(lit.dtype)}({text})")


def fill(type_: Type, value: str) -> Expr:
    """An array of one repeated number, on the device."""
    shape, kind = attribute(type_.shape), dtype(type_.dtype)
    text = number(value, type_.dtype).text
    if text in ("0.0", "0", "False"):
        return Expr(f"jnp.zeros({shape}, {kind})")
    if text in ("1.0", "1", "True"):
        return Expr(f"jnp.ones({shape}, {kind})")
    return Expr(f"jnp.full({shape}, {text}, {kind})")


def quote(text: str) -> str:
    """A string as text: its `repr`, in double quotes where that changes nothing else."""
    quoted = repr(str(text))
    plain = '"' not in quoted and "'" not in quoted[1:-1]
    return f'"{quoted[1:-1]}"' if plain else quoted


def attribute(value: Any) -> str:
    """An attribute value as text."""
    match value:
        case str():
            return quote(value)
        case None | bool() | int():
            return repr(value)
        case tuple():
            inner = ", ".join(attribute(item) for item in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        case Enum(name=name):
            cls, _, member = name.partition(".")
            if cls not in _ENUMS or member not in _ENUMS[cls][1]:
                raise ProgramError(f"unknown enum {name!r}", hint=f"known: {', '.join(_ENUMS)}")
            return f"{_ENUMS[cls][0]}.{member}"
        case GatherDims() | ScatterDims() | ConvDims():
            cls = {GatherDims: "Gather", ScatterDims: "Scatter", ConvDims: "Conv"}[type(value)]
            fields = ((f, getattr(value, f)) for f in value.__struct_fields__)
            # Batching dimensions are rare: left out at their default.
            shown = ", ".join(f"{f}={attribute(v)}" for f, v in fields if v or "batching" not in f)
            return f"lax.{cls}DimensionNumbers({shown})"
        case _:
            raise ProgramError(f"not an attribute value: {value!r}")


def spec(value: Spec | None) -> str:
    """A partition spec: ``P('data', None)``."""
    return f"P({', '.join(attribute(axes) for axes in value or ())})"


def pack(items: Sequence[str], empty: str = "()") -> str:
    """One value bare, several as a tuple."""
    if not items:
        return empty
    return items[0] if len(items) == 1 else f"({', '.join(items)})"


def targets(names: Sequence[str]) -> str:
    """The left-hand side of an assignment: in parentheses if it is so long that it will be broken."""
    text = ", ".join(names) or "_"
    return f"({text})" if len(text) > 60 else text


def returned(items: Sequence[str]) -> str:
    """What a function returns: several values as a tuple, in parentheses only if it will be broken."""
    return targets(items) if items else "()"


def call(head: str, *args: str, **keywords: str | None) -> Expr:
    """``head(args, name=value)``; keywords that are None are left out."""
    shown = [*args, *(f"{name}={text}" for name, text in keywords.items() if text is not None)]
    return Expr(f"{head}({', '.join(shown)})")


def space(memory: str) -> str:
    """A memory space as an argument of `jax.device_put`."""
    return "jax.memory.Space.Host" if memory == "host" else "jax.memory.Space.Device"
