"""Twins: programs that mean what another one means, derived by a named transformation.

What a compiler does with a program and with its twin must agree: whether it compiles, and whether its offload is kept.
A twin is derived when it is asked for, never stored and never reduced by itself. Host bytes are never compared: two
ways to write one computation may pad and share buffers differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import msgspec

from reducer.errors import ProgramError
from reducer.ir.check import check
from reducer.ir.dims import dimensions, resized
from reducer.ir.equations import BARRIER, Arg, Block, Checkpoint, Equation, Name, Op, Program, Scan, Var
from reducer.ir.policies import Both, OffloadDots, OffloadNames, Plain, Policy, SaveNames, map_names, offloads
from reducer.ir.types import Type
from reducer.ir.walk import (
    Path,
    arg_type,
    args_of,
    block_at,
    blocks,
    equations,
    fresh,
    inlined,
    map_blocks,
    replace_block,
    types_of,
    with_args,
)

#: Bytes that the named values of a scaled program have at least: above what fits into VMEM, so that they cost HBM.
ENOUGH = 256 << 20


class Twin(msgspec.Struct, frozen=True):
    """A program and how it was derived. Both compile or neither, and both keep their offload or neither."""

    name: str
    program: Program


def twins(program: Program) -> Iterator[Twin]:
    """All twins of a program, well-formed ones only, in a fixed order."""
    for name, derive in (
        ("without loops of one step", _without_single_steps),
        ("without the barrier", lambda p: _barrier(p, on=False)),
        ("with the barrier", lambda p: _barrier(p, on=True)),
        ("loops without inputs reversed", _reversed),
        ("a loop of n x m steps as two", _split),
        ("without absent names", _without_absent_names),
    ):
        twin = _derived(program, derive)
        if twin is not None:
            yield Twin(name, twin)


def _derived(program: Program, derive: Callable[[Program], Program]) -> Program | None:
    try:
        twin = derive(program)
        check(twin)
    except ProgramError:
        return None
    return None if twin == program else twin


# -- the transformations ---------------------------------------------------------------------------------------------


def _without_single_steps(program: Program) -> Program:
    """Loops of one step replaced by their bodies: TRIP_COUNT_ONE becomes FLAT."""
    return map_blocks(program, _unlooped)


def _unlooped(block: Block) -> Block:
    ids, renamed, eqns = fresh(block), dict[int, Arg](), list[Equation]()

    def sub(arg: Arg) -> Arg:
        return renamed.get(arg, arg) if isinstance(arg, int) else arg

    for eqn in block.eqns:
        eqn = with_args(eqn, tuple(map(sub, args_of(eqn))))
        if not isinstance(eqn, Scan) or eqn.length != 1:
            eqns.append(eqn)
            continue
        first = len(eqn.consts) + len(eqn.carry)
        slices = [Var(next(ids), param.type) for param in eqn.body.params[first:]]
        eqns += [_reshaped(x, out) for x, out in zip(eqn.xs, slices, strict=True)]
        inner, results = inlined(eqn.body, (*eqn.consts, *eqn.carry, *(v.id for v in slices)), ids)
        eqns += inner
        k = len(eqn.carry)
        renamed.update((var.id, result) for var, result in zip(eqn.outs[:k], results[:k], strict=True))
        eqns += [_reshaped(result, var) for var, result in zip(eqn.outs[k:], results[k:], strict=True)]
    return Block(block.params, tuple(eqns), tuple(map(sub, block.results)))


def _reshaped(arg: Arg, out: Var) -> Op:
    return Op(outs=(out,), primitive="reshape", args=(arg,))


def _barrier(program: Program, *, on: bool) -> Program:
    def visit(block: Block) -> Block:
        return msgspec.structs.replace(block, eqns=tuple(map(change, block.eqns)))

    def change(eqn: Equation) -> Equation:
        if not isinstance(eqn, Scan):
            return eqn
        rest = tuple(pair for pair in eqn.metadata if pair not in BARRIER)
        return msgspec.structs.replace(eqn, metadata=tuple(sorted((*rest, *BARRIER))) if on else rest)

    return map_blocks(program, visit)


def _reversed(program: Program) -> Program:
    """A loop that takes nothing apart and stacks nothing does the same in either direction."""

    def visit(block: Block) -> Block:
        return msgspec.structs.replace(
            block,
            eqns=tuple(
                msgspec.structs.replace(eqn, reverse=not eqn.reverse)
                if isinstance(eqn, Scan) and not eqn.xs and len(eqn.outs) == len(eqn.carry)
                else eqn
                for eqn in block.eqns
            ),
        )

    return map_blocks(program, visit)


def _split(program: Program) -> Program:
    """The first loop whose length has a divisor, as a loop in a loop."""
    for path, i, eqn in equations(program):
        if isinstance(eqn, Scan) and eqn.unroll == 1 and (m := _divisor(eqn.length)):
            return replace_block(program, path, _split_at(block_at(program, path), i, eqn, m))
    return program


def _divisor(length: int) -> int:
    return next((m for m in range(2, length) if length % m == 0), 0)


def _split_at(block: Block, i: int, scan: Scan, m: int) -> Block:
    n, types, ids = scan.length // m, types_of(block), fresh(block)

    before, xs = [], []
    for x in scan.xs:
        assert isinstance(x, int), "a stacked input is no scalar"
        out = Var(next(ids), _cut(types[x], n, m))
        before.append(_reshaped(x, out))
        xs.append(out.id)
    k = len(scan.carry)
    stacked = [Var(next(ids), _cut(var.type, n, m)) for var in scan.outs[k:]]
    inner_types = [arg_type(a, types) for a in (*scan.consts, *scan.carry)]
    inner_types += [_tail(eqn.outs[0].type) for eqn in before]
    params = tuple(Var(number, t) for number, t in enumerate(inner_types))
    c = len(scan.consts)
    inner_outs = tuple(
        Var(len(params) + number, var.type if number < k else _tail(_cut(var.type, n, m)))
        for number, var in enumerate(scan.outs)
    )
    inner = msgspec.structs.replace(
        scan,
        outs=inner_outs,
        length=m,
        consts=tuple(p.id for p in params[:c]),
        carry=tuple(p.id for p in params[c : c + k]),
        xs=tuple(p.id for p in params[c + k :]),
    )
    outer = msgspec.structs.replace(
        scan,
        outs=(*scan.outs[:k], *stacked),
        length=n,
        xs=tuple(xs),
        body=Block(params, (inner,), tuple(var.id for var in inner_outs)),
    )
    after = [_reshaped(new.id, old) for new, old in zip(stacked, scan.outs[k:], strict=True)]
    return Block(block.params, (*block.eqns[:i], *before, outer, *after, *block.eqns[i + 1 :]), block.results)


def _cut(type_: Type, n: int, m: int) -> Type:
    return type_.with_shape((n, m, *type_.shape[1:]))


def _tail(type_: Type) -> Type:
    return type_.with_shape(type_.shape[1:])


def _without_absent_names(program: Program) -> Program:
    carried = {eqn.name for _, _, eqn in equations(program) if isinstance(eqn, Name)}
    return _with_policies(
        program, lambda policy: map_names(policy, lambda names: tuple(name for name in names if name in carried))
    )


def _with_policies(program: Program, change: Callable[[Policy], Policy]) -> Program:
    def visit(block: Block) -> Block:
        return msgspec.structs.replace(
            block,
            eqns=tuple(
                msgspec.structs.replace(eqn, policy=change(eqn.policy))
                if isinstance(eqn, Checkpoint) and not eqn.differentiated and eqn.policy is not None
                else eqn
                for eqn in block.eqns
            ),
        )

    return map_blocks(program, visit)


# -- what an offload costs -------------------------------------------------------------------------------------------


def saved_on_device(program: Program) -> Program:
    """The program with what its policies offload saved on the device instead.

    Raises:
        ProgramError: no policy offloads anything, or the program is below the program tier.
    """
    twin = _with_policies(program, _saving)
    if twin == program:
        raise ProgramError("no policy of this program offloads anything")
    return twin


def _saving(policy: Policy) -> Policy:
    match policy:
        case OffloadNames(offloaded=offloaded, saved=saved):
            return SaveNames(tuple(dict.fromkeys((*offloaded, *saved))))
        case OffloadDots():
            return Plain("dots_with_no_batch_dims_saveable")
        case Both(first=first, second=second):
            return Both(_saving(first), _saving(second))
        case _:
            return policy


def named_bytes(program: Program) -> int:
    """Bytes of all values under a name that some policy offloads, over all turns of the loops around them."""
    lengths: dict[Path, int] = {}
    names: set[str] = set()
    for place in blocks(program):
        for i, eqn in enumerate(place.block.eqns):
            if isinstance(eqn, Scan):
                lengths[(*place.path, (i, "body"))] = eqn.length
            if isinstance(eqn, Checkpoint) and not eqn.differentiated and offloads(eqn.policy):
                names.update(_offloaded(eqn.policy))
    total = 0
    for path, _, eqn in equations(program):
        if isinstance(eqn, Name) and eqn.name in names:
            turns = prod(lengths.get(path[: k + 1], 1) for k in range(len(path)))
            total += eqn.outs[0].type.nbytes * turns
    return total


def _offloaded(policy: Policy | None) -> tuple[str, ...]:
    match policy:
        case OffloadNames(offloaded=names):
            return names
        case Both(first=first, second=second):
            return _offloaded(first) + _offloaded(second)
        case _:
            return ()


def scaled_up(program: Program, least: int = ENOUGH) -> Program:
    """The program with one dimension so large that its offloaded names take `least` bytes at least.

    Of all dimensions it is the one that makes the inputs grow least: a batch, and not the width of weights.

    Raises:
        ProgramError: no dimension makes them grow.
    """
    now = named_bytes(program)
    if now >= least:
        return program
    best: tuple[int, Program] | None = None
    for dimension in dimensions(program):
        if dimension.pinned or dimension.is_length or not now:
            continue
        factor = -(-least // now)
        try:
            larger = resized(program, [(dimension, dimension.size * factor)])
            check(larger)
        except ProgramError:
            continue
        inputs = sum(var.type.nbytes for var in larger.block.params)
        if named_bytes(larger) >= least and (best is None or inputs < best[0]):
            best = inputs, larger
    if best is None:
        raise ProgramError("no dimension of this program makes what it offloads larger")
    return best[1]
