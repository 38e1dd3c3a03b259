"""Owed stacks: what a program at the placement tier transfers to host memory and consumes later.

A value transferred inside a loop and returned as a stacked output leaves the loop as a stack, one dimension larger;
if that leaves another loop it grows again. Consumed inside, it owes no more than itself: gradient accumulation, a
scan over the gradient of a scan, keeps the inner scan's stack and nothing larger.

Two transfers of one value owe one stack. A value that a loop does not change is marked: the compiler may keep it
once, or per iteration, and both are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import msgspec

from reducer.ir.equations import (
    Arg,
    Block,
    Call,
    Checkpoint,
    Cond,
    Equation,
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
from reducer.ir.walk import Path, args_of, blocks, path_text


class Stack(msgspec.Struct, frozen=True):
    """One value owed to host memory.

    `dtype` and `shape` are of the global value with all loops it escapes, the outermost first; `loops` their lengths.
    `name` is the checkpoint name it was kept under, or "", and `also` are further names of the same value. `where` is
    the block of the transfer. `invariant`: some loop it escapes does not change it. `output`: the program returns it.
    `unrolled`: some loop it escapes is, so that it need not be one array of that shape. `loop` is the outermost loop it
    escapes. `alone`: nothing on the device has as many elements, so that an array of that size is this stack, or one
    like it.
    """

    dtype: str
    shape: tuple[int, ...]
    loops: tuple[int, ...]
    name: str
    where: str
    invariant: bool = False
    output: bool = False
    also: tuple[str, ...] = ()
    unrolled: bool = False
    loop: str = ""
    alone: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes without padding, over all devices."""
        return Type(self.dtype, self.shape).nbytes


class Owed(msgspec.Struct, frozen=True):
    """What a lowered program owes. `reason` says why it could not be read; there are no stacks then.

    `partitions`: devices the program is partitioned over. `returns_host`: whether it returns a value in host memory,
    as far as is known.
    """

    stacks: tuple[Stack, ...] = ()
    partitions: int = 1
    reason: str = ""
    returns_host: bool = True

    @property
    def anything(self) -> bool:
        """Whether it has to be looked where the buffers of the compiled program lie."""
        return bool(self.stacks) and not self.reason


class _Origin(msgspec.Struct, frozen=True):
    """A host value on its way out: `source` tells transfers of one value apart from transfers of two."""

    source: tuple[Path, Arg]
    name: str
    loops: tuple[int, ...] = ()
    invariant: bool = False
    unrolled: bool = False
    loop: str = ""


def owed_stacks(program: Program) -> tuple[Stack, ...]:
    """The stacks a placement-tier program owes to host memory, in the order of its equations.

    The program is in normal form (no dead code) and has no gradient: differentiate it first.
    """
    assert program.gradient is None, "owed stacks are read after differentiation"
    ledger = _Ledger()
    results = ledger.visit(program.block, (), {})
    types = {var.id: var.type for eqn in program.block.eqns for var in eqn.outs}
    for arg, origin in zip(program.block.results, results, strict=True):
        if origin is not None and isinstance(arg, int) and arg in types:
            ledger.record(origin, types[arg], output=True)
    if not ledger.stacks:
        return ()
    bound = (var for place in blocks(program) for var in _bound(place.block))
    sizes = {prod(var.type.shape) for var in bound if not var.type.on_host}
    return tuple(
        msgspec.structs.replace(stack, alone=prod(stack.shape) not in sizes) for stack in ledger.stacks.values()
    )


def _bound(block: Block) -> Iterator[Var]:
    yield from block.params
    for eqn in block.eqns:
        yield from eqn.outs


