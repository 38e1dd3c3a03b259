"""A block under construction, in which values of the blocks around it may be read: they become its parameters.

StableHLO's regions see what is around them, the blocks of the IR do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from reducer.errors import ProgramError
from reducer.ir.equations import Arg, Attr, Block, Equation, Fill, Lit, Metadata, Op, Var
from reducer.ir.types import Type
from reducer.ir.walk import arg_type

#: A value of the module by its number, or a constant that becomes an input by its text.
Key = int | str


@dataclass
class Frame:
    """One block under construction. All values are on the device here; `memory` decides about that later."""

    parent: Frame | None = None
    env: dict[Key, Arg] = field(default_factory=dict)
    params: list[Var] = field(default_factory=list)
    eqns: list[Equation] = field(default_factory=list)
    types: dict[int, Type] = field(default_factory=dict)
    #: What was read from around: the value there, and the parameter for it here.
    captured: dict[Arg, Var] = field(default_factory=dict)
    #: The scalar that a variable repeats in all its elements.
    scalars: dict[int, Arg] = field(default_factory=dict)
    made_by: dict[int, Equation] = field(default_factory=dict)
    ids: Iterator[int] = field(default_factory=count)

    def var(self, type_: Type) -> Var:
        """A new variable."""
        var = Var(next(self.ids), type_)
        self.types[var.id] = type_
        return var

    def param(self, key: Key, type_: Type) -> Var:
        """A new parameter, which stands for a value of the module."""
        var = self.var(type_)
        self.params.append(var)
        self.env[key] = var.id
        return var

    def read(self, key: Key) -> Arg:
        """The value of a use.

        Raises:
            ProgramError: it is not in scope.
        """
        found = self.env.get(key)
        if found is None:
            if self.parent is None:
                raise ProgramError(f"not expressible: the value %{key} is used outside its scope")
            found = self.parent.read(key)
            if isinstance(found, int):
                if found not in self.captured:
                    self.captured[found] = self.var(self.parent.types[found])
                found = self.captured[found].id
            self.env[key] = found
        return found

    def type(self, arg: Arg) -> Type:
        """The type of a use."""
        return arg_type(arg, self.types)

    def add(self, eqn: Equation) -> tuple[int, ...]:
        """Append an equation; the ids of its results."""
        self.eqns.append(eqn)
        self.made_by.update((var.id, eqn) for var in eqn.outs)
        return tuple(var.id for var in eqn.outs)

    def ops(
        self, primitive: str, args: Sequence[Arg], to: Sequence[Type], metadata: Metadata = (), **attributes: Attr
    ) -> tuple[int, ...]:
        """A primitive; attributes that are None are left out."""
        kept = tuple(sorted((k, v) for k, v in attributes.items() if v is not None))
        outs = tuple(map(self.var, to))
        return self.add(Op(outs=outs, primitive=primitive, args=tuple(args), attributes=kept, metadata=metadata))

    def op(self, primitive: str, args: Sequence[Arg], to: Type, metadata: Metadata = (), **attributes: Attr) -> int:
        """A primitive with one result."""
        return self.ops(primitive, args, (to,), metadata, **attributes)[0]

    def fill(self, type_: Type, value: str) -> Arg:
        """A constant: a scalar, or an array of one repeated value."""
        if not type_.shape:
            return Lit(type_.dtype, value)
        (out,) = self.add(Fill(outs=(self.var(type_),), value=value))
        self.scalars[out] = Lit(type_.dtype, value)
        return out

    def block(self, results: Sequence[Arg], before: Sequence[Var] = (), behind: Sequence[Var] = ()) -> Block:
        """The finished block, with parameters for what it captured before or behind its own."""
        return Block((*before, *self.params, *behind), tuple(self.eqns), tuple(results))


def reshaped(frame: Frame, arg: Arg, out: Type) -> Arg:
    """A value in another shape."""
    scalar = frame.scalars.get(arg) if isinstance(arg, int) else arg
    if frame.type(arg) == out:
        return arg
    if isinstance(scalar, Lit):
        return frame.fill(out, scalar.value)
    return frame.op("reshape", (arg,), out)
