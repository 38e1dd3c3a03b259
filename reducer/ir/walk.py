"""Walking and rebuilding blocks: children, uses, substitution, inlining.

A `Path` names a place in a program: ``((2, "body"), (0, "body"))`` is the body of equation 0 of the body of
equation 2. Printed, it is ``eqns[2].body.eqns[0].body``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

import msgspec

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
    Name,
    Program,
    Scan,
    ShardingConstraint,
    ShardMap,
    Transfer,
    Var,
    While,
)
from reducer.ir.types import Type

Path = tuple[tuple[int, str], ...]


def path_text(path: Path) -> str:
    """``eqns[2].body.eqns[0].body``, or ``block`` for the top."""
    return ".".join(f"eqns[{i}].{field}" for i, field in path) or "block"


def children(eqn: Equation) -> tuple[tuple[str, Block], ...]:
    """The blocks of an equation with the names of their fields (``branches[1]`` for a branch)."""
    match eqn:
        case Scan(body=body) | Checkpoint(body=body) | Call(body=body) | ShardMap(body=body):
            return (("body", body),)
        case While(cond=cond, body=body):
            return (("cond", cond), ("body", body))
        case Cond(branches=branches):
            return tuple((f"branches[{i}]", b) for i, b in enumerate(branches))
        case CustomVjp(primal=primal, fwd=fwd, bwd=bwd):
            return (("primal", primal), ("fwd", fwd), ("bwd", bwd))
        case CustomJvp(primal=primal, jvp=jvp):
            return (("primal", primal), ("jvp", jvp))
        case _:
            return ()


def with_children(eqn: Equation, blocks: Mapping[str, Block]) -> Equation:
    """The equation with some of its blocks replaced, by the names `children` gives."""
    if not blocks:
        return eqn
    if isinstance(eqn, Cond):
        branches = tuple(blocks.get(f"branches[{i}]", b) for i, b in enumerate(eqn.branches))
        return msgspec.structs.replace(eqn, branches=branches)
    return msgspec.structs.replace(eqn, **blocks)


def args_of(eqn: Equation) -> tuple[Arg, ...]:
    """All values an equation uses, in the order of its fields."""
    match eqn:
        case Scan(consts=consts, carry=carry, xs=xs):
            return consts + carry + xs
        case While(cond_consts=cc, body_consts=bc, carry=carry):
            return cc + bc + carry
        case Cond(index=index, args=args):
            return (index, *args)
        case Name(arg=arg) | Transfer(arg=arg) | ShardingConstraint(arg=arg):
            return (arg,)
        case Fill():
            return ()
        case _:
            return eqn.args


def with_args(eqn: Equation, args: tuple[Arg, ...]) -> Equation:
    """The equation using other values; as many as `args_of` gives, in that order."""
    replace = msgspec.structs.replace
    match eqn:
        case Scan(consts=consts, carry=carry):
            n, m = len(consts), len(consts) + len(carry)
            return replace(eqn, consts=args[:n], carry=args[n:m], xs=args[m:])
        case While(cond_consts=cc, body_consts=bc):
            n, m = len(cc), len(cc) + len(bc)
            return replace(eqn, cond_consts=args[:n], body_consts=args[n:m], carry=args[m:])
        case Cond():
            return replace(eqn, index=args[0], args=args[1:])
        case Name() | Transfer() | ShardingConstraint():
            return replace(eqn, arg=args[0])
        case Fill():
            return eqn
        case _:
            return replace(eqn, args=args)


def bindings(block: Block) -> Iterator[Var]:
    """Every variable a block binds: parameters, then results of equations in order."""
    yield from block.params
    for eqn in block.eqns:
        yield from eqn.outs


def types_of(block: Block) -> dict[int, Type]:
    """Type of every variable the block binds."""
    return {var.id: var.type for var in bindings(block)}


def arg_type(arg: Arg, types: Mapping[int, Type]) -> Type:
    """Type of a use: from the table, or the scalar's own."""
    return Type(arg.dtype) if isinstance(arg, Lit) else types[arg]


