"""Which integers of a loop's body count with it: forwards, or backwards from the last."""

from __future__ import annotations

from enum import Enum
from typing import Final

from reducer.ir.equations import Arg, Block, Lit, Op
from reducer.ir.types import Type


class Index(Enum):
    """How an index moves while the loop runs through an array: from 0 upwards, or from length - 1 downwards."""

    FORWARD = "forward"
    BACKWARD = "backward"
    #: A loop that runs once needs no counter: 0 is the index either way.
    BOTH = "both"

    @classmethod
    def of_constant(cls, start: Lit, length: int) -> Index | None:
        """How a constant moves: it is an index of the only slice."""
        return cls.BOTH if length == 1 and start.value == "0" else None


#: a * i + b for a counter i.
_Linear = tuple[int, int]
_COMPARE: Final = {"lt", "le", "gt", "ge"}


def indices(body: Block, counter: int, start: int, length: int) -> dict[int, Index]:
    """The variables of the body that are indices of slices, with their direction."""
    known = _Walk(counter, start, length)
    for eqn in body.eqns:
        if isinstance(eqn, Op) and len(eqn.outs) == 1:
            known.visit(eqn)
    out: dict[int, Index] = {}
    for var, (a, b) in known.linear.items():
        if (a, b) == (1, -start):
            out[var] = Index.FORWARD
        elif (a, b) == (-1, start + length - 1):
            out[var] = Index.BACKWARD
        elif length == 1 and a * start + b == 0:
            out[var] = Index.BOTH
    return out


class _Walk:
    """What is known about the integers of a body, equation by equation."""

    def __init__(self, counter: int, start: int, length: int) -> None:
        self.linear: dict[int, _Linear] = {counter: (1, 0)}
        self.truth: dict[int, bool] = {}
        self.ends = (start, start + max(length, 1) - 1)

    def visit(self, op: Op) -> None:
        """Note what an equation computes, if it can be said."""
        out = op.outs[0]
        if op.primitive in _COMPARE:
            decided = self._compare(op)
            if decided is not None:
                self.truth[out.id] = decided
            return
        if not Type(out.type.dtype).integer or out.type.shape:
            return
        found = self._value(op)
        if found is not None:
            self.linear[out.id] = found

    def _of(self, arg: Arg) -> _Linear | None:
        if isinstance(arg, Lit):
            return (0, int(arg.value)) if Type(arg.dtype).integer else None
        return self.linear.get(arg)

    def _range(self, value: _Linear) -> tuple[int, int]:
        a, b = value
        first, last = (a * end + b for end in self.ends)
        return min(first, last), max(first, last)

    def _value(self, op: Op) -> _Linear | None:
        if op.primitive == "select_n" and isinstance(op.args[0], int) and op.args[0] in self.truth:
            return self._of(op.args[1 + self.truth[op.args[0]]]) if len(op.args) == 3 else None
        args = [self._of(arg) for arg in op.args]
        match op.primitive, args:
            case "add", [(a, b), (c, d)]:
                return a + c, b + d
            case "sub", [(a, b), (c, d)]:
                return a - c, b - d
            case "mul", [(0, b), (c, d)] | [(c, d), (0, b)]:
                return b * c, b * d
            case "neg", [(a, b)]:
                return -a, -b
            case "convert_element_type", [(a, b)]:
                return a, b
            case "max", [(a, b), (c, d)]:
                return self._larger((a, b), (c, d))
            case "min", [(a, b), (c, d)]:
                return self._smaller((a, b), (c, d))
            case "clamp", [(a, b), (c, d), (e, f)]:
                larger = self._larger((a, b), (c, d))
                return None if larger is None else self._smaller(larger, (e, f))
            case _:
                return None

    def _larger(self, x: _Linear, y: _Linear) -> _Linear | None:
        if self._range(x)[0] >= self._range(y)[1]:
            return x
        return y if self._range(y)[0] >= self._range(x)[1] else None

    def _smaller(self, x: _Linear, y: _Linear) -> _Linear | None:
        if self._range(x)[1] <= self._range(y)[0]:
            return x
        return y if self._range(y)[1] <= self._range(x)[0] else None

    def _compare(self, op: Op) -> bool | None:
        x, y = (self._of(arg) for arg in op.args)
        if x is None or y is None:
            return None
        if op.primitive in ("gt", "le"):
            # x > y is y < x, and x <= y is its opposite.
            x, y = y, x
        (low, high), (start, end) = self._range(x), self._range(y)
        less = True if high < start else False if low >= end else None
        if less is None:
            return None
        return less if op.primitive in ("lt", "gt") else not less
