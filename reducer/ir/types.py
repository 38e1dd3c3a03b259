"""Value types: dtype, shape, and the memory space a value lives in.

A type is written the way jaxprs write it, and that text is also its JSON form: ``f32[8,128]``, ``bf16[]``,
``f32[8,128]<host>``. One spelling everywhere keeps cases readable and diffs small.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod
from typing import Final, Literal

from reducer.errors import ProgramError

Memory = Literal["device", "host"]

#: dtype name (as NumPy and ml_dtypes spell it) -> (short name in jaxprs, bytes per element, kind).
#: kind: f floating, c complex, i integer, b boolean, k PRNG key.
DTYPES: Final[dict[str, tuple[str, int, str]]] = {
    "float32": ("f32", 4, "f"),
    "bfloat16": ("bf16", 2, "f"),
    "float16": ("f16", 2, "f"),
    "float64": ("f64", 8, "f"),
    "float8_e4m3fn": ("f8_e4m3fn", 1, "f"),
    "float8_e5m2": ("f8_e5m2", 1, "f"),
    "float8_e4m3b11fnuz": ("f8_e4m3b11fnuz", 1, "f"),
    "complex64": ("c64", 8, "c"),
    "int4": ("i4", 1, "i"),
    "uint4": ("u4", 1, "i"),
    "int8": ("i8", 1, "i"),
    "uint8": ("u8", 1, "i"),
    "int16": ("i16", 2, "i"),
    "uint16": ("u16", 2, "i"),
    "int32": ("i32", 4, "i"),
    "uint32": ("u32", 4, "i"),
    "int64": ("i64", 8, "i"),
    "uint64": ("u64", 8, "i"),
    "bool": ("bool", 1, "b"),
    "key<fry>": ("key<fry>", 8, "k"),
    "key<rbg>": ("key<rbg>", 16, "k"),
    "key<urbg>": ("key<urbg>", 16, "k"),
}
_LONG: Final = {short: name for name, (short, _, _) in DTYPES.items()}
_TYPE = re.compile(r"(?P<dtype>[a-z0-9_]+(?:<[a-z]+>)?)\[(?P<shape>(?:\d+(?:,\d+)*)?)\](?P<host><host>)?")


class Type:
    """The type of one value. `shape` counts elements per dimension; `memory` is where it lives on a TPU host.

    Immutable. A class of its own rather than a dataclass, because msgspec then writes it as its text.
    """

    __slots__ = ("_hash", "dtype", "memory", "shape")

    _hash: int
    dtype: str
    shape: tuple[int, ...]
    memory: Memory

    def __init__(self, dtype: str, shape: tuple[int, ...] = (), memory: Memory = "device") -> None:
        if dtype not in DTYPES:
            raise ProgramError(f"unknown dtype {dtype!r}", hint=f"known: {', '.join(DTYPES)}")
        if any(d < 0 for d in shape):
            raise ProgramError(f"a shape is a tuple of non-negative integers, not {shape!r}")
        if memory not in ("device", "host"):
            raise ProgramError(f"a memory space is device or host, not {memory!r}")
        for field, value in (("dtype", dtype), ("shape", tuple(shape)), ("memory", memory)):
            object.__setattr__(self, field, value)
        object.__setattr__(self, "_hash", hash((dtype, self.shape, memory)))

    def __setattr__(self, field: str, value: object) -> None:
        raise AttributeError(f"Type is immutable: cannot set {field}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Type):
            return NotImplemented
        return (self.dtype, self.shape, self.memory) == (other.dtype, other.shape, other.memory)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Type({str(self)!r})"

    def __reduce__(self) -> tuple[type[Type], tuple[str, tuple[int, ...], Memory]]:
        return Type, (self.dtype, self.shape, self.memory)

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, without padding or tiling."""
        return self.size * DTYPES[self.dtype][1]

    @property
    def inexact(self) -> bool:
        """True for floating and complex dtypes: the ones that carry a gradient."""
        return DTYPES[self.dtype][2] in "fc"

    @property
    def integer(self) -> bool:
        """True for signed and unsigned integer dtypes, not for bool."""
        return DTYPES[self.dtype][2] == "i"

    @property
    def on_host(self) -> bool:
        """True if the value lives in host memory."""
        return self.memory == "host"

    def with_shape(self, shape: tuple[int, ...]) -> Type:
        """The same dtype and memory at another shape."""
        return Type(self.dtype, tuple(shape), self.memory)

    def with_dtype(self, dtype: str) -> Type:
        """The same shape and memory at another dtype."""
        return Type(dtype, self.shape, self.memory)

    def in_memory(self, memory: Memory) -> Type:
        """The same dtype and shape in another memory space."""
        return Type(self.dtype, self.shape, memory)

    def stacked(self, length: int) -> Type:
        """The type of `length` of these stacked along a new leading dimension."""
        return self.with_shape((length, *self.shape))

    @property
    def element(self) -> Type:
        """The type of one slice along the leading dimension.

        Raises:
            ProgramError: the value is a scalar.
        """
        if not self.shape:
            raise ProgramError(f"{self} has no leading dimension")
        return self.with_shape(self.shape[1:])

    def __str__(self) -> str:
        dims = ",".join(map(str, self.shape))
        return f"{DTYPES[self.dtype][0]}[{dims}]{'<host>' if self.on_host else ''}"


@lru_cache(maxsize=65536)
def parse_type(text: str) -> Type:
    """Read a type back from its text.

    Raises:
        ProgramError: `text` is not a type.
    """
    match = _TYPE.fullmatch(text)
    if match is None or match["dtype"] not in _LONG:
        raise ProgramError(f"not a type: {text!r}", hint="a type looks like f32[8,128] or bf16[4]<host>")
    shape = tuple(int(d) for d in match["shape"].split(",")) if match["shape"] else ()
    return Type(_LONG[match["dtype"]], shape, "host" if match["host"] else "device")
