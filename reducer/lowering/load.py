"""Execute an emitted module and find out which equation an exception belongs to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import CodeType
from typing import Any

from reducer.ir.equations import Program
from reducer.lowering.emit import emit

#: File name of emitted modules in tracebacks.
FILE = "<program>"

_MARK = re.compile(r"  # (eqns\[\d+\]\S*)$")


@dataclass(frozen=True, slots=True)
class Module:
    """An executed module: its text and what it defines (``fn``, ``lower``, ``program`` or ``loss``)."""

    text: str
    names: dict[str, Any]

    @property
    def fn(self) -> Any:
        """The function that is compiled."""
        return self.names["fn"]

    def lower(self, devices: Any) -> Any:
        """Lower `fn` on these devices: a `jax.stages.Lowered`."""
        return self.names["lower"](devices)

    def place(self, error: BaseException) -> str:
        """Path of the equation an exception was raised for, "" if it belongs to none. Needs `typed` text."""
        lines = self.text.splitlines()
        found, traceback = "", error.__traceback__
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == FILE:
                mark = _MARK.search(lines[traceback.tb_lineno - 1])
                found = mark[1] if mark else found
            traceback = traceback.tb_next
        return found


def load(program: Program, *, typed: bool = True) -> Module:
    """Emit a program and execute the text, which imports JAX.

    Raises:
        ProgramError: the program cannot be written.
    """
    return execute(emit(program, typed=typed))


def execute(text: str) -> Module:
    """Execute emitted text in a name space of its own."""
    code: CodeType = compile(text, FILE, "exec", dont_inherit=True)
    names: dict[str, Any] = {"__name__": FILE, "__builtins__": __builtins__}
    exec(code, names)
    return Module(text, names)
