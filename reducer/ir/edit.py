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
    Call,
    Checkpoint,
    Cond,
    CustomJvp,
    CustomVjp,
    Equation,
    Fill,
    Lit,
    Program,
    Scan,
    ShardMap,
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
    inlined,
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


def unwrap(block: Block, chosen: Mapping[int, str]) -> Block:
    """Replace regions by what is in them: the equation at each position by its block of that field.

    A scan becomes one turn of its body: an x's slice becomes an earlier value of its type or zeros, and a stacked y
    an earlier value or zeros too. A while loop becomes one turn likewise; a custom rule its primal.

    Raises:
        ProgramError: types do not allow it (a shard_map whose body has other shapes), or zeros do not exist.
    """
    types = types_of(block)
    ids = fresh(block)
    earlier = [var.id for var in block.params]
    renamed: dict[int, Arg] = {}
    eqns: list[Equation] = []

    def sub(arg: Arg) -> Arg:
        return renamed.get(arg, arg) if isinstance(arg, int) else arg

    def value(type_: Type) -> Arg:
        new = stand_in(type_, (), types, earlier)
        if new is None:
            new, fills = zeros(type_, ids)
            add(fills)
        return new

    def add(more: Sequence[Equation]) -> None:
        for new in more:
            eqns.append(new)
            for var in new.outs:
                types[var.id] = var.type
                earlier.append(var.id)

    for i, eqn in enumerate(block.eqns):
        eqn = with_args(eqn, tuple(map(sub, args_of(eqn))))
        if i not in chosen:
            add((eqn,))
            continue
        body = dict(children(eqn))[chosen[i]]
        inner, results = inlined(body, _arguments(eqn, body, value), ids)
        add(inner)
        for var, result in zip(eqn.outs, results, strict=True):
            same = arg_type(result, types) == var.type
            renamed[var.id] = result if same else value(var.type)
    return Block(block.params, tuple(eqns), tuple(map(sub, block.results)))


def _arguments(eqn: Equation, body: Block, value: Callable[[Type], Arg]) -> tuple[Arg, ...]:
    match eqn:
        case Scan(consts=consts, carry=carry):
            n = len(consts) + len(carry)
            return (*consts, *carry, *(value(p.type) for p in body.params[n:]))
        case While(body_consts=consts, carry=carry):
            return consts + carry
        case Cond(args=args) | Checkpoint(args=args) | Call(args=args) | CustomVjp(args=args) | CustomJvp(args=args):
            return args
        case ShardMap(args=args):
            return tuple(value(p.type) for p in body.params) if len(args) != len(body.params) else args
        case _:
            raise ProgramError(f"{type(eqn).__name__} has no body to unwrap")


def main_fields(eqn: Equation) -> tuple[str, ...]:
    """Fields of the blocks `unwrap` can put in the place of an equation."""
    match eqn:
        case Scan() | While() | Checkpoint() | Call() | ShardMap():
            return ("body",)
        case CustomVjp() | CustomJvp():
            return ("primal",)
        case Cond(branches=branches):
            return tuple(f"branches[{i}]" for i in range(len(branches)))
        case _:
            return ()


def freeze_carry(block: Block, i: int, k: int) -> Block:
    """Turn carry `k` of the scan or while at `i` into a constant: its result is its initial value."""
    eqn = block.eqns[i]
    assert isinstance(eqn, Scan | While)
    out, init = eqn.outs[k], eqn.carry[k]
    carry = eqn.carry[:k] + eqn.carry[k + 1 :]
    outs = eqn.outs[:k] + eqn.outs[k + 1 :]
    new: Equation
    if isinstance(eqn, Scan):
        n = len(eqn.consts)
        body = _moved(eqn.body, n + k, n)
        body = Block(body.params, body.eqns, body.results[:k] + body.results[k + 1 :])
        new = msgspec.structs.replace(eqn, outs=outs, consts=(*eqn.consts, init), carry=carry, body=body)
    else:
        n, m = len(eqn.cond_consts), len(eqn.body_consts)
        cond, body = _moved(eqn.cond, n + k, n), _moved(eqn.body, m + k, m)
        new = msgspec.structs.replace(
            eqn,
            outs=outs,
            cond=cond,
            body=Block(body.params, body.eqns, body.results[:k] + body.results[k + 1 :]),
            carry=carry,
            cond_consts=(*eqn.cond_consts, init),
            body_consts=(*eqn.body_consts, init),
        )
    eqns = (*block.eqns[:i], new, *block.eqns[i + 1 :])
    return substitute(Block(block.params, eqns, block.results), {out.id: init})


def _moved(block: Block, source: int, target: int) -> Block:
    params = list(block.params)
    params.insert(target, params.pop(source))
    return Block(tuple(params), block.eqns, block.results)


def uses(block: Block) -> Counter[int]:
    """How often each variable of a block is used: as an argument, or as a result; 0 for one that is not."""
    args = (arg for eqn in block.eqns for arg in args_of(eqn))
    return Counter(arg for arg in (*args, *block.results) if isinstance(arg, int))
