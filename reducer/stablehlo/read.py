"""Reading a module, whatever it is that was given: the parser runs in another process, under limits."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import msgspec

from reducer.errors import InputError
from reducer.stablehlo.model import Module
from reducer.stablehlo.parse import Answer

#: Bytes of MLIR that are read, and decompressed, at most.
MAX_BYTES = 64 << 20
_SECONDS = 120.0
# The package's folder goes last, so that it hides nothing of the interpreter's; -P keeps the working folder out.
_BOOTSTRAP = "import sys; sys.path.append({root!r}); from reducer.stablehlo.parse import main; main()"


def read_module(data: bytes) -> Module:
    """Parse MLIR text, bytecode or a portable artifact, gzipped or not.

    Raises:
        InputError: it is too large, does not parse, or is none that can be mirrored.
    """
    data = _plain(data)
    if not data.strip():
        raise InputError("the module is empty")
    root = str(Path(__file__).resolve().parents[2])
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as log:
        given.write(data)
        given.seek(0)
        command = [sys.executable, "-P", "-c", _BOOTSTRAP.format(root=root), str(out.fileno())]
        try:
            status = subprocess.run(
                command,
                stdin=given,
                stdout=log,
                stderr=log,
                pass_fds=(out.fileno(),),
                env={**os.environ, "JAX_PLATFORMS": "cpu"},
                timeout=_SECONDS,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            raise InputError(f"the module was not parsed within {_SECONDS:.0f} s") from None
        out.seek(0)
        log.seek(0)
        return _answer(out.read(), status, log.read().decode("utf-8", "replace"))


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


def _answer(out: bytes, status: int, log: str) -> Module:
    if not out:
        lines = [line for line in log.splitlines() if line.strip()]
        if status < 0:
            raise InputError(f"MLIR's parser was killed by signal {-status} on the module")
        raise InputError(f"the module cannot be parsed: {lines[-1].strip() if lines else f'exit status {status}'}")
    try:
        answer = msgspec.json.decode(out, type=Answer)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InputError(f"the module cannot be read: {error}") from error
    if answer.module is None:
        raise InputError(f"the module does not parse: {answer.error}")
    return answer.module
