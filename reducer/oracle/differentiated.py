"""Taking a program to the placement tier in a process of its own: tracing needs JAX, and runs its code on anything."""

from __future__ import annotations

import os
import subprocess
from typing import Final

import msgspec

from reducer.aside import run_aside
from reducer.errors import ProgramError
from reducer.ir.check import check
from reducer.ir.codec import decode, encode
from reducer.ir.equations import Program

_SECONDS: Final = 600.0


class _Reply(msgspec.Struct, frozen=True):
    """The program as JSON, or why there is none."""

    program: bytes = b""
    error: str = ""


def differentiate_aside(program: Program) -> Program:
    """`reducer.lowering.capture.differentiate`, in a new process: this one never loads JAX.

    Raises:
        ProgramError: JAX does not differentiate the program, or the derivative is not expressible.
    """
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    try:
        done = run_aside(__name__, encode(program), environment=environment, seconds=_SECONDS)
    except subprocess.TimeoutExpired:
        raise ProgramError(f"JAX did not differentiate this program within {_SECONDS:.0f} s") from None
    if not done.answer:
        raise ProgramError(f"JAX does not differentiate this program: its process {done.ended()}")
    reply = msgspec.json.decode(done.answer, type=_Reply)
    if reply.error:
        raise ProgramError(reply.error)
    found = decode(reply.program)
    check(found)
    return found


def main(argument: bytes) -> bytes:
    """What the process does: differentiate one program."""
    from reducer.lowering.capture import differentiate

    try:
        return msgspec.json.encode(_Reply(program=encode(differentiate(decode(argument)))))
    except ProgramError as error:
        return msgspec.json.encode(_Reply(error=str(error)))
