"""Passes on dtypes: everything of one dtype made float32 (or int32) at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec

from reducer.errors import ProgramError
from reducer.ir.equations import Arg, Block, Equation, Fill, Lit, Program, Var
from reducer.ir.scalars import convert_scalar
from reducer.ir.types import DTYPES
from reducer.ir.walk import args_of, bindings, blocks, map_blocks, with_args
from reducer.passes.base import Candidate


def dtypes_of(program: Program) -> tuple[str, ...]:
    """Every dtype a variable of the program has, in order of occurrence."""
    return tuple(dict.fromkeys(var.type.dtype for place in blocks(program) for var in bindings(place.block)))


def _converted(value: Lit, dtype: str) -> Lit:
    new = convert_scalar(value, dtype)
    if new is None:
        raise ProgramError(f"{value.value} has no counterpart in {dtype}")
    return new


def with_dtype(program: Program, old: frozenset[str], new: str) -> Program:
    """The program with everything of the dtypes `old` made `new`: variables, scalars, constants.

    Raises:
        ProgramError: a scalar has no counterpart.
    """

    def variables(found: tuple[Var, ...]) -> tuple[Var, ...]:
        return tuple(Var(v.id, v.type.with_dtype(new)) if v.type.dtype in old else v for v in found)

    def arg(value: Arg) -> Arg:
        return _converted(value, new) if isinstance(value, Lit) and value.dtype in old else value

    def equation(eqn: Equation) -> Equation:
        if isinstance(eqn, Fill) and eqn.outs[0].type.dtype in old:
            value = _converted(Lit(eqn.outs[0].type.dtype, eqn.value), new).value
            eqn = msgspec.structs.replace(eqn, value=value)
        return msgspec.structs.replace(with_args(eqn, tuple(map(arg, args_of(eqn)))), outs=variables(eqn.outs))

    def edit(block: Block) -> Block:
        eqns = tuple(map(equation, block.eqns))
        return Block(variables(block.params), eqns, tuple(map(arg, block.results)))

    return map_blocks(program, edit)


def unify_dtypes(program: Program) -> Iterator[Candidate[Program]]:
    """All floats made float32, then one dtype at a time; integers made int32."""
    present = dtypes_of(program)
    for kind, plain in (("f", "float32"), ("i", "int32")):
        others = [d for d in present if DTYPES[d][2] == kind and d != plain]
        if len(others) > 1:
            yield partial(with_dtype, program, frozenset(others), plain)
        for dtype in others:
            yield partial(with_dtype, program, frozenset({dtype}), plain)
