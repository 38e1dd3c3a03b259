"""A block under construction, and the small things that go into one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from reducer.errors import ProgramError
from reducer.ir.equations import Arg, Equation, Fill, Lit, Metadata, Transfer, Var
from reducer.ir.scalars import canonical_scalar
from reducer.ir.types import Memory, Type
from reducer.lowering.capture import versions


def type_of(aval: Any) -> Type:
    """The type of a JAX value.

    Raises:
        ProgramError: a dtype the IR does not know, or something that is no array (a mutable reference).
    """
    if not hasattr(aval, "shape") or not hasattr(aval, "dtype") or type(aval).__name__ == "AbstractRef":
        raise ProgramError(f"a value of type {aval} is no array")
    return Type(str(aval.dtype), tuple(int(n) for n in aval.shape), "host" if versions.on_host(aval) else "device")


def scalar_text(value: Any, dtype: str) -> str:
    """Canonical text of a scalar."""
    python = np.asarray(value).reshape(()).item()
    if not isinstance(python, bool | int | float | complex):  # ml_dtypes' scalars
        python = float(python)
    return canonical_scalar(repr(python), dtype)


@dataclass
class Frame:
    """One block under construction."""

    inherited: Mapping[str, str] = field(default_factory=dict)
    eqns: list[Equation] = field(default_factory=list)
    #: Constant arrays this block needs as parameters: value, its JAX type, the parameter.
    hoisted: list[tuple[Any, Any, Var]] = field(default_factory=list)
    ids: Iterator[int] = field(default_factory=count)
    #: All constant arrays of the program, one for each content.
    constants: dict[Any, Any] = field(default_factory=dict)
    #: Equation that bound a variable, for patterns that look one equation back.
    made_by: dict[int, Equation] = field(default_factory=dict)

    def var(self, type_: Type) -> Var:
        """A new variable."""
        return Var(next(self.ids), type_)

    def add(self, eqn: Equation) -> None:
        """Append an equation."""
        self.eqns.append(eqn)
        self.made_by.update((var.id, eqn) for var in eqn.outs)

    def constant(self, value: Any, aval: Any) -> Arg:
        """A captured constant: a scalar, an array of one repeated value, or else a parameter of the block."""
        type_ = type_of(aval)
        array = versions.scalar_value(value)
        if array is not None and array.size and not type_.on_host:
            first = array.reshape(-1)[0]
            # Compared as bytes: nan equals itself, and -0.0 is not 0.0.
            if array.size == 1 or array.tobytes() == first.tobytes() * array.size:
                text = scalar_text(first, type_.dtype)
                if not type_.shape:
                    return Lit(type_.dtype, text)
                out = self.var(type_)
                self.add(Fill(outs=(out,), value=text))
                return out.id
        value = self.constants.setdefault(versions.constant_key(value), value)
        for known, _, var in self.hoisted:
            if known is value:
                return var.id
        var = self.var(type_)
        self.hoisted.append((value, aval, var))
        return var.id


def zeros(frame: Frame, aval: Any) -> Arg:
    """Zero of a type.

    Raises:
        ProgramError: in host memory, or of a dtype without a zero.
    """
    type_ = type_of(aval)
    text = canonical_scalar("False" if type_.dtype == "bool" else "0" if type_.integer else "0.0", type_.dtype)
    if type_.on_host:
        raise ProgramError("an uninitialised array in host memory")
    if not type_.shape:
        return Lit(type_.dtype, text)
    out = frame.var(type_)
    frame.add(Fill(outs=(out,), value=text))
    return out.id


def transfer(frame: Frame, arg: Arg, type_: Type, memory: Memory, metadata: Metadata = ()) -> Arg:
    """A value of a type, moved."""
    out = frame.var(type_.in_memory(memory))
    frame.add(Transfer(outs=(out,), arg=arg, memory=memory, metadata=metadata))
    return out.id
