"""From operations of a module to equations: one table, operation -> handler, and what handlers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from reducer.errors import ProgramError
from reducer.ir.equations import Arg, Lit, Mesh, Metadata
from reducer.ir.types import Type
from reducer.raising import attributes
from reducer.raising.constants import type_of
from reducer.raising.frame import Frame
from reducer.stablehlo.model import TERMINATORS, Block, Function, Module, Operation, attribute

HINT: Final = "reduce the module itself: --tier stablehlo"
#: Calls within calls, and regions within regions; and operations, after all calls are inlined.
MAX_DEPTH: Final = 100
MAX_OPERATIONS: Final = 200_000
#: Metadata that only loops act on; JAX writes it on everything that was traced under it.
_OF_LOOPS: Final = "skip-simplify-while-loops"
#: What custom calls say here is said by their equation's kind.
_PLACEMENT: Final = "_xla_buffer_placement"

#: (raiser, frame, operation) -> the values of its results
Handler = Callable[["Raiser", Frame, Operation], Sequence[Arg]]
HANDLERS: Final[dict[str, Handler]] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register a function for some operations."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


@dataclass
class Raiser:
    """Raises one module. `mesh`: its mesh without axes of one device, None if there are no others."""

    module: Module
    mesh: Mesh | None
    functions: dict[str, Function] = field(default_factory=dict)
    #: Constants that are no repeated scalar, in the order they were met: they become inputs.
    constants: dict[str, Type] = field(default_factory=dict)
    _place: list[str] = field(default_factory=list)
    _raised: int = 0

    def __post_init__(self) -> None:
        self.functions = {function.name: function for function in self.module.functions}

    def operations(self, frame: Frame, block: Block) -> list[Arg]:
        """Raise the operations of a block into a frame; what its terminator returns.

        Raises:
            ProgramError: "not expressible: ...", with the operation and its place.
        """
        for i, operation in enumerate(block.operations):
            if operation.name in TERMINATORS:
                return self.args(frame, operation)
            with self.at(f"operations[{i}]"):
                self._operation(frame, operation)
        raise ProgramError("not expressible: a block that returns nothing", where=".".join(self._place))

    def _operation(self, frame: Frame, operation: Operation) -> None:
        try:
            values = self._values(frame, operation)
        except ProgramError as error:
            if error.where:
                raise
            reason = error.message.removeprefix("not expressible: ")
            types = " ".join(value.type for value in operation.results) or "()"
            message = f"not expressible: {operation.name} -> {types:.200}: {reason}"
            raise ProgramError(message, where=".".join(self._place), hint=error.hint or HINT) from error
        frame.env.update(zip((value.number for value in operation.results), values, strict=True))

    def _values(self, frame: Frame, operation: Operation) -> Sequence[Arg]:
        self._raised += 1
        if self._raised > MAX_OPERATIONS:
            raise ProgramError(f"more than {MAX_OPERATIONS} operations, with calls inlined")
        handler = HANDLERS.get(operation.name)
        if handler is None:
            raise ProgramError("the IR has no such operation")
        try:
            return handler(self, frame, operation)
        except (ValueError, LookupError, TypeError) as error:
            # Attributes are text from a file, of some version: what reads otherwise than we know is not understood.
            raise ProgramError(f"its attributes are not understood ({type(error).__name__}: {error!s:.80})") from error

    @contextmanager
    def at(self, part: str) -> Iterator[None]:
        """One step deeper, for messages."""
        if len(self._place) >= MAX_DEPTH:
            raise ProgramError("not expressible: calls and regions are nested too deep", where=".".join(self._place))
        self._place.append(part)
        try:
            yield
        finally:
            self._place.pop()

    def args(self, frame: Frame, operation: Operation) -> list[Arg]:
        """The operands."""
        return [frame.read(value.number) for value in operation.operands]

    def inline(self, frame: Frame, block: Block, args: Iterable[Arg]) -> list[Arg]:
        """A block in the place of its use."""
        frame.env.update((p.number, arg) for p, arg in zip(block.params, args, strict=True))
        return self.operations(frame, block)

    def region(self, frame: Frame, block: Block, name: str) -> tuple[Frame, list[Arg]]:
        """A region as a block of its own."""
        inner = Frame(parent=frame)
        for param in block.params:
            inner.param(param.number, type_of(param))
        with self.at(name):
            return inner, self.operations(inner, block)

    def constant(self, frame: Frame, text: str, type_: Type) -> Arg:
        """An array of different elements: an input of the program, one for each content."""
        key = f"constant {text}"
        if key not in self.constants:
            root = frame
            while root.parent is not None:
                root = root.parent
            # Not among its parameters yet: those come last.
            root.env[key] = root.var(type_).id
            self.constants[key] = type_
        return frame.read(key)


def metadata(operation: Operation, *, loop: bool = False) -> Metadata:
    """The XLA metadata of an operation, without what has no effect on it."""
    found = attributes.frontend(operation.attributes)
    return tuple(sorted((k, v) for k, v in found.items() if k != _PLACEMENT and (loop or not k.startswith(_OF_LOOPS))))


def placement(operation: Operation) -> str | None:
    """The memory kind a value is moved to."""
    return attributes.frontend(operation.attributes).get(_PLACEMENT)


def outs_of(operation: Operation) -> list[Type]:
    """Types of the results."""
    return [type_of(value) for value in operation.results]


def out_of(operation: Operation) -> Type:
    """The type of the only result.

    Raises:
        ProgramError: there is not just one.
    """
    types = outs_of(operation)
    if len(types) != 1:
        raise ProgramError(f"{len(types)} results")
    return types[0]


def only(operation: Operation, name: str, *allowed: str) -> None:
    """Refuse an attribute with any other value than these; it may be absent.

    Raises:
        ProgramError: it has another one.
    """
    text = attribute(operation.attributes, name)
    if text is not None and text not in allowed:
        raise ProgramError(f"{name} is {text:.80}")


def is_zero(arg: Arg) -> bool:
    """True for the scalar zero."""
    return isinstance(arg, Lit) and arg.value in ("0", "0.0", "False")
