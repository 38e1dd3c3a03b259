"""jaxpr -> `Block`: equation by equation, calls inlined, constants hoisted.

A block of the IR is closed and knows no constant arrays, so an array that a nested jaxpr closes over becomes a
parameter of its block, an argument of the enclosing equation, and so on outwards, until it is an input of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from reducer.errors import ProgramError
from reducer.ir.equations import Arg, Block, Lit, Mesh, Metadata, Name, Op, Var
from reducer.ir.rules import RULES
from reducer.lowering.capture import versions
from reducer.lowering.capture.attributes import attributes
from reducer.lowering.capture.decisions import Decisions
from reducer.lowering.capture.frame import Frame, type_of
from reducer.lowering.table import TABLE

Rules = Literal["keep", "inline"]

#: Equations without results that only print.
_PRINTS: Final = frozenset(("debug_callback", "debug_print"))


#: Primitives that no public function binds -> the one that means and lowers to the same.
_RENAMED: Final = {"add_any": "add"}


#: Constants a block needs: (value, its JAX type).
Needs = list[tuple[Any, Any]]
Env = dict[Any, Arg]
#: (converter, frame, equation, its arguments, its result variables) -> the values of the results
Handler = Callable[["Converter", Frame, Any, tuple[Arg, ...]], Sequence[Arg]]
#: Equations with a body, and equations without one that are no plain `Op`.
REGIONS: Final[dict[str, Handler]] = {}
HANDLERS: Final[dict[str, Handler]] = {}


def handles(*primitives: str, table: dict[str, Handler] = HANDLERS) -> Callable[[Handler], Handler]:
    """Register a function for some primitives."""

    def register(handler: Handler) -> Handler:
        table.update(dict.fromkeys(primitives, handler))
        return handler

    return register


@dataclass
class Converter:
    """Converts jaxprs. `rules` says what becomes of custom derivative rules; `mesh` is the one mesh met so far."""

    rules: Rules = "keep"
    #: The program will be read and not compiled: it may differ where the IR cannot say what JAX says.
    only_read: bool = False
    mesh: Mesh | None = None
    #: > 0 inside a custom rule, where nested rules are never used: a program is differentiated once.
    in_rule: int = 0
    constants: dict[Any, Any] = field(default_factory=dict)
    #: The user's policy that is being recorded, and how many there were.
    deciding: Decisions | None = None
    decided: int = 0

    @contextmanager
    def under(self, deciding: Decisions | None) -> Iterator[None]:
        """Inside the body of a checkpoint with a policy to record, or (None) with another policy."""
        before, self.deciding = self.deciding, deciding
        try:
            yield
        finally:
            self.deciding = before

    def use_mesh(self, axes: Sequence[tuple[str, int]]) -> None:
        """Note the mesh of a sharding.

        Raises:
            ProgramError: another mesh was met before.
        """
        mesh = Mesh(tuple((str(name), int(size)) for name, size in axes))
        if self.mesh is not None and mesh != self.mesh:
            raise ProgramError(f"two meshes in one program: {self.mesh.axes} and {mesh.axes}")
        self.mesh = mesh

    @property
    def keeps_rules(self) -> bool:
        """False if custom derivative rules are never used: on request, and inside of rules."""
        return self.rules == "keep" and not self.in_rule

    @contextmanager
    def inside_rule(self) -> Iterator[None]:
        """While the blocks of a custom rule are converted."""
        self.in_rule += 1
        try:
            with self.under(None):
                yield
        finally:
            self.in_rule -= 1

    def frame(self, inherited: Mapping[str, str] | None = None) -> Frame:
        """A new block to fill."""
        return Frame(inherited or {}, constants=self.constants)

    def block(
        self,
        jaxpr: Any,
        inherited: Mapping[str, str],
        *,
        at: int | None = None,
        consts: Sequence[Any] | None = None,
        given: Sequence[Arg] = (),
        before: Sequence[Any] = (),
        complete: Callable[[Frame, list[Arg]], list[Arg]] | None = None,
    ) -> tuple[Block, Needs]:
        """A nested jaxpr as a block, and the constants that it needs as parameters.

        Args:
            jaxpr: open or closed.
            inherited: metadata of the enclosing equation.
            at: position of the parameters for constants; None: last.
            consts: constants of an open jaxpr.
            given: arguments for its first parameters, as the enclosing block has them: those that are scalars are
                written into the body, as JAX does with a scalar that a loop's body closes over.
            before: types of parameters in front of its own, which it does not use.
            complete: rewrites the results; may add equations.
        """
        inner, own = versions.open_jaxpr(jaxpr)
        frame = self.frame(inherited)
        constants, invars = versions.parameters(inner, own if consts is None else consts)
        env: Env = {v: arg for v, arg in zip(invars, given, strict=False) if isinstance(arg, Lit)}
        invars = [v for v in invars if v not in env]
        params = [frame.var(type_of(aval)) for aval in (*before, *(v.aval for v in invars))]
        env.update((v, p.id) for v, p in zip(invars, params[len(before) :], strict=True))
        env.update((var, frame.constant(value, var.aval)) for var, value in constants)
        results = self.inline(frame, inner, (), env)
        if complete is not None:
            results = complete(frame, results)
        extra = [var for _, _, var in frame.hoisted]
        at = len(params) if at is None else at
        block = Block((*params[:at], *extra, *params[at:]), tuple(frame.eqns), tuple(results))
        return block, [(value, aval) for value, aval, _ in frame.hoisted]

    def inline(self, frame: Frame, jaxpr: Any, consts: Sequence[Any], env: Env) -> list[Arg]:
        """Convert the equations of a jaxpr into a frame; `env` maps its parameters. Its results."""
        for var, value in zip(jaxpr.constvars, consts, strict=False):
            env[var] = frame.constant(value, var.aval)
        for eqn in jaxpr.eqns:
            self.equation(frame, eqn, env)
        return [self.read(frame, env, atom) for atom in jaxpr.outvars]

    def read(self, frame: Frame, env: Env, atom: Any) -> Arg:
        """The value of a use."""
        return frame.constant(atom.val, atom.aval) if versions.is_literal(atom) else env[atom]

    def equation(self, frame: Frame, eqn: Any, env: Env) -> None:
        """Convert one equation.

        Raises:
            ProgramError: "not expressible", with the equation and its place in the user's source.
        """
        try:
            if versions.compute_type_of(eqn) is not None:
                raise ProgramError(f"compute_on({versions.compute_type_of(eqn)!r})")
            if eqn.primitive.name in _PRINTS and not eqn.outvars:
                return
            args = tuple(self.read(frame, env, atom) for atom in eqn.invars)
            name = eqn.primitive.name
            region = REGIONS.get(name) or (inline_call if name in versions.CALLS else None)
            values = region(self, frame, eqn, args) if region else self._first_order(frame, eqn, args)
        except ProgramError as error:
            if error.message.startswith("not expressible"):
                raise
            raise _inexpressible(eqn, error.message, error.hint) from error
        except (AttributeError, KeyError) as error:
            # Parameters have other names in this version of JAX: of this operation we know nothing then.
            raise _inexpressible(eqn, f"unknown parameters ({error!r})", "") from error
        env.update(zip(eqn.outvars, values, strict=True))

    def _first_order(self, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
        """An equation without a body: an `Op` unless a handler knows better; named if a recorded policy keeps it."""
        values = HANDLERS.get(eqn.primitive.name, operation)(self, frame, eqn, args)
        name = self.deciding.ask(eqn) if self.deciding else None
        if name is None:
            return values
        kept = []
        for value, var in zip(values, eqn.outvars, strict=True):
            out = frame.var(type_of(var.aval))
            frame.add(Name(outs=(out,), arg=value, name=name))
            kept.append(out.id)
        return kept

    def metadata(self, frame: Frame, eqn: Any) -> tuple[Metadata, dict[str, str]]:
        """Metadata of an equation without what an enclosing one says already, and all of it for its body.

        A loop keeps all of it: the compiler acts on a loop's own, and a loop without is one that it may simplify.
        """
        found = versions.metadata_of(eqn)
        loop = eqn.primitive.name in ("scan", "while")
        own = {k: v for k, v in found.items() if loop or frame.inherited.get(k) != v}
        return tuple(sorted(own.items())), {**frame.inherited, **found}


def _inexpressible(eqn: Any, reason: str, hint: str) -> ProgramError:
    place = versions.place_of(eqn)
    message = f"not expressible: {_short(eqn)}{f' at {place}' if place else ''}: {reason}"
    return ProgramError(message, hint=hint or "reduce the lowered module instead: --tier stablehlo")


def _short(eqn: Any) -> str:
    outs = " ".join(str(v.aval.str_short()) if hasattr(v.aval, "str_short") else str(v.aval) for v in eqn.outvars)
    return f"{eqn.primitive.name} -> {outs or '()'}"


def outs_of(frame: Frame, eqn: Any) -> tuple[Var, ...]:
    """New variables for the results of an equation."""
    return tuple(frame.var(type_of(v.aval)) for v in eqn.outvars)


def ids(outs: Sequence[Var]) -> tuple[int, ...]:
    """The ids of variables."""
    return tuple(var.id for var in outs)


def inline_call(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    """The body of a call in the place of the call."""
    jaxpr, consts = versions.open_jaxpr(versions.body_of(eqn.params))
    return converter.inline(frame, jaxpr, consts, dict(zip(jaxpr.invars, args, strict=True)))


def operation(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    """An equation as the `Op` of its name.

    Raises:
        ProgramError: the IR has no such operation, or not with these parameters, or it has side effects.
    """
    name = _RENAMED.get(eqn.primitive.name, eqn.primitive.name)
    if name not in RULES and name not in TABLE:
        raise ProgramError("the IR has no such operation")
    # Which mesh axes a collective uses is an "effect" to JAX, but it is in its attributes already.
    effects = [e for e in eqn.effects if type(e).__name__ != "NamedAxisEffect"]
    if effects:
        raise ProgramError(f"side effects: {', '.join(map(str, effects))}")
    outs = outs_of(frame, eqn)
    types = [type_of(v.aval) for v in eqn.invars]
    found = attributes(name, eqn.params, types, [v.type for v in outs])
    metadata, _ = converter.metadata(frame, eqn)
    frame.add(Op(outs=outs, primitive=name, args=args, attributes=found, metadata=metadata))
    return ids(outs)
