"""Small helpers that several passes share."""

from __future__ import annotations

from typing import Any

import msgspec

from reducer.ir.edit import replace_value, rewrite, with_equation
from reducer.ir.equations import Arg, Program
from reducer.ir.walk import Path, block_at


def changed(program: Program, path: Path, i: int, **fields: Any) -> Program:
    """The program with some fields of one equation replaced."""
    eqn = msgspec.structs.replace(block_at(program, path).eqns[i], **fields)
    return with_equation(program, path, i, eqn)


def replaced(program: Program, path: Path, var: int, new: Arg | None) -> Program:
    """The program with one value of one block replaced by another of its type, or by zeros."""
    return rewrite(program, {path: lambda block: replace_value(block, var, new)})
