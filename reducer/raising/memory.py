"""Which memory each value lies in: StableHLO's types do not say, so it follows from where values are moved.

A value stays where it was put until something moves it; a loop's carry lies on the host if that is where its body
leaves it. The IR allows no operation between the two memories. Where a module has one, a transfer is put before it:
to the host for the array that a slice on the host is written into, to the device for everything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import msgspec

from reducer.ir import rules
from reducer.ir.equations import (
    Arg,
    Block,
    Cond,
    Equation,
    Fill,
    Op,
    Scan,
    ShardingConstraint,
    ShardMap,
    Transfer,
    Var,
    While,
)
from reducer.ir.types import Memory, Type
from reducer.ir.walk import arg_type, args_of, bindings, with_args

_replace = msgspec.structs.replace


def placed(block: Block, inputs: Sequence[Memory], results: Sequence[Memory | None]) -> Block:
    """The block with the memory of every value in its type.

    Args:
        block: all of it on the device.
        inputs: memory of each parameter.
        results: memory that is asked of each result; None: wherever it is.
    """
    return _Block(block, inputs).finished(results)


class _Block:
    """One block whose parameters lie in the given memories."""

    def __init__(self, block: Block, inputs: Sequence[Memory]) -> None:
        self.params = tuple(Var(p.id, p.type.in_memory(m)) for p, m in zip(block.params, inputs, strict=True))
        self.types: dict[int, Type] = {p.id: p.type for p in self.params}
        self.ids: Iterator[int] = count(max((var.id for var in bindings(block)), default=-1) + 1)
        self.renamed: dict[int, Arg] = {}
        self.eqns: list[Equation] = []
        for eqn in block.eqns:
            self._equation(with_args(eqn, tuple(self._renamed(arg) for arg in args_of(eqn))))
        self.results: tuple[Arg, ...] = tuple(map(self._renamed, block.results))

    @property
    def memories(self) -> tuple[Memory, ...]:
        """Where the results lie."""
        return tuple(self.type(r).memory for r in self.results)

    def finished(self, wanted: Sequence[Memory | None]) -> Block:
        """The block, with its results where they are wanted."""
        results = tuple(r if m is None else self._moved(r, m) for r, m in zip(self.results, wanted, strict=True))
        return Block(self.params, tuple(self.eqns), results)

    def type(self, arg: Arg) -> Type:
        """The type of a use."""
        return arg_type(arg, self.types)

    def _renamed(self, arg: Arg) -> Arg:
        return self.renamed.get(arg, arg) if isinstance(arg, int) else arg

    def _moved(self, arg: Arg, memory: Memory) -> Arg:
        type_ = self.type(arg)
        if type_.memory == memory:
            return arg
        out = Var(next(self.ids), type_.in_memory(memory))
        self._add(Transfer(outs=(out,), arg=arg, memory=memory))
        return out.id

    def _add(self, eqn: Equation) -> None:
        self.types.update((var.id, var.type) for var in eqn.outs)
        self.eqns.append(eqn)

    def _memories(self, args: Sequence[Arg]) -> list[Memory]:
        return [self.type(arg).memory for arg in args]

    def _outs(self, eqn: Equation, memories: Sequence[Memory]) -> tuple[Var, ...]:
        return tuple(Var(v.id, v.type.in_memory(m)) for v, m in zip(eqn.outs, memories, strict=True))

    def _equation(self, eqn: Equation) -> None:
        match eqn:
            case Op():
                self._op(eqn)
            case Fill():
                self._add(eqn)
            case Transfer(arg=arg, memory=memory):
                if memory == "host" and self.type(arg).on_host:
                    self.renamed[eqn.outs[0].id] = arg
                else:
                    self._add(_replace(eqn, outs=self._outs(eqn, (memory,))))
            case ShardingConstraint(arg=arg):
                self._add(_replace(eqn, outs=self._outs(eqn, self._memories((arg,)))))
            case Scan():
                self._scan(eqn)
            case While():
                self._while(eqn)
            case Cond():
                self._cond(eqn)
            case ShardMap(args=args):
                inner = _Block(eqn.body, self._memories(args))
                outs = self._outs(eqn, inner.memories)
                self._add(_replace(eqn, outs=outs, body=inner.finished((None,) * len(outs))))
            case _:
                raise AssertionError(f"nothing raises {type(eqn).__name__}")

    def _op(self, eqn: Op) -> None:
        if eqn.primitive in rules.ANY_MEMORY:
            self._add(_replace(eqn, outs=self._outs(eqn, self._memories(eqn.args))))
            return
        args = self._together(eqn)
        types = tuple(map(self.type, args))
        if eqn.primitive in rules.RULES:
            inferred = rules.infer(eqn.primitive, types, dict(eqn.attributes), tuple(v.type for v in eqn.outs))
            memories = [t.memory for t in inferred]
        else:
            memories = [rules.memory_of(types)] * len(eqn.outs)
        self._add(_replace(eqn, args=args, outs=self._outs(eqn, memories)))

    def _together(self, eqn: Op) -> tuple[Arg, ...]:
        """The arguments, moved so that they lie in one memory; scalars on the device go along with any array."""
        types = [self.type(arg) for arg in eqn.args]
        arrays = {t.memory for t in types if t.shape} or {t.memory for t in types}
        if len(arrays) == 1 and not ("device" in arrays and any(t.on_host for t in types)):
            return eqn.args
        if eqn.primitive == "dynamic_update_slice" and any(t.on_host for t in types[:2]):
            return (*(self._moved(arg, "host") for arg in eqn.args[:2]), *self._on_device(eqn.args[2:]))
        return self._on_device(eqn.args)

    def _on_device(self, args: Sequence[Arg]) -> tuple[Arg, ...]:
        return tuple(self._moved(arg, "device") for arg in args)

    def _scan(self, eqn: Scan) -> None:
        consts, xs = self._memories(eqn.consts), self._memories(eqn.xs)
        n = len(eqn.carry)
        memories = self._memories(eqn.carry)
        inner = _Block(eqn.body, (*consts, *memories, *xs))
        while (wider := _wider(memories, inner.memories[:n])) != memories:
            memories = wider
            inner = _Block(eqn.body, (*consts, *memories, *xs))
        carry = tuple(self._moved(arg, m) for arg, m in zip(eqn.carry, memories, strict=True))
        stacked = inner.memories[n:]
        body = inner.finished((*memories, *(None for _ in stacked)))
        self._add(_replace(eqn, outs=self._outs(eqn, (*memories, *stacked)), carry=carry, body=body))

    def _while(self, eqn: While) -> None:
        consts = self._memories(eqn.body_consts)
        memories = self._memories(eqn.carry)
        inner = _Block(eqn.body, (*consts, *memories))
        while (wider := _wider(memories, inner.memories)) != memories:
            memories = wider
            inner = _Block(eqn.body, (*consts, *memories))
        carry = tuple(self._moved(arg, m) for arg, m in zip(eqn.carry, memories, strict=True))
        cond = placed(eqn.cond, (*self._memories(eqn.cond_consts), *memories), ("device",))
        body = inner.finished(memories)
        self._add(_replace(eqn, outs=self._outs(eqn, memories), carry=carry, cond=cond, body=body))

    def _cond(self, eqn: Cond) -> None:
        index = self._moved(eqn.index, "device")
        branches = [_Block(branch, self._memories(eqn.args)) for branch in eqn.branches]
        memories = list(branches[0].memories)
        for branch in branches[1:]:
            memories = _wider(memories, branch.memories)
        done = tuple(branch.finished(memories) for branch in branches)
        self._add(_replace(eqn, index=index, outs=self._outs(eqn, memories), branches=done))


def _wider(memories: Sequence[Memory], others: Sequence[Memory]) -> list[Memory]:
    """Where values lie that may come from either: on the host if one does."""
    return ["host" if "host" in pair else "device" for pair in zip(memories, others, strict=True)]
