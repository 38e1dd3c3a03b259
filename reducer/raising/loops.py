"""While loops with a counter become scans: what `lax.scan` and `lax.fori_loop` are lowered to, recognised again.

A counter starts at a constant, grows by one, and is compared with a constant. Then, with i counting from 0:

- an array that the body only reads by its slice i (or, backwards, length - 1 - i) along the first axis is an x,
- an array whose slice i the body writes, all of which get written in the end, is a y,
- what the body returns as it got it is a constant of the loop,
- everything else is carried, the counter too if something else needs its value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from reducer.ir.equations import Arg, Block, Equation, Lit, Op, Scan, Var, While
from reducer.ir.types import Type
from reducer.ir.walk import arg_type, args_of, fresh, substitute, types_of
from reducer.raising.linear import Index, indices

#: A longer loop would not be compiled either: a scan's length is a 32-bit integer.
MAX_LENGTH: Final = 2**31 - 1


@dataclass(frozen=True)
class Counted:
    """A loop as a scan, and the value of each result of the loop."""

    scan: Scan
    results: tuple[Arg, ...]


def counted(loop: While, types: Mapping[int, Type], new: Callable[[Type], Var]) -> Counted | None:
    """The scan that a loop is, or None if it has no counter.

    Args:
        loop: its results and arguments are variables of the block it stands in.
        types: of the variables of that block.
        new: makes a variable of that block.
    """
    loop = _without_scalar_constants(loop)
    found = _counter(loop)
    if found is None:
        return None
    at, start, length = found
    return _Loop(loop, at, start, length, types, new).scan()


def _without_scalar_constants(loop: While) -> While:
    """The loop with the scalars written into its blocks that it hands on unchanged."""
    nb, nc = len(loop.body_consts), len(loop.cond_consts)
    fixed = {
        i: arg
        for i, arg in enumerate(loop.carry)
        if isinstance(arg, Lit) and loop.body.results[i] == loop.body.params[nb + i].id
    }
    in_body = {loop.body.params[nb + i].id: arg for i, arg in fixed.items()}
    in_cond = {loop.cond.params[nc + i].id: arg for i, arg in fixed.items()}
    return msgspec.structs.replace(loop, body=substitute(loop.body, in_body), cond=substitute(loop.cond, in_cond))


def _counter(loop: While) -> tuple[int, int, int] | None:
    """Which carry counts, from where, and how often the body runs."""
    nb, nc = len(loop.body_consts), len(loop.cond_consts)
    (proceed,) = loop.cond.results
    test = _made_by(loop.cond).get(proceed) if isinstance(proceed, int) else None
    if not isinstance(test, Op) or test.primitive not in ("lt", "gt"):
        return None
    low, high = test.args if test.primitive == "lt" else reversed(test.args)
    position = {p.id: i - nc for i, p in enumerate(loop.cond.params)}
    at = position.get(low, -1) if isinstance(low, int) else -1
    if at < 0 or not isinstance(high, Lit) or not isinstance(start := loop.carry[at], Lit):
        return None
    param, result = loop.body.params[nb + at].id, loop.body.results[at]
    step = _made_by(loop.body).get(result) if isinstance(result, int) else None
    one = Lit(start.dtype, "1")
    if not isinstance(step, Op) or step.primitive != "add" or step.args not in ((param, one), (one, param)):
        return None
    if not Type(start.dtype).integer:
        return None
    length = max(0, int(high.value) - int(start.value))
    return (at, int(start.value), length) if length <= MAX_LENGTH else None


def _made_by(block: Block) -> dict[Arg, Equation]:
    return {var.id: eqn for eqn in block.eqns for var in eqn.outs}


class _Loop:
    """One loop while it is turned into a scan."""

    def __init__(
        self, loop: While, at: int, start: int, length: int, types: Mapping[int, Type], new: Callable[[Type], Var]
    ) -> None:
        self.loop, self.at, self.start, self.length = loop, at, start, length
        self.outer, self.new = types, new
        self.body = loop.body
        n = len(loop.body_consts)
        self.consts, self.carries = self.body.params[:n], self.body.params[n:]
        self.types = types_of(self.body)
        self.made_by = _made_by(self.body)
        self.uses: Counter[Arg] = Counter(a for eqn in self.body.eqns for a in args_of(eqn))
        self.uses.update(self.body.results)
        counter = self.carries[at].id
        self.indices = indices(self.body, counter, start, length)

    def scan(self) -> Counted:
        """The scan, and what each result of the loop is now."""
        fixed = [i for i, p in enumerate(self.carries) if self.body.results[i] == p.id]
        values: dict[int, Arg] = dict(zip((p.id for p in self.consts), self.loop.body_consts, strict=True))
        values |= {self.carries[i].id: self.loop.carry[i] for i in fixed}
        xs = {x: way for x, arg in values.items() if (way := self._sliced(x, arg, x not in self._ids(self.consts)))}
        ys = {i: found for i in range(len(self.carries)) if i not in fixed and (found := self._stacked(i))}
        backwards = self._backwards([*xs.values(), *(way for way, _ in ys.values())])
        kept = {True: Index.BACKWARD, False: Index.FORWARD}[backwards]
        xs = {x: way for x, way in xs.items() if way in (kept, Index.BOTH)}
        ys = {i: found for i, found in ys.items() if found[0] in (kept, Index.BOTH)}
        carried = [i for i in range(len(self.carries)) if i not in fixed and i not in ys]
        consts = [p for p in values if p not in xs and not isinstance(values[p], Lit)]
        body = self._rewritten(consts, carried, list(xs), {i: update for i, (_, update) in ys.items()})
        carry_outs = tuple(self.new(self.carries[i].type) for i in carried)
        stacks = {i: self.new(self.carries[i].type) for i in ys}
        scan = Scan(
            outs=(*carry_outs, *stacks.values()),
            length=self.length,
            body=body,
            consts=tuple(values[p] for p in consts),
            carry=tuple(self.loop.carry[i] for i in carried),
            xs=tuple(values[p] for p in xs),
            reverse=backwards,
            metadata=self.loop.metadata,
        )
        results: dict[int, Arg] = {i: self.loop.carry[i] for i in fixed}
        results |= {i: var.id for i, var in zip(carried, carry_outs, strict=True)}
        results |= {i: var.id for i, var in stacks.items()}
        counter = self.carries[self.at].type.dtype
        results[self.at] = Lit(counter, str(self.start + self.length))
        return Counted(scan, tuple(results[i] for i in range(len(self.carries))))

    @staticmethod
    def _ids(variables: tuple[Var, ...]) -> set[int]:
        return {var.id for var in variables}

    def _backwards(self, ways: list[Index]) -> bool:
        # A loop that reads both ways keeps the more frequent one; the others stay slices of a constant.
        return ways.count(Index.BACKWARD) > ways.count(Index.FORWARD)

    def _sliced(self, x: int, arg: Arg, carried: bool) -> Index | None:
        """How an array is read if it is read by slices only."""
        type_ = arg_type(arg, self.outer)
        if not type_.shape or type_.shape[0] != self.length:
            return None
        slices = [eqn for eqn in self.body.eqns if x in args_of(eqn)]
        ways = {self._way(eqn, type_) for eqn in slices if eqn.outs and args_of(eqn).count(x) == 1}
        returned = self.uses[x] - len(slices) - carried
        ways -= {Index.BOTH} if len(ways) > 1 else set()
        return ways.pop() if len(ways) == 1 and not returned else None

    def _way(self, eqn: Equation, whole: Type) -> Index | None:
        """Which slice along the first axis of its first argument an equation reads."""
        if not isinstance(eqn, Op) or eqn.primitive != "dynamic_slice" or eqn.metadata:
            return None
        if eqn.outs[0].type.shape != (1, *whole.shape[1:]):
            return None
        return self._index(eqn.args[1])

    def _index(self, start: Arg) -> Index | None:
        return self.indices.get(start) if isinstance(start, int) else Index.of_constant(start, self.length)

    def _stacked(self, i: int) -> tuple[Index, Arg] | None:
        """How a carry is written if that is all that happens to it, and the update."""
        param, result = self.carries[i], self.body.results[i]
        update = self.made_by.get(result)
        if not isinstance(update, Op) or update.primitive != "dynamic_update_slice" or update.args[0] != param.id:
            return None
        shape = param.type.shape
        if not shape or shape[0] != self.length or self.uses[param.id] != 1 or self.uses[result] != 1:
            return None
        if arg_type(update.args[1], self.types).shape != (1, *shape[1:]):
            return None
        way = self._index(update.args[2])
        return None if way is None else (way, update.args[1])

    def _rewritten(self, consts: list[int], carried: list[int], xs: list[int], ys: Mapping[int, Arg]) -> Block:
        """The body with slices for what it sliced, and updates for what it updated."""
        ids = fresh(self.body)
        slices: dict[Arg, Var] = {x: Var(next(ids), self.types[x].element) for x in xs}
        dropped = {self.body.results[i] for i in ys}
        eqns: list[Equation] = []
        renamed: dict[int, Arg] = {}
        whole: dict[Arg, Var] = {}
        for eqn in self.body.eqns:
            arg = eqn.args[0] if isinstance(eqn, Op) and eqn.args else -1
            if isinstance(eqn, Op) and eqn.primitive == "dynamic_slice" and arg in slices:
                whole[eqn.outs[0].id] = slices[arg]
                eqns.append(Op(outs=eqn.outs, primitive="reshape", args=(slices[arg].id,)))
            elif isinstance(eqn, Op) and eqn.primitive == "reshape" and arg in whole:
                if eqn.outs[0].type == whole[arg].type:
                    renamed[eqn.outs[0].id] = whole[arg].id
                else:
                    eqns.append(eqn)
            elif not any(var.id in dropped for var in eqn.outs):
                eqns.append(eqn)
        stacked = []
        for i, update in ys.items():
            value, more = self._element(update, self.carries[i].type.element, ids)
            eqns.extend(more)
            stacked.append(renamed.get(value, value) if isinstance(value, int) else value)
        body = substitute(Block((), tuple(eqns), (*(self.body.results[i] for i in carried), *stacked)), renamed)
        params = (
            *(Var(p, self.types[p]) for p in consts),
            *(self.carries[i] for i in carried),
            *slices.values(),
        )
        return Block(params, body.eqns, body.results)

    def _element(self, update: Arg, type_: Type, ids: Iterator[int]) -> tuple[Arg, list[Equation]]:
        """What was written, without the leading axis it got for that."""
        made = self.made_by.get(update)
        if isinstance(made, Op) and made.primitive in ("broadcast_in_dim", "reshape"):
            inside = made.args[0]
            dims = made.attr("broadcast_dimensions", tuple(range(1, type_.rank + 1)))
            if arg_type(inside, self.types) == type_ and tuple(dims) == tuple(range(1, type_.rank + 1)):
                return inside, []
        out = Var(next(ids), type_)
        return out.id, [Op(outs=(out,), primitive="reshape", args=(update,))]
