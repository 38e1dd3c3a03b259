"""Taking a program to the placement tier in a process of its own: tracing needs JAX, and runs its code on anything."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from reducer.errors import ProgramError
from reducer.ir.check import check
from reducer.ir.codec import decode, encode
from reducer.ir.equations import Program

_SECONDS: Final = 600.0
# The package's folder goes last, so that it hides nothing of the interpreter's; -P keeps the working folder out.
_BOOTSTRAP: Final = "import sys; sys.path.append({root!r}); from reducer.lowering.apart import main; main()"


class _Answer(msgspec.Struct):
    """What the process says: the program, or why there is none."""

    program: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""


def differentiate_apart(program: Program) -> Program:
    """`reducer.lowering.capture.differentiate`, in a new process: this one never loads JAX.

    Raises:
        ProgramError: JAX does not differentiate the program, or the derivative is not expressible.
    """
    root = str(Path(__file__).resolve().parents[2])
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as log:
        given.write(encode(program))
        given.seek(0)
        command = [sys.executable, "-P", "-c", _BOOTSTRAP.format(root=root), str(out.fileno())]
        try:
            subprocess.run(
                command,
                stdin=given,
                stdout=log,
                stderr=log,
                pass_fds=(out.fileno(),),
                env={**os.environ, "JAX_PLATFORMS": "cpu"},
                start_new_session=True,  # Ctrl-C in a terminal is for the parent alone
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ProgramError(f"JAX did not differentiate this program within {_SECONDS:.0f} s") from None
        out.seek(0)
        log.seek(0)
        return _read(out.read(), log.read().decode("utf-8", "replace"))


def _read(data: bytes, log: str) -> Program:
    try:
        answer = msgspec.json.decode(data, type=_Answer)
    except msgspec.MsgspecError:
        lines = [line for line in log.splitlines() if line.strip()]
        raise ProgramError(f"JAX did not differentiate this program: {lines[-1] if lines else 'it died'}") from None
    if answer.error:
        raise ProgramError(answer.error)
    found = decode(bytes(answer.program))
    check(found)
    return found


def main() -> None:
    """Entry point of the process: a program on standard input, an answer to the file descriptor that is named."""
    from reducer.lowering.capture import differentiate

    try:
        answer = _Answer(program=msgspec.Raw(encode(differentiate(decode(sys.stdin.buffer.read())))))
    except ProgramError as error:
        answer = _Answer(error=str(error))
    with open(int(sys.argv[1]), "wb") as out:
        out.write(msgspec.json.encode(answer))
