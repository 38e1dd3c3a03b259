"""What the table of primitives is made of: an equation as its writer sees it, and writers of the common forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from reducer.errors import ProgramError
from reducer.ir.equations import Lit
from reducer.ir.types import Type
from reducer.lowering import texts
from reducer.lowering.texts import ATOM, Expr, attribute, call

_INT32: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Operand:
    """One argument of an equation: text if it is a variable, the scalar itself if it is one, and its type."""

    value: Expr | Lit
    type: Type

    @property
    def typed(self) -> str:
        """As an argument of a function: a scalar keeps its dtype."""
        return texts.scalar(self.value).text if isinstance(self.value, Lit) else self.value.text

    @property
    def plain(self) -> Expr:
        """Beside an array of its dtype: a scalar is a Python number, whose dtype JAX takes from the array."""
        if not isinstance(self.value, Lit):
            return self.value
        # Python integers pass through a 32-bit one on their way.
        wide = self.type.integer and abs(int(self.value.value)) > _INT32
        return Expr(self.typed) if wide else texts.number(self.value.value, self.value.dtype)

    @property
    def atom(self) -> str:
        """Something a method can be called on."""
        return self.typed if isinstance(self.value, Lit) else self.value.within(ATOM)


@dataclass(frozen=True, slots=True)
class Use:
    """One equation as its writer sees it."""

    primitive: str
    args: tuple[Operand, ...]
    attributes: dict[str, Any]
    outs: tuple[Type, ...]

    @property
    def out(self) -> Type:
        """Type of the first result."""
        return self.outs[0]

    def attr(self, name: str) -> str | None:
        """Text of an attribute, None if it is absent or None (the default of every function used here)."""
        value = self.attributes.get(name)
        return None if value is None else attribute(value)

    def need(self, name: str) -> Any:
        """Value of an attribute that has no default.

        Raises:
            ProgramError: it is missing.
        """
        if name not in self.attributes:
            raise ProgramError(f"{self.primitive} needs the attribute {name!r}")
        return self.attributes[name]


Writer = Callable[[Use], Expr]


def registrar(table: dict[str, Writer]) -> Callable[..., Callable[[Writer], Writer]]:
    """A decorator that enters a writer into a table under the names of its primitives."""

    def register(*names: str) -> Callable[[Writer], Writer]:
        def add(writer: Writer) -> Writer:
            table.update(dict.fromkeys(names, writer))
            return writer

        return add

    return register


def arguments(use: Use, n: int) -> tuple[Operand, ...]:
    """The arguments, which must be `n`.

    Raises:
        ProgramError: they are not.
    """
    if len(use.args) != n:
        raise ProgramError(f"{use.primitive} takes {n} arguments, got {len(use.args)}")
    return use.args


def function(name: str, n: int, *attributes: str, **fixed: str) -> Writer:
    """``name(args, attribute=value)``, arguments and attributes in the order of the jaxpr, `fixed` as it is."""

    def write(use: Use) -> Expr:
        keywords = {a: use.attr(a) for a in attributes}
        return call(name, *(a.typed for a in arguments(use, n)), **keywords, **fixed)

    return write
