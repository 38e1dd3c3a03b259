"""A block under construction, with what a region collects on the way: weights it takes, extra results it gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from reducer.ir.build import Builder
from reducer.ir.equations import Arg, Block
from reducer.ir.types import Memory, Type

State = dict[str, Arg]


class Scope:
    """One block: the builder, the state, the weights (parameters made on demand) and the extra results."""

    def __init__(self, *, gradient: bool, manual: bool = False) -> None:
        self.b = Builder()
        self.gradient = gradient
        self.manual = manual
        self.weights: list[int] = []
        self.extras: list[int] = []
        #: At the top, results of earlier stages that a later one may take as weights.
        self.offered: list[int] = []
        self._streams: list[str] = []

    def region(self, state: State, *, manual: bool = False) -> tuple[Scope, State]:
        """A scope for a block inside, and the state as parameters of it."""
        inner = Scope(gradient=self.gradient, manual=self.manual or manual)
        return inner, {slot: inner.b.param(self.b.type(value)) for slot, value in state.items()}

    def fit(self, value: Arg, memory: Memory) -> Arg:
        """The value in that memory space, transferred if it is elsewhere."""
        if self.b.type(value).memory == memory:
            return value
        # A move to the host can be differentiated (JAX is told where the value comes from); none is drawn so far.
        return self.b.transfer(self.stopped(value) if memory == "host" else value, memory)

    def stopped(self, value: Arg) -> Arg:
        """The value, without a derivative if the program is differentiated."""
        if not self.gradient or not self.b.type(value).inexact:
            return value
        return self.b.op("stop_gradient", value)

    def weight(self, type_: Type) -> int:
        """A value from outside: a new parameter, or an earlier stage's result of that type."""
        if not self._streams or type_.on_host or not type_.inexact:
            return self._take(type_)
        stream = self._streams[-1]
        stored = type_.in_memory("host")
        if stream != "weights":
            stored = stored.with_dtype("bfloat16" if type_.dtype == "float32" else "float32")
        value = self._take(stored)
        # A scalar is cast on the device: JAX's derivative of a cast forgets where a scalar lives.
        early = stream == "cast-before" and type_.shape != ()
        if early:
            value = self.b.convert(value, type_.dtype)
        value = self.b.transfer(value, "device")
        return value if stream == "weights" or early else self.b.convert(value, type_.dtype)

    def _take(self, type_: Type) -> int:
        for value in self.offered:
            if self.b.type(value) == type_:
                self.offered.remove(value)
                stopped = self.stopped(value) if type_.on_host else value
                assert isinstance(stopped, int)
                return stopped
        value = self.b.param(type_)
        self.weights.append(value)
        return value

    @contextmanager
    def streaming(self, how: str) -> Iterator[None]:
        """Within: floating weights live on the host and are moved to the device where they are taken."""
        self._streams.append(how)
        yield
        self._streams.pop()

    def weight_types(self) -> list[Type]:
        """Types of the weights, in order."""
        return [self.b.type(w) for w in self.weights]

    def finish(self, state: State, *, weights_first: Sequence[int] = ()) -> Block:
        """The block: parameters `weights_first`, state, other weights; results state, extras."""
        block = self.b.block(*state.values(), *self.extras)
        by_id = {var.id: var for var in block.params}
        first = tuple(by_id[w] for w in weights_first)
        return msgspec.structs.replace(block, params=first + tuple(v for v in block.params if v not in first))
