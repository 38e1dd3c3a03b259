"""What the text of an MLIR attribute says: numbers, lists of them, enum members, fields of dimension numbers."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from reducer.errors import ProgramError
from reducer.stablehlo.model import Attributes, Operation, attribute

_INTEGER: Final = re.compile(r"(-?\d+)(?: : \w+)?")
_ARRAY: Final = re.compile(r"array<i\d+(?:: (.*))?>")
_DENSE: Final = re.compile(r"dense<(.*)> : tensor<((?:\d+x)*)\w+>", re.DOTALL)
_MEMBER: Final = re.compile(r"#stablehlo<[a-z_]+ ([A-Z0-9_]+)>")
_FIELD: Final = re.compile(r"(\w+) = (\[[^\]]*\]|-?\d+|\w+)")
_PAIR: Final = re.compile(r'(?:"((?:[^"\\]|\\.)*)"|([\w.$-]+)) = "((?:[^"\\]|\\.)*)"')
_STRING: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE: Final = re.compile(r"\\([0-9A-Fa-f]{2}|.)")


def unreadable(what: str, text: str) -> ProgramError:
    """The error for an attribute whose text has another form than StableHLO gives it."""
    return ProgramError(f"not expressible: {what} is {text:.120}")


def text_of(operation: Operation, name: str) -> str:
    """The text of an attribute that an operation must have.

    Raises:
        ProgramError: it has none.
    """
    found = attribute(operation.attributes, name)
    if found is None:
        raise ProgramError(f"not expressible: {operation.name} without the attribute {name}")
    return found


def integer(operation: Operation, name: str, default: int | None = None) -> int:
    """An integer attribute."""
    text = attribute(operation.attributes, name)
    if text is None and default is not None:
        return default
    match = _INTEGER.fullmatch(text_of(operation, name))
    if match is None:
        raise unreadable(name, text or "")
    return int(match[1])


def flag(operation: Operation, name: str, default: bool = False) -> bool:
    """A boolean attribute."""
    return attribute(operation.attributes, name) == "true" if _has(operation, name) else default


def _has(operation: Operation, name: str) -> bool:
    return attribute(operation.attributes, name) is not None


def integers(operation: Operation, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """A list of integers: ``array<i64: 1, 0>``; booleans count as 0 and 1."""
    if default is not None and not _has(operation, name):
        return default
    text = text_of(operation, name)
    match = _ARRAY.fullmatch(text)
    if match is None:
        raise unreadable(name, text)
    words = (match[1] or "").split(", ") if match[1] else []
    return tuple({"true": 1, "false": 0}[w] if w in ("true", "false") else int(w) for w in words)


def pairs(operation: Operation, name: str, count: int) -> tuple[tuple[int, int], ...]:
    """`count` pairs of integers, as paddings are written: ``dense<[[0, 1], [0, 0]]> : tensor<2x2xi64>``."""
    if not _has(operation, name):
        return ((0, 0),) * count
    text = text_of(operation, name)
    match = _DENSE.fullmatch(text)
    if match is None:
        raise unreadable(name, text)
    if not match[1].startswith("["):
        return ((int(match[1]), int(match[1])),) * count if match[1] else ()
    found = json.loads(match[1])
    return tuple((int(low), int(high)) for low, high in found)


def member(text: str) -> str:
    """The member of an enum: ``#stablehlo<precision HIGHEST>`` is HIGHEST."""
    match = _MEMBER.fullmatch(text)
    if match is None:
        raise unreadable("an enum", text)
    return match[1]


def members(text: str) -> tuple[str, ...]:
    """The members in a list of enums."""
    return tuple(_MEMBER.findall(text))


def fields(text: str) -> dict[str, Any]:
    """The fields of a structured attribute: ``#stablehlo.gather<offset_dims = [2], index_vector_dim = 2>``."""
    out: dict[str, Any] = {}
    for name, value in _FIELD.findall(text):
        if value.startswith("["):
            out[name] = tuple(int(n) for n in value[1:-1].split(",") if n.strip())
        else:
            out[name] = int(value) if value.lstrip("-").isdigit() else value
    return out


def string(text: str) -> str:
    """A quoted string, without its quotes and escapes."""
    match = _STRING.fullmatch(text)
    if match is None:
        raise unreadable("a string", text)
    return _plain(match[1])


def strings(text: str) -> tuple[str, ...]:
    """Every quoted string in a text."""
    return tuple(_plain(found) for found in _STRING.findall(text))


def _plain(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        if len(code) == 2:
            return chr(int(code, 16))
        return {"n": "\n", "t": "\t"}.get(code, code)

    return _ESCAPE.sub(character, text)


def frontend(attributes: Attributes) -> dict[str, str]:
    """The frontend attributes of an operation: what `set_xla_metadata` writes."""
    text = attribute(attributes, "mhlo.frontend_attributes")
    if text is None:
        return {}
    return {_plain(quoted or bare): _plain(value) for quoted, bare, value in _PAIR.findall(text)}
