"""The parameters of a minimum: what in it could have another value, not necessarily a simpler one.

The neighbourhood asks what can go. Here it is asked what does not matter: another length, shape, dtype, name or
function of the same structure. Values are few and the same for every program (the first is the program's own), so
what is tried is bounded and does not depend on what comes out. Things are called by the letters that `to_text` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

import msgspec

from reducer.ir.dims import Dimension, dimensions, resized
from reducer.ir.edit import rewrite, with_equation
from reducer.ir.equations import (
    BARRIER,
    Block,
    Checkpoint,
    Equation,
    Fill,
    Grad,
    Lit,
    Name,
    Op,
    Program,
    Scan,
    Transfer,
    Var,
)
from reducer.ir.policies import OffloadDots, OffloadNames, Plain, Policy, SaveNames, names_of
from reducer.ir.text import letters, policy_text
from reducer.ir.types import DTYPES, Type
from reducer.ir.walk import Path, args_of, bindings, blocks, equations, map_blocks, with_args
from reducer.ir.whole import with_dtype, with_names

C = TypeVar("C")
_replace: Callable[..., Any] = msgspec.structs.replace

#: Sizes tried for a length or dimension: the small ones one by one, then a tile's.
LENGTHS: Final = (1, 2, 3, 4, 5, 8)
SIZES: Final = (1, 2, 3, 4, 5, 8, 128)
#: Shapes tried in the place of scalars: appended to the shape of every floating value.
SHAPES: Final = ((1,), (8,), (8, 128), (2, 8, 128))
FLOATS: Final = ("float32", "bfloat16", "float16")
NAMES: Final = ("x", "attention_out", "h.0")
UNARY: Final = ("sin", "cos", "tanh", "exp", "logistic", "neg")
BINARY: Final = ("add", "sub", "mul", "max")
SCALARS: Final = ("0.0", "1.0", "0.5")
UNROLLS: Final = (1, 2, 3)
PRESENT, ABSENT = "there", "not there"


@dataclass(frozen=True, slots=True)
class Parameter(Generic[C]):
    """One thing about a minimum that can have several values.

    `own` is its value in the minimum; each of `others` is another one with what builds the candidate, which may raise
    `ProgramError`: then there is no such program.
    """

    name: str
    own: str
    others: tuple[tuple[str, Callable[[], C]], ...]


def parameters(program: Program) -> Iterator[Parameter[Program]]:
    """Every parameter of a program, in a fixed order; as it stands, not in any normal form."""
    called = letters(program)
    yield from _sizes(program, called)
    yield from _types(program)
    yield from _gradient(program, called)
    for path, i, eqn in equations(program):
        where = f"of {' '.join(called[path, var.id] for var in eqn.outs)}" if eqn.outs else f"of equation {i}"
        yield from _of_equation(program, path, i, eqn, where)
    yield from _names(program)


def _sizes(program: Program, called: dict[tuple[Path, int], str]) -> Iterator[Parameter[Program]]:
    for d in dimensions(program):
        if d.pinned:
            continue
        values = LENGTHS if d.is_length else SIZES
        others = tuple((str(n), partial(resized, program, [(d, n)])) for n in values if n != d.size)
        yield Parameter(_size_name(program, d, called), str(d.size), others)


def _size_name(program: Program, d: Dimension, called: dict[tuple[Path, int], str]) -> str:
    scans = [(path, -1 - var) for path, var, _ in d.nodes if var < 0]
    if scans:
        outs = {(path, i): [called[path, v.id] for v in eqn.outs] for path, i, eqn in equations(program)}
        return "length of " + ", ".join(" ".join(outs[scan]) for scan in scans)
    path, var, axis = d.nodes[0]
    return f"axis {axis} of {called[path, var]}"


def _types(program: Program) -> Iterator[Parameter[Program]]:
    types = [var.type for place in blocks(program) for var in bindings(place.block)]
    floats = [t for t in types if DTYPES[t.dtype][2] == "f"]
    present = tuple(dict.fromkeys(t.dtype for t in floats))
    if len(present) == 1:
        values = (d for d in FLOATS if d != present[0])
        changed = tuple((DTYPES[d][0], partial(with_dtype, program, frozenset(present), d)) for d in values)
        yield Parameter("dtype", DTYPES[present[0]][0], changed)
    if floats and any(not t.shape for t in floats):
        larger = tuple((str(list(shape)), partial(_shaped, program, shape)) for shape in SHAPES)
        yield Parameter("shape added to every value", "[]", larger)


def _shaped(program: Program, shape: tuple[int, ...]) -> Program:
    """Every floating value with these dimensions appended; only for operations that do not mind the shape."""

    def retyped(variables: tuple[Var, ...]) -> tuple[Var, ...]:
        return tuple(
            Var(v.id, v.type.with_shape((*v.type.shape, *shape))) if DTYPES[v.type.dtype][2] == "f" else v
            for v in variables
        )

    def edit(block: Block) -> Block:
        eqns = tuple(_replace(eqn, outs=retyped(eqn.outs)) for eqn in block.eqns)
        return Block(retyped(block.params), eqns, block.results)

    return map_blocks(program, edit)


def _gradient(program: Program, called: dict[tuple[Path, int], str]) -> Iterator[Parameter[Program]]:
    grad = program.gradient
    inexact = tuple(n for n, v in enumerate(program.block.params) if v.type.inexact and not v.type.on_host)

    def text(found: Grad | None) -> str:
        if found is None:
            return "none"
        names = ", ".join(called[(), program.block.params[n].id] for n in found.argnums)
        return f"{'value and ' if found.with_value else ''}with respect to {names}"

    choices: list[Grad | None] = [None]
    if inexact:
        choices += [Grad(inexact, with_value=False), Grad(inexact, with_value=True)]
    if grad is not None:
        choices += [Grad(grad.argnums, with_value=not grad.with_value)]
        choices += [Grad((n,), grad.with_value) for n in inexact]
    others = {text(c): partial(_replace, program, gradient=c) for c in choices if c != grad}
    yield Parameter("gradient", text(grad), tuple(others.items()))


def _of_equation(program: Program, path: Path, i: int, eqn: Equation, where: str) -> Iterator[Parameter[Program]]:
    def put(**fields: object) -> Callable[[], Program]:
        return partial(with_equation, program, path, i, _replace(eqn, **fields))

    match eqn:
        case Scan():
            yield from _of_scan(eqn, put, where)
        case Checkpoint(policy=policy, prevent_cse=prevent_cse):
            yield Parameter(
                f"prevent_cse {where}", str(prevent_cse), ((str(not prevent_cse), put(prevent_cse=not prevent_cse)),)
            )
            if policy is not None:
                others = {policy_text(p): put(policy=p) for p in _other_policies(policy)}
                yield Parameter(f"policy {where}", policy_text(policy), tuple(others.items()))
        case Op(primitive=primitive, args=args):
            for group in (UNARY, BINARY):
                if primitive in group and len(args) == (1 if group is UNARY else 2):
                    functions = tuple((p, put(primitive=p)) for p in group if p != primitive)
                    yield Parameter(f"function {where}", primitive, functions)
        case Fill(value=value):
            yield Parameter(f"constant {where}", value, tuple((v, put(value=v)) for v in SCALARS if v != value))
        case Transfer(memory=memory):
            yield from _of_transfer(program, path, i, eqn, memory, where)
        case _:
            pass
    args = args_of(eqn)
    for k, arg in enumerate(args):
        if isinstance(arg, Lit) and DTYPES[arg.dtype][2] == "f":
            lits = {
                v: with_args(eqn, (*args[:k], Lit(arg.dtype, v), *args[k + 1 :])) for v in SCALARS if v != arg.value
            }
            edits = tuple((v, partial(with_equation, program, path, i, new)) for v, new in lits.items())
            yield Parameter(f"argument {k} {where}", arg.value, edits)


def _of_scan(eqn: Scan, put: Callable[..., Callable[[], Program]], where: str) -> Iterator[Parameter[Program]]:
    yield Parameter(f"reverse {where}", str(eqn.reverse), ((str(not eqn.reverse), put(reverse=not eqn.reverse)),))
    unrolls = tuple((str(n), put(unroll=n)) for n in UNROLLS if n != eqn.unroll and n <= max(eqn.length, 1))
    yield Parameter(f"unroll {where}", str(eqn.unroll), unrolls)
    tagged = set(BARRIER) <= set(eqn.metadata)
    rest = tuple(entry for entry in eqn.metadata if entry not in BARRIER)
    other = rest if tagged else (*rest, *BARRIER)
    yield Parameter(
        f"barrier ({BARRIER[0][0]}) {where}",
        PRESENT if tagged else ABSENT,
        ((ABSENT if tagged else PRESENT, put(metadata=other)),),
    )


def _of_transfer(
    program: Program, path: Path, i: int, eqn: Transfer, memory: str, where: str
) -> Iterator[Parameter[Program]]:
    """A transfer back where it came from: whether the move itself matters, or only that there is one."""
    other = "device" if memory == "host" else "host"

    def edit(block: Block) -> Block:
        out = Var(eqn.outs[0].id, Type(eqn.outs[0].type.dtype, eqn.outs[0].type.shape, other))  # type: ignore[arg-type]
        new = _replace(eqn, outs=(out,), memory=other)
        return Block(block.params, (*block.eqns[:i], new, *block.eqns[i + 1 :]), block.results)

    yield Parameter(f"memory {where}", memory, ((other, partial(rewrite, program, {path: edit})),))


def _other_policies(policy: Policy) -> Iterator[Policy | None]:
    """What else a policy could be: kept on the device instead, another host memory, plain ones, none."""
    names = names_of(policy)
    if isinstance(policy, OffloadNames | OffloadDots):
        for memory in ("pinned_host", "unpinned_host"):
            if policy.dst != memory:
                yield _replace(policy, dst=memory)
    if isinstance(policy, OffloadNames):
        yield SaveNames(policy.offloaded + policy.saved)
    elif names:
        yield OffloadNames(tuple(dict.fromkeys(names)))
    for name in ("everything_saveable", "nothing_saveable"):
        if policy != Plain(name):
            yield Plain(name)
    yield None


def _names(program: Program) -> Iterator[Parameter[Program]]:
    attached = tuple(dict.fromkeys(eqn.name for _, _, eqn in equations(program) if isinstance(eqn, Name)))
    for name in attached:
        others = tuple((new, partial(with_names, program, {name: new})) for new in NAMES if new not in attached)
        yield Parameter(f"name {name}", name, others)


__all__ = ["Parameter", "parameters"]
