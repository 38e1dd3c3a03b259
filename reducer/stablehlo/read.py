"""Reading a module, whatever it is that was given: the parser runs in another process, under limits."""

from __future__ import annotations

import os
import subprocess
import zlib

import msgspec

from reducer.aside import Aside, run_aside
from reducer.errors import InputError
from reducer.stablehlo.model import Module
from reducer.stablehlo.parse import Answer

#: Bytes of MLIR that are read, and decompressed, at most.
MAX_BYTES = 64 << 20
_SECONDS = 120.0
_MEMORY = 8 << 30


def read_module(data: bytes) -> Module:
    """Parse MLIR text, bytecode or a portable artifact, gzipped or not.

    Raises:
        InputError: it is too large, does not parse, or is none that can be mirrored.
    """
    data = _plain(data)
    if not data.strip():
        raise InputError("the module is empty")
    try:
        done = run_aside(
            "reducer.stablehlo.parse",
            data,
            environment={**os.environ, "JAX_PLATFORMS": "cpu"},
            seconds=_SECONDS,
            memory=_MEMORY,
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"the module was not parsed within {_SECONDS:.0f} s") from None
    return _answer(done)


def _plain(data: bytes) -> bytes:
    """`data`, decompressed if it is compressed, within the limit."""
    if data.startswith(b"\x1f\x8b"):
        stream = zlib.decompressobj(wbits=31)
        try:
            data = stream.decompress(data, MAX_BYTES + 1)
        except zlib.error as error:
            raise InputError(f"the compressed module is damaged: {error}") from error
        if not stream.eof and len(data) <= MAX_BYTES:
            raise InputError("the compressed module is cut off")
    if len(data) > MAX_BYTES:
        raise InputError(
            f"the module has more than {MAX_BYTES >> 20} MiB",
            hint="large constants belong into arguments: a reduction has no use for their values",
        )
    return data


def _answer(done: Aside) -> Module:
    if not done.answer:
        if done.status < 0:
            raise InputError(f"MLIR's parser was killed by signal {-done.status} on the module")
        raise InputError(f"the module cannot be parsed: the parser {done.ended()}")
    try:
        answer = msgspec.json.decode(done.answer, type=Answer)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InputError(f"the module cannot be read: {error}") from error
    if answer.module is None:
        raise InputError(f"the module does not parse: {answer.error}")
    return answer.module
