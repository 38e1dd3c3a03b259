"""Passes that put something simpler in the place of an operation or a scalar."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from reducer.ir.edit import with_equation, zero_text
from reducer.ir.equations import Equation, Fill, Lit, Op, Program, Transfer
from reducer.ir.types import DTYPES, Type
from reducer.ir.walk import arg_type, args_of, blocks, types_of, with_args
from reducer.passes.base import Candidate
from reducer.passes.tools import replaced

#: The nonlinear function every other one is reduced to: its derivative needs its argument, and its name is short.
CANONICAL = "sin"


def bypass_equations(program: Program) -> Iterator[Candidate[Program]]:
    """One result replaced by one of the equation's own arguments of its type: every choice, not only the first."""
    for place in blocks(program):
        types = types_of(place.block)
        for eqn in reversed(place.block.eqns):
            for var in eqn.outs:
                for arg in dict.fromkeys(args_of(eqn)):
                    if arg_type(arg, types) == var.type:
                        yield partial(replaced, program, place.path, var.id, arg)


def simplify_operations(program: Program) -> Iterator[Candidate[Program]]:
    """One equation replaced by `sin` of one of its arguments, by a sum of two, or by a transfer of an earlier value.

    A transfer makes a value out of one that differs in its memory space only, where nothing else of its type is at
    hand that has not been computed.
    """
    for place in blocks(program):
        types = types_of(place.block)
        bound = [var.id for var in place.block.params]
        for i, eqn in enumerate(place.block.eqns):
            for new in simpler_operations(eqn, types):
                yield partial(with_equation, program, place.path, i, new)
            if isinstance(eqn, Op) and len(eqn.outs) == 1:
                out = eqn.outs[0].type
                for other in bound:
                    if types[other] != out and types[other].in_memory(out.memory) == out:
                        moved: Equation = Transfer(outs=eqn.outs, arg=other, memory=out.memory, metadata=eqn.metadata)
                        yield partial(with_equation, program, place.path, i, moved)
            bound += [var.id for var in eqn.outs]


def simpler_operations(eqn: Equation, types: dict[int, Type]) -> Iterator[Equation]:
    """What may stand in the place of an operation."""
    if len(eqn.outs) != 1 or isinstance(eqn, Fill) or (isinstance(eqn, Op) and eqn.primitive == CANONICAL):
        return
    out = eqn.outs[0].type
    same = [a for a in dict.fromkeys(args_of(eqn)) if arg_type(a, types) == out]
    if DTYPES[out.dtype][2] == "f" and not out.on_host:
        for arg in same:
            yield Op(
                outs=eqn.outs, primitive=CANONICAL, args=(arg,), metadata=eqn.metadata if isinstance(eqn, Op) else ()
            )
    if isinstance(eqn, Op) and len(same) > 1 and eqn.primitive not in ("add", "mul") and (out.inexact or out.integer):
        for primitive in ("add", "mul"):
            yield Op(outs=eqn.outs, primitive=primitive, args=tuple(same[:2]), metadata=eqn.metadata)


def simplify_scalars(program: Program) -> Iterator[Candidate[Program]]:
    """One scalar, or one constant array's value, made 0 or 1."""
    for place in blocks(program):
        for i, eqn in enumerate(place.block.eqns):
            if isinstance(eqn, Fill):
                for value in simpler_scalars(eqn.value, eqn.outs[0].type.dtype):
                    new: Equation = Fill(outs=eqn.outs, value=value, metadata=eqn.metadata)
                    yield partial(with_equation, program, place.path, i, new)
            args = args_of(eqn)
            for k, arg in enumerate(args):
                if isinstance(arg, Lit):
                    for value in simpler_scalars(arg.value, arg.dtype):
                        if value == zero_text(arg.dtype) and divides(eqn, k):
                            continue
                        new = with_args(eqn, (*args[:k], Lit(arg.dtype, value), *args[k + 1 :]))
                        yield partial(with_equation, program, place.path, i, new)


def simpler_scalars(value: str, dtype: str) -> Iterator[str]:
    """0 and 1 of a dtype, as far as they are simpler than `value`."""
    zero = zero_text(dtype)
    one = {"0.0": "1.0", "0": "1", "False": "True"}.get(zero)
    if value != zero:
        yield zero
        if one is not None and value != one:
            yield one


def divides(eqn: Equation, k: int) -> bool:
    """True if argument `k` is a divisor: zero there makes a program nobody would run."""
    return isinstance(eqn, Op) and eqn.primitive in ("div", "rem") and k == 1
