"""Dead code elimination across all blocks of a program at once.

What lives is marked from the results by one worklist over the variables of every block, in time linear in the size of
the program; then the blocks are rebuilt with what lives. A carry of a loop is one unit (initial value, parameter, the
body's result, the loop's result): marking any of the last three marks it, so no fixpoint per loop is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

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
    Scan,
    ShardMap,
    Var,
    While,
)
from reducer.ir.walk import args_of, children, with_args, with_children

_replace = msgspec.structs.replace
_REGIONS: Final = (Scan, While, Cond, Checkpoint, Call, ShardMap)
_T = TypeVar("_T")


def without_dead_code(block: Block) -> Block:
    """The block with the same parameters and results, without what does not matter to them, numbered from 0."""
    scope = _Scope(block, None, -1, "")
    _Liveness().run(scope)
    return _rebuild(scope, range(len(block.params)), range(len(block.results)))


class _Scope:
    """One block with what is known of it: where each variable is bound, and which are live."""

    __slots__ = ("block", "bound", "carries", "field", "kids", "live", "parent", "position")

    def __init__(self, block: Block, parent: _Scope | None, position: int, field: str) -> None:
        self.block, self.parent, self.position, self.field = block, parent, position, field
        self.bound = {var.id: (-1, k) for k, var in enumerate(block.params)}
        self.live: set[int] = set()
        #: Live carries, as (equation, number of the carry).
        self.carries: set[tuple[int, int]] = set()
        self.kids: dict[int, dict[str, _Scope]] = {}
        for i, eqn in enumerate(block.eqns):
            self.bound.update((var.id, (i, k)) for k, var in enumerate(eqn.outs))
            nested = children(eqn)
            if nested:
                self.kids[i] = {name: _Scope(child, self, i, name) for name, child in nested}


class _Liveness:
    """Marks live variables by a worklist over all blocks at once: linear, and no fixpoint per loop is needed."""

    def __init__(self) -> None:
        self.work: list[tuple[_Scope, int]] = []

    def run(self, top: _Scope) -> None:
        """Mark everything that the results of the outermost block need."""
        self.use(top, top.block.results)
        while self.work:
            scope, i = self.work.pop()
            position, k = scope.bound[i]
            if position >= 0:
                self.result(scope, position, k)
            elif scope.parent is not None:
                self.parameter(scope.parent, scope.position, scope.field, k)

    def use(self, scope: _Scope, args: Iterable[Arg]) -> None:
        """These values of a block are needed."""
        for arg in args:
            if isinstance(arg, int) and arg not in scope.live:
                scope.live.add(arg)
                self.work.append((scope, arg))

    def result(self, scope: _Scope, i: int, k: int) -> None:
        """Result `k` of equation `i` is needed."""
        eqn = scope.block.eqns[i]
        match eqn:
            case Scan(carry=carry) if k < len(carry):
                self.carry(scope, i, k)
            case Scan() | Checkpoint() | Call() | ShardMap():
                self.use(scope.kids[i]["body"], (eqn.body.results[k],))
            case While():
                self.use(scope.kids[i]["cond"], eqn.cond.results)
                self.carry(scope, i, k)
            case Cond(index=index):
                self.use(scope, (index,))
                for kid in scope.kids[i].values():
                    self.use(kid, (kid.block.results[k],))
            case _:
                # A custom rule keeps all results of its blocks: they have to agree with each other.
                self.use(scope, args_of(eqn))
                for kid in scope.kids.get(i, {}).values():
                    self.use(kid, kid.block.results)

    def parameter(self, scope: _Scope, i: int, field: str, k: int) -> None:
        """Parameter `k` of a block of equation `i` is needed."""
        eqn = scope.block.eqns[i]
        match eqn:
            case Scan(consts=consts, carry=carry, xs=xs):
                n, m = len(consts), len(consts) + len(carry)
                if n <= k < m:
                    self.carry(scope, i, k - n)
                else:
                    self.use(scope, (consts[k] if k < n else xs[k - m],))
            case While(cond_consts=cc, body_consts=bc):
                consts = cc if field == "cond" else bc
                if k < len(consts):
                    self.use(scope, (consts[k],))
                else:
                    self.carry(scope, i, k - len(consts))
            case Cond(args=args) | Checkpoint(args=args) | Call(args=args) | ShardMap(args=args):
                self.use(scope, (args[k],))
            case _:
                pass  # a custom rule: all its arguments are live already

    def carry(self, scope: _Scope, i: int, k: int) -> None:
        """Carry `k` of loop `i` is needed: its initial value, and what the body makes of it."""
        eqn = scope.block.eqns[i]
        assert isinstance(eqn, Scan | While)
        if (i, k) not in scope.carries:
            scope.carries.add((i, k))
            self.use(scope, (eqn.carry[k],))
            self.use(scope.kids[i]["body"], (eqn.body.results[k],))


def _rebuild(scope: _Scope, params: Iterable[int], results: Iterable[int]) -> Block:
    """The block with these parameters and results and what is live, its variables numbered from 0."""
    block = scope.block
    renamed: dict[int, int] = {}

    def bind(variables: Iterable[Var]) -> tuple[Var, ...]:
        out = []
        for var in variables:
            renamed[var.id] = len(renamed)
            out.append(Var(renamed[var.id], var.type))
        return tuple(out)

    def sub(arg: Arg) -> Arg:
        return renamed[arg] if isinstance(arg, int) else arg

    new_params = bind(block.params[k] for k in params)
    eqns: list[Equation] = []
    for i, eqn in enumerate(block.eqns):
        if not any(var.id in scope.live for var in eqn.outs):
            continue
        if isinstance(eqn, _REGIONS):
            eqn = _pruned(scope, i)
        elif isinstance(eqn, CustomVjp | CustomJvp):
            kids = {
                f: _rebuild(s, range(len(s.block.params)), range(len(s.block.results)))
                for f, s in scope.kids[i].items()
            }
            eqn = with_children(eqn, kids)
        eqn = with_args(eqn, tuple(map(sub, args_of(eqn))))
        eqns.append(_replace(eqn, outs=bind(eqn.outs)))
    return Block(new_params, tuple(eqns), tuple(sub(block.results[k]) for k in results))


def _pruned(scope: _Scope, i: int) -> Equation:
    """A live region without its dead results, carries, arguments and parameters."""
    eqn = scope.block.eqns[i]
    kids = scope.kids[i]
    live_outs = [k for k, var in enumerate(eqn.outs) if var.id in scope.live]

    def used(field: str, positions: Iterable[int]) -> list[int]:
        kid = kids[field]
        return [k for k in positions if kid.block.params[k].id in kid.live]

    match eqn:
        case Scan(consts=consts, carry=carry, xs=xs):
            n, m = len(consts), len(consts) + len(carry)
            carries = [k for k in range(len(carry)) if (i, k) in scope.carries]
            ys = [k for k in live_outs if k >= len(carry)]
            cs, xk = used("body", range(n)), used("body", range(m, m + len(xs)))
            return _replace(
                eqn,
                outs=_pick(eqn.outs, carries + ys),
                consts=_pick(consts, cs),
                carry=_pick(carry, carries),
                xs=tuple(xs[k - m] for k in xk),
                body=_rebuild(kids["body"], [*cs, *(n + k for k in carries), *xk], carries + ys),
            )
        case While(cond_consts=cc, body_consts=bc, carry=carry):
            carries = [k for k in range(len(carry)) if (i, k) in scope.carries]
            ck, bk = used("cond", range(len(cc))), used("body", range(len(bc)))
            return _replace(
                eqn,
                outs=_pick(eqn.outs, carries),
                cond_consts=_pick(cc, ck),
                body_consts=_pick(bc, bk),
                carry=_pick(carry, carries),
                cond=_rebuild(kids["cond"], [*ck, *(len(cc) + k for k in carries)], [0]),
                body=_rebuild(kids["body"], [*bk, *(len(bc) + k for k in carries)], carries),
            )
        case Cond(args=args) | Checkpoint(args=args) | Call(args=args) | ShardMap(args=args):
            keep = sorted({k for field in kids for k in used(field, range(len(args)))})
            eqn = _replace(eqn, outs=_pick(eqn.outs, live_outs), args=_pick(args, keep))
            if isinstance(eqn, ShardMap):
                specs = {"in_specs": _pick(eqn.in_specs, keep), "out_specs": _pick(eqn.out_specs, live_outs)}
                eqn = _replace(eqn, **specs)
            return with_children(eqn, {field: _rebuild(kid, keep, live_outs) for field, kid in kids.items()})
        case _:
            raise AssertionError(f"not a region: {eqn}")


def _pick(items: tuple[_T, ...], positions: Iterable[int]) -> tuple[_T, ...]:
    return tuple(items[k] for k in positions)


__all__ = ["without_dead_code"]
