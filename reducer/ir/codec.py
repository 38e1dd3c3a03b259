"""JSON form of programs: versioned, canonical, and the source of a program's identity.

Decoding never executes anything and trusts nothing: it validates structure here, meaning in `check`.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from reducer.errors import InputError, ProgramError
from reducer.ir.equations import Equation, Op, Program
from reducer.ir.types import Type, parse_type
from reducer.ir.walk import map_blocks

#: Rises when an older reader could misread a newer file.
FORMAT = 1


class _File(msgspec.Struct, frozen=True):
    format: int
    program: msgspec.Raw


def enc_hook(value: object) -> str:
    """Types are written as text; msgspec calls this for everything that is not its own."""
    if isinstance(value, Type):
        return str(value)
    raise NotImplementedError(f"{value!r} has no JSON form")


def dec_hook(wanted: type, value: Any) -> Any:
    """The other way round of `enc_hook`."""
    if wanted is Type and isinstance(value, str):
        try:
            return parse_type(value)
        except ProgramError as error:
            raise ValueError(str(error)) from None
    raise ValueError(f"cannot read {value!r} as {wanted.__name__}")


_encoder = msgspec.json.Encoder(enc_hook=enc_hook)
_program = msgspec.json.Decoder(Program, dec_hook=dec_hook)
_file = msgspec.json.Decoder(_File)


def encode_program(program: Program) -> bytes:
    """Canonical bytes of the program alone: no version, no white space. Equal programs, equal bytes."""
    return _encoder.encode(program)


def encode(program: Program, *, indent: int = 0) -> bytes:
    """The file form: ``{"format": 1, "program": {...}}``; `indent` > 0 lays it out for a reader."""
    data = _encoder.encode({"format": FORMAT, "program": program})
    return msgspec.json.format(data, indent=indent) if indent else data


def decode_program(data: bytes) -> Program:
    """Read canonical bytes back. Structure only; call `check` before trusting the meaning.

    Raises:
        InputError: not JSON, or not a program; says where.
    """
    try:
        program = _program.decode(data)
        return map_blocks(program, lambda block: msgspec.structs.replace(block, eqns=tuple(map(_freeze, block.eqns))))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"not a program: {error}", hint="expected the JSON that scanshrink writes") from None


def decode(data: bytes) -> Program:
    """Read the file form back.

    Raises:
        InputError: not JSON, not a program, or of a newer format.
    """
    try:
        file = _file.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"not a program file: {error}", hint='expected {"format": 1, "program": {...}}') from None
    if file.format > FORMAT:
        raise InputError(
            f"written by a newer scanshrink (format {file.format}, this one reads up to {FORMAT})",
            hint="upgrade scanshrink",
        )
    return decode_program(bytes(file.program))


def identity(program: Program) -> str:
    """sha256 of the program without its `meta`, as 64 hex digits."""
    return hashlib.sha256(encode_program(msgspec.structs.replace(program, meta=()))).hexdigest()


def _freeze(eqn: Equation) -> Equation:
    # Inside an attribute msgspec cannot know that a JSON list was a tuple.
    if not isinstance(eqn, Op) or not any(isinstance(v, tuple) for _, v in eqn.attributes):
        return eqn
    return msgspec.structs.replace(eqn, attributes=tuple((k, _tuples(v)) for k, v in eqn.attributes))


def _tuples(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_tuples(item) for item in value)
    if value is None or isinstance(value, bool | int | str | msgspec.Struct):
        return value
    raise InputError(f"not an attribute value: {value!r}", hint="attributes hold integers, strings and tuples")