def fresh(block: Block) -> Iterator[int]:
    """Numbers no variable of the block has."""
    return count(max((var.id for var in bindings(block)), default=-1) + 1)


def substitute(block: Block, replacement: Mapping[int, Arg]) -> Block:
    """Replace uses (not bindings) of variables at this level; nested blocks are closed and need no visit."""
    if not replacement:
        return block

    def sub(arg: Arg) -> Arg:
        return replacement.get(arg, arg) if isinstance(arg, int) else arg

    eqns = tuple(with_args(eqn, tuple(map(sub, args_of(eqn)))) for eqn in block.eqns)
    return Block(block.params, eqns, tuple(map(sub, block.results)))


def inlined(body: Block, args: tuple[Arg, ...], ids: Iterator[int]) -> tuple[tuple[Equation, ...], tuple[Arg, ...]]:
    """The equations of `body` renumbered from `ids` with `args` for its parameters, and its results likewise."""
    renaming: dict[int, Arg] = dict(zip((p.id for p in body.params), args, strict=True))
    eqns: list[Equation] = []

    def sub(arg: Arg) -> Arg:
        return renaming[arg] if isinstance(arg, int) else arg

    for eqn in body.eqns:
        eqn = with_args(eqn, tuple(map(sub, args_of(eqn))))
        outs = tuple(Var(next(ids), var.type) for var in eqn.outs)
        renaming.update(zip((var.id for var in eqn.outs), (var.id for var in outs), strict=True))
        eqns.append(msgspec.structs.replace(eqn, outs=outs))
    return tuple(eqns), tuple(map(sub, body.results))


@dataclass(frozen=True, slots=True)
class Place:
    """A block and where it stands."""

    path: Path
    block: Block


def blocks(program: Program) -> Iterator[Place]:
    """Every block of the program, outer before inner, in order."""

    def visit(path: Path, block: Block) -> Iterator[Place]:
        yield Place(path, block)
        for i, eqn in enumerate(block.eqns):
            for field, child in children(eqn):
                yield from visit((*path, (i, field)), child)

    return visit((), program.block)


def equations(program: Program) -> Iterator[tuple[Path, int, Equation]]:
    """Every equation with the path of its block and its position there, outer before inner."""
    for place in blocks(program):
        for i, eqn in enumerate(place.block.eqns):
            yield place.path, i, eqn


def block_at(program: Program, path: Path) -> Block:
    """The block at a path."""
    block = program.block
    for i, field in path:
        block = dict(children(block.eqns[i]))[field]
    return block


def replace_block(program: Program, path: Path, new: Block) -> Program:
    """The program with the block at a path replaced; the enclosing equations keep everything else."""

    def rebuild(block: Block, rest: Path) -> Block:
        if not rest:
            return new
        (i, field), *tail = rest
        eqn = block.eqns[i]
        child = rebuild(dict(children(eqn))[field], tuple(tail))
        eqns = (*block.eqns[:i], with_children(eqn, {field: child}), *block.eqns[i + 1 :])
        return msgspec.structs.replace(block, eqns=eqns)

    return msgspec.structs.replace(program, block=rebuild(program.block, path))


def map_block(block: Block, fn: Callable[[Block], Block]) -> Block:
    """Apply `fn` to every block inside, innermost first, then to the block itself."""
    eqns = tuple(
        with_children(eqn, {field: map_block(child, fn) for field, child in children(eqn)}) for eqn in block.eqns
    )
    return fn(msgspec.structs.replace(block, eqns=eqns))


def map_blocks(program: Program, fn: Callable[[Block], Block]) -> Program:
    """`map_block` over a whole program."""
    return msgspec.structs.replace(program, block=map_block(program.block, fn))


__all__ = [
    "Path",
    "Place",
    "arg_type",
    "args_of",
    "bindings",
    "block_at",
    "blocks",
    "children",
    "equations",
    "fresh",
    "inlined",
    "map_block",
    "map_blocks",
    "path_text",
    "replace_block",
    "substitute",
    "types_of",
    "with_args",
    "with_children",
]
