"""Moving an equation out of the region it stands in: after the region, or before it.

As in `edit`: well-typed results, nothing normalised. What is computed changes where a loop's carry is concerned (each
turn did it, now it is done once); a reduction asks whether that matters.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from reducer.errors import ProgramError
from reducer.ir.edit import uses
from reducer.ir.equations import Block, Call, Checkpoint, Equation, Name, Op, Scan, Var
from reducer.ir.walk import args_of, fresh, substitute, with_args

Region = Scan | Checkpoint | Call
_replace = msgspec.structs.replace


def movable(block: Block, i: int) -> Iterator[int]:
    """Positions in the body of the region at `i` of equations of one value to another of its type."""
    region = block.eqns[i]
    if not isinstance(region, Region):
        return
    types = {var.id: var.type for var in region.body.params}
    for j, eqn in enumerate(region.body.eqns):
        types.update((var.id, var.type) for var in eqn.outs)
        if isinstance(eqn, Name) or (isinstance(eqn, Op) and not eqn.attributes and len(eqn.args) == 1):
            (arg,) = args_of(eqn)
            if isinstance(arg, int) and types[arg] == eqn.outs[0].type:
                yield j


def moved_after(block: Block, i: int, j: int) -> Block:
    """Equation `j` of the region at `i` done to the region's result instead.

    Raises:
        ProgramError: what it computes is not a result of the region and nothing else.
    """
    region, eqn, arg = _parts(block, i, j)
    out = eqn.outs[0].id
    places = [k for k, result in enumerate(region.body.results) if result == out]
    if len(places) != 1 or uses(region.body)[out] != 1:
        raise ProgramError("it is not a result of the region and nothing else")
    (k,) = places
    results = (*region.body.results[:k], arg, *region.body.results[k + 1 :])
    body = Block(region.body.params, (*region.body.eqns[:j], *region.body.eqns[j + 1 :]), results)
    old = region.outs[k]
    inner = Var(next(fresh(block)), old.type)
    new = _replace(region, outs=(*region.outs[:k], inner, *region.outs[k + 1 :]), body=body)
    moved = with_args(_replace(eqn, outs=(old,)), (inner.id,))
    return Block(block.params, (*block.eqns[:i], new, moved, *block.eqns[i + 1 :]), block.results)


def moved_before(block: Block, i: int, j: int) -> Block:
    """Equation `j` of the region at `i` done to the region's argument instead.

    Raises:
        ProgramError: it does not use a parameter of the region that nothing else uses.
    """
    region, eqn, arg = _parts(block, i, j)
    places = [k for k, var in enumerate(region.body.params) if var.id == arg]
    if not places or uses(region.body)[arg] != 1:
        raise ProgramError("it does not use a parameter that nothing else uses")
    (k,) = places
    rest = Block(region.body.params, (*region.body.eqns[:j], *region.body.eqns[j + 1 :]), region.body.results)
    body = substitute(rest, {eqn.outs[0].id: arg})
    args = args_of(region)
    given = args[k]
    types = {var.id: var.type for var in block.params} | {v.id: v.type for e in block.eqns for v in e.outs}
    if not isinstance(given, int):
        raise ProgramError("the argument is a scalar")
    made = Var(next(fresh(block)), types[given])
    moved = with_args(_replace(eqn, outs=(made,)), (given,))
    new = with_args(_replace(region, body=body), (*args[:k], made.id, *args[k + 1 :]))
    return Block(block.params, (*block.eqns[:i], moved, new, *block.eqns[i + 1 :]), block.results)


def _parts(block: Block, i: int, j: int) -> tuple[Region, Equation, int]:
    region = block.eqns[i]
    if not isinstance(region, Region) or j not in movable(block, i):
        raise ProgramError("no region with such an equation")
    eqn = region.body.eqns[j]
    (arg,) = args_of(eqn)
    assert isinstance(arg, int)
    return region, eqn, arg


__all__ = ["movable", "moved_after", "moved_before"]
