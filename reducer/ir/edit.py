"""Rewriting a program and keeping it well-typed: the vocabulary of passes and of the neighbourhood.

Every function returns a new program or block. What used a removed value uses another one of the same type instead:
an argument of the removed equation, else the nearest earlier value, else zeros. Positions (paths, numbers of
equations, variable ids) always refer to the program as it was given, so several edits can be made in one go.

Results are not normalised: dead code and unused arguments stay until `normalise` takes them out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

import msgspec

from reducer.errors import ProgramError
from reducer.ir.equations import (
    Arg,
    Block,
    Equation,
    Fill,
    Lit,
    Program,
    Scan,
    Var,
    While,
)
from reducer.ir.types import DTYPES, Type
from reducer.ir.walk import (
    Path,
    arg_type,
    args_of,
    children,
    fresh,
    substitute,
    types_of,
    with_args,
    with_children,
)

BlockEdit = Callable[[Block], Block]
_ZERO = {"f": "0.0", "i": "0", "b": "False", "c": "0j"}


def rewrite(program: Program, edits: Mapping[Path, BlockEdit]) -> Program:
    """Apply an edit to each of several blocks, inner ones first; paths are those of the given program."""
    inside = {path[:i] for path in edits for i in range(len(path) + 1)}

    def visit(path: Path, block: Block) -> Block:
        eqns = list(block.eqns)
        for i, eqn in enumerate(block.eqns):
            changed = {}
            for field, child in children(eqn):
                place = (*path, (i, field))
                if place in inside:
                    changed[field] = visit(place, child)
            if changed:
                eqns[i] = with_children(eqn, changed)
        block = Block(block.params, tuple(eqns), block.results)
        return edits[path](block) if path in edits else block

    return msgspec.structs.replace(program, block=visit((), program.block))


def with_equation(program: Program, path: Path, i: int, eqn: Equation) -> Program:
    """The program with one equation replaced by another that binds the same variables."""

    def edit(block: Block) -> Block:
        return Block(block.params, (*block.eqns[:i], eqn, *block.eqns[i + 1 :]), block.results)

    return rewrite(program, {path: edit})


def zero_text(dtype: str) -> str:
    """Zero of a dtype as a scalar's text.

    Raises:
        ProgramError: the dtype has none (PRNG keys).
    """
    kind = DTYPES[dtype][2]
    if kind not in _ZERO:
        raise ProgramError(f"there is no zero of {dtype}")
    return _ZERO[kind]


def zeros(type_: Type, ids: Iterator[int]) -> tuple[Arg, tuple[Equation, ...]]:
    """Zeros of a type: a scalar as a literal, an array as the `Fill` that has to stand before its use.

    Raises:
        ProgramError: there is no such constant: PRNG keys, and arrays in host memory.
    """
    text = zero_text(type_.dtype)
    if type_.on_host:
        raise ProgramError(f"there is no constant {type_}")
    if not type_.shape:
        return Lit(type_.dtype, text), ()
    var = Var(next(ids), type_)
    return var.id, (Fill(outs=(var,), value=text),)


def stand_in(
    type_: Type,
    args: Sequence[Arg],
    types: Mapping[int, Type],
    earlier: Sequence[int],
    prefer: Container[int] = (),
) -> Arg | None:
    """The value to use instead of one of `type_`: the first argument of that type, else the nearest earlier value.

    Values in `prefer` go before others of their sort.
    """
    for arg in args:
        if arg_type(arg, types) == type_:
            return arg
    same = [v for v in reversed(earlier) if types[v] == type_]
    return next((v for v in same if v in prefer), next(iter(same), None))


def natural_args(eqn: Equation, k: int) -> tuple[Arg, ...]:
    """Arguments that may replace result `k` of an equation, best first: a loop's carry goes before everything."""
    args = args_of(eqn)
    if isinstance(eqn, Scan | While) and k < len(eqn.carry):
        return (eqn.carry[k], *args)
    return args


def delete(block: Block, doomed: Container[int], prefer: Iterable[int] = ()) -> Block:
    """Delete the equations at these positions, and repair what used their results.

    Args:
        block: where.
        doomed: positions of equations.
        prefer: variables to be used as stand-ins before others, so that what matters stays connected.

    Raises:
        ProgramError: a deleted value has no stand-in of its type and no zeros (keys, host arrays).
    """
    types = types_of(block)
    ids = fresh(block)
    earlier = [var.id for var in block.params]
    liked = set(prefer)
    renamed: dict[int, Arg] = {}
    kept: list[Equation] = []

    def sub(arg: Arg) -> Arg:
        return renamed.get(arg, arg) if isinstance(arg, int) else arg

    for i, eqn in enumerate(block.eqns):
        if i not in doomed:
            kept.append(with_args(eqn, tuple(map(sub, args_of(eqn)))))
            earlier += [var.id for var in eqn.outs]
            continue
        for k, var in enumerate(eqn.outs):
            args = natural_args(eqn, k)
            args = tuple(map(sub, (*(a for a in args if a in liked), *args)))
            new = stand_in(var.type, args, types, earlier, liked)
            if new is None:
                new, fills = zeros(var.type, ids)
                kept.extend(fills)
                for fill in fills:
                    types[fill.outs[0].id] = var.type
                    earlier.append(fill.outs[0].id)
            renamed[var.id] = new
            if var.id in liked and isinstance(new, int) and new not in liked:
                # The connection is lost here: what comes after has nothing to prefer this value for.
                liked.discard(var.id)
    return Block(block.params, tuple(kept), tuple(map(sub, block.results)))


def delete_all(
    program: Program,
    doomed: Mapping[Path, Container[int]],
    prefer: Mapping[Path, Iterable[int]] | None = None,
) -> Program:
    """`delete` in several blocks at once. A block inside a deleted equation needs no entry of its own."""
    liked = prefer or {}

    def editor(path: Path) -> BlockEdit:
        return lambda block: delete(block, doomed[path], liked.get(path, ()))

    return rewrite(program, {path: editor(path) for path in doomed})


def replace_value(block: Block, old: int, new: Arg | None) -> Block:
    """Use `new` (None: zeros) wherever the block uses `old`.

    Raises:
        ProgramError: zeros of that type do not exist.
    """
    if new is not None:
        return substitute(block, {old: new})
    value, fills = zeros(types_of(block)[old], fresh(block))
    done = substitute(block, {old: value})
    return Block(done.params, fills + done.eqns, done.results)


def uses(block: Block) -> Counter[int]:
    """How often each variable of a block is used: as an argument, or as a result; 0 for one that is not."""
    args = (arg for eqn in block.eqns for arg in args_of(eqn))
    return Counter(arg for arg in (*args, *block.results) if isinstance(arg, int))