class _Ledger:
    def __init__(self) -> None:
        self.stacks: dict[tuple[object, ...], Stack] = {}

    def record(self, origin: _Origin, type_: Type, *, output: bool = False) -> None:
        key = (origin.source, origin.loops)
        known = self.stacks.get(key)
        before = (known.name, *known.also) if known is not None else ()
        names = [*dict.fromkeys(name for name in (*before, origin.name) if name)]
        self.stacks[key] = Stack(
            dtype=type_.dtype,
            shape=type_.shape,
            loops=origin.loops,
            name=names[0] if names else "",
            also=tuple(names[1:]),
            where=path_text(origin.source[0]),
            invariant=origin.invariant,
            unrolled=origin.unrolled,
            loop=origin.loop,
            output=output or (known is not None and known.output),
        )

    def visit(
        self, block: Block, path: Path, entering: Mapping[int, _Origin], varying: frozenset[int] | None = None
    ) -> list[_Origin | None]:
        """Origins of the block's results. Host values that stay inside are recorded; `entering` ones are others'.

        `varying`: of a scan's body the parameters that differ between iterations.
        """
        origins: dict[int, _Origin] = dict(entering)
        changing = set(varying or ())
        sources: dict[int, tuple[Arg, str]] = {}
        for i, eqn in enumerate(block.eqns):
            if any(arg in changing for arg in args_of(eqn)):
                changing.update(var.id for var in eqn.outs)
            if isinstance(eqn, Name):
                base, _ = _source(eqn.arg, sources)
                sources[eqn.outs[0].id] = (base, eqn.name)
            self._equation(eqn, (*path, (i, "")), origins, sources)
        returned = {arg for arg in block.results if isinstance(arg, int)}
        for eqn in block.eqns:
            for var in eqn.outs:
                if var.id in origins and var.id not in returned:
                    self.record(origins[var.id], var.type)
        return [
            _mark(origins.get(arg) if isinstance(arg, int) else None, changes=varying is None or arg in changing)
            for arg in block.results
        ]

    def _equation(
        self, eqn: Equation, here: Path, origins: dict[int, _Origin], sources: Mapping[int, tuple[Arg, str]]
    ) -> None:
        *outer, (i, _) = here
        match eqn:
            case Transfer(arg=arg, memory="host"):
                if isinstance(arg, int) and arg in origins:
                    origins[eqn.outs[0].id] = origins[arg]
                    return
                base, name = _source(arg, sources)
                if isinstance(base, Lit):
                    return  # a constant scalar: nobody keeps that anywhere
                origins[eqn.outs[0].id] = _Origin(source=(tuple(outer), base), name=name)
            case Name(arg=arg) | ShardingConstraint(arg=arg):
                if isinstance(arg, int) and arg in origins:
                    origins[eqn.outs[0].id] = origins[arg]
            case Scan():
                self._scan(eqn, (*outer, (i, "body")), origins)
            case While(carry=carry, body_consts=consts, body=body):
                results = self._into(body, (*outer, (i, "body")), (*consts, *carry), origins)
                self._out(eqn, results, origins)
            case Cond(args=args, branches=branches):
                for k, branch in enumerate(branches):
                    results = self._into(branch, (*outer, (i, f"branches[{k}]")), args, origins)
                    self._out(eqn, results, origins)
            case Checkpoint(args=args, body=body) | Call(args=args, body=body) | ShardMap(args=args, body=body):
                self._out(eqn, self._into(body, (*outer, (i, "body")), args, origins), origins)
            case _:
                # Arithmetic in host memory makes new values; what becomes of them is the program's business.
                pass

    def _scan(self, eqn: Scan, inside: Path, origins: dict[int, _Origin]) -> None:
        args = (*eqn.consts, *eqn.carry, *eqn.xs)
        entering = _entering(eqn.body, args, origins)
        loop_values = frozenset(p.id for p in eqn.body.params[len(eqn.consts) :])
        results = self.visit(eqn.body, inside, entering, loop_values)
        for k, (var, origin) in enumerate(zip(eqn.outs, results, strict=True)):
            if origin is None:
                continue
            if k < len(eqn.carry):
                origins[var.id] = msgspec.structs.replace(origin, invariant=False)
            else:
                unrolled = origin.unrolled or min(eqn.unroll, eqn.length) > 1
                origins[var.id] = msgspec.structs.replace(
                    origin, loops=(eqn.length, *origin.loops), unrolled=unrolled, loop=path_text(inside)
                )

    def _into(
        self, body: Block, inside: Path, args: tuple[Arg, ...], origins: Mapping[int, _Origin]
    ) -> list[_Origin | None]:
        return self.visit(body, inside, _entering(body, args, origins))

    def _out(self, eqn: Equation, results: list[_Origin | None], origins: dict[int, _Origin]) -> None:
        for var, origin in zip(eqn.outs, results, strict=True):
            if origin is not None and var.type.on_host:
                # Of a cond's branches the one that names the value says best where it comes from.
                known = origins.get(var.id)
                origins[var.id] = known if known is not None and known.name else origin


def _entering(body: Block, args: tuple[Arg, ...], origins: Mapping[int, _Origin]) -> dict[int, _Origin]:
    pairs = zip(body.params, args, strict=True)
    return {p.id: origins[arg] for p, arg in pairs if isinstance(arg, int) and arg in origins and p.type.on_host}


def _source(arg: Arg, sources: Mapping[int, tuple[Arg, str]]) -> tuple[Arg, str]:
    """The value behind its names, and the last name."""
    return sources.get(arg, (arg, "")) if isinstance(arg, int) else (arg, "")


def _mark(origin: _Origin | None, *, changes: bool) -> _Origin | None:
    if origin is None or changes:
        return origin
    return msgspec.structs.replace(origin, invariant=True)
