"""Blocks to the lines of Python functions.

Values used once are written where they are used, as long as the line stays short and the order of evaluation is
the order of the equations; everything else gets a name. With `typed` every equation gets a line of its own, the
place it came from as a comment, and a check of its traced type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reducer.errors import ProgramError
from reducer.ir.edit import uses
from reducer.ir.equations import Arg, Block, Cond, Equation, Fill, Lit, Op, Var
from reducer.ir.policies import Policy
from reducer.ir.types import Type
from reducer.ir.walk import Path, arg_type, args_of, path_text
from reducer.lowering import names, plain, regions, texts
from reducer.lowering.names import Scope
from reducer.lowering.texts import Expr
from reducer.lowering.writers import Operand

#: Longest expression that still takes in the values it uses.
_INLINE = 64

Value = Expr | Lit
Metadata = Mapping[str, str]


@dataclass(frozen=True)
class Context:
    """What all blocks of one text share. `policies`: the names of their constants; `differentiated`: by JAX."""

    typed: bool
    policies: Mapping[Policy, str] = field(default_factory=dict)
    differentiated: bool = False

    def scope(self, closed_over: Sequence[Value] = ()) -> Scope:
        """The names of a new function that uses some values of the functions around it."""
        taken = (value.text for value in closed_over if isinstance(value, Expr))
        return Scope((*taken, *self.policies.values()))


class Writer:
    """Writes the equations of one block as the body of one Python function."""

    def __init__(
        self,
        context: Context,
        block: Block,
        scope: Scope,
        values: Mapping[int, Value],
        path: Path = (),
        ambient: Metadata | None = None,
    ) -> None:
        self.context = context
        self.block = block
        self.scope = scope
        self.path = path
        #: Metadata in force where this block is traced, because an equation around it carries it.
        self.ambient: Metadata = dict(ambient or {})
        self.lines: list[str] = []
        self._values: dict[int, Value] = dict(values)
        self._types: dict[int, Type] = {var.id: var.type for var in block.params}
        self._uses = uses(block)
        #: Values not written yet, in order of evaluation: each used once, by something that follows.
        self._pending: dict[int, tuple[Equation, Expr]] = {}
        #: Constant arrays not written yet: they may be written anywhere.
        self._fills: dict[int, tuple[Fill, Expr]] = {}
        #: Indices of branches that are nothing but a predicate as an integer -> the predicate.
        self.predicates = _predicates(block, self._types, self._uses)
        self.index = 0

    @property
    def where(self) -> str:
        """Path of the equation being written, such as ``eqns[2].body.eqns[0]``."""
        own = f"eqns[{self.index}]"
        return f"{path_text(self.path)}.{own}" if self.path else own

    def write(self, results: Sequence[Arg] | None = None) -> list[Expr]:
        """Write every equation; returns the expressions of the results (of some of them, if given).

        Raises:
            ProgramError: an equation cannot be written; says which and where.
        """
        for index, eqn in enumerate(self.block.eqns):
            self.index = index
            try:
                self._equation(eqn)
            except ProgramError as error:
                if error.where:
                    raise
                raise ProgramError(error.message, where=self.where, hint=error.hint) from None
        wanted = self.block.results if results is None else results
        exprs = [op.value if isinstance(op.value, Expr) else Expr(op.typed) for op in self.operands(wanted)]
        self.flush()
        return exprs

    def type(self, arg: Arg) -> Type:
        """Type of a use."""
        try:
            return arg_type(arg, self._types)
        except KeyError:
            raise ProgramError(f"uses variable {arg}, which nothing before it binds") from None

    def result_type(self, arg: Arg) -> Type:
        """Type of a result of the block; can be asked before the block is written."""
        known = {var.id: var.type for eqn in self.block.eqns for var in eqn.outs} if isinstance(arg, int) else {}
        return arg_type(arg, self._types | known)

    def take(self, args: Sequence[Arg]) -> list[str]:
        """Texts of values as function arguments, in order of evaluation; scalars keep their dtype."""
        return [operand.typed for operand in self.operands(args)]

    def names(self, args: Sequence[Arg]) -> list[Value]:
        """Values a nested function closes over: names (or scalars), so whatever is pending is written first."""
        if args:
            self.flush()
        for arg in args:
            if isinstance(arg, int) and arg in self._fills:
                eqn, expr = self._fills.pop(arg)
                self._assign(eqn, expr)
        return [self._value(arg) for arg in args]

    def flush(self) -> None:
        """Give every pending value a name, in order."""
        for eqn, expr in self._pending.values():
            self._assign(eqn, expr)
        self._pending.clear()

    def _value(self, arg: Arg) -> Value:
        if isinstance(arg, Lit):
            texts.number(arg.value, arg.dtype)
            return arg
        self.type(arg)
        return self._values[arg]

    def operands(self, args: Sequence[Arg]) -> list[Operand]:
        """Resolve arguments, taking pending values in where that keeps the order of evaluation."""
        for arg in self._in_order(args):
            del self._pending[arg]
        return [Operand(self._value(arg), self.type(arg)) for arg in args]

    def _in_order(self, args: Sequence[Arg]) -> list[int]:
        """Those arguments that are pending; if they are not the last pending ones in order, all get names first."""
        wanted = [a for a in args if isinstance(a, int) and a in self._pending]
        if wanted != list(self._pending)[len(self._pending) - len(wanted) :]:
            self.flush()
            return []
        return wanted

    # -- equations ------------------------------------------------------------------------------------------------

    def _equation(self, eqn: Equation) -> None:
        if eqn.outs and eqn.outs[0].id in self.predicates:
            return
        if self.metadata(eqn):
            # What is written inside its `with` would carry its metadata.
            self.names(args_of(eqn))
        simple = plain.expression(self, eqn)
        if simple is None:
            regions.write(self, eqn)
            return
        taken = self._in_order(args_of(eqn))
        before = dict(self._pending)
        expr = simple()
        if taken and len(expr.text) > _INLINE:
            # Too much in one line: name the parts first. Taking them in had no other effect.
            self._pending = before
            self.flush()
            expr = simple()
        self.bind(eqn, expr)

    # -- binding --------------------------------------------------------------------------------------------------

    def bind(self, eqn: Equation, expr: Expr, *hints: str) -> None:
        """Bind the results of an equation to an expression: later, if one use is all they have, or now."""
        single = len(eqn.outs) == 1 and self._uses[eqn.outs[0].id] == 1
        if single and not self.context.typed and not eqn.metadata and plain.expression(self, eqn) is not None:
            (var,) = eqn.outs
            self._values[var.id] = expr
            self._types[var.id] = var.type
            if isinstance(eqn, Fill):
                self._fills[var.id] = (eqn, expr)
            else:
                self._pending[var.id] = (eqn, expr)
            return
        self.flush()
        self._assign(eqn, expr, hints)

    def _assign(self, eqn: Equation, expr: Expr, hints: Sequence[str] = ()) -> None:
        targets = self.targets(eqn.outs, hints or (names.hint(eqn),))
        self.statement(eqn, f"{texts.targets(targets)} = ", expr.text)

    def targets(self, outs: Sequence[Var], hints: Sequence[str] = ()) -> list[str]:
        """Fresh names for results, from now on their values."""
        padded = [*hints, *[""] * len(outs)]
        targets = []
        for var, hint in zip(outs, padded, strict=False):
            unused = not self._uses[var.id] and not self.context.typed
            name = "_" if unused else self.scope.variable(var.type, hint)
            self._values[var.id] = Expr(name)
            self._types[var.id] = var.type
            targets.append(name)
        return targets

    def define(self, var: Var, name: str) -> None:
        """Give a parameter a name."""
        self._values[var.id] = Expr(name)

    def bind_result(self, var: Var, result: Expr) -> None:
        """Make a value of an inlined block the value of one result of its equation."""
        self._types[var.id] = var.type
        if result.text.isidentifier():
            self._values[var.id] = result
        else:
            (target,) = self.targets((var,))
            self.lines.append(f"{target} = {result.text}")
        if self.context.typed:
            self.lines.append(self._check(var))

    def copy_hint(self, arg: Arg) -> str:
        """What to call this value in a nested function: its own name, without number or plural."""
        value = self._values.get(arg) if isinstance(arg, int) else None
        return names.stem(value.text) if isinstance(value, Expr) and value.text.isidentifier() else ""

    def statement(self, eqn: Equation, target: str, text: str) -> None:
        """Write ``target text`` under the metadata of the equation, with its checks."""
        metadata = self.metadata(eqn)
        indent = ""
        if metadata:
            shown = ", ".join(f"{texts.quote(k)}: {texts.attribute(v)}" for k, v in metadata.items())
            self.lines.append(f"with set_xla_metadata(**{{{shown}}}):")
            indent = "    "
        mark = f"  # {self.where}" if self.context.typed else ""
        self.lines.append(f"{indent}{target}{text}{mark}")
        if self.context.typed:
            self.lines += [self._check(var) for var in eqn.outs]

    def _check(self, var: Var) -> str:
        value, type_ = self._values[var.id], var.type
        assert isinstance(value, Expr)
        recorded = f"{type_.dtype}[{','.join(map(str, type_.shape))}]{'<host>' if type_.on_host else ''}"
        return f"check({texts.quote(self.where)}, {texts.quote(recorded)}, {value.text})"

    def metadata(self, eqn: Equation) -> dict[str, str | None]:
        """What must be set around an equation, given what is in force already.

        Everything traced inside a ``with`` carries its metadata. Only loops act on it, so only for loops it is
        taken back (None) where the IR has none.
        """
        own = dict(eqn.metadata)
        change: dict[str, str | None] = {k: v for k, v in own.items() if self.ambient.get(k) != v}
        if regions.is_loop(eqn):
            change |= dict.fromkeys(k for k in self.ambient if k not in own)
        return change

    def inside(self, eqn: Equation) -> dict[str, str]:
        """Metadata in force inside an equation."""
        merged = {**self.ambient, **self.metadata(eqn)}
        return {k: v for k, v in merged.items() if v is not None}


def _predicates(block: Block, types: Mapping[int, Type], uses: Mapping[int, int]) -> dict[int, int]:
    known = dict(types)
    converted: dict[int, int] = {}
    found: dict[int, int] = {}
    for eqn in block.eqns:
        match eqn:
            case Op(primitive="convert_element_type", args=(int(arg),), outs=(out,)):
                to_index = known.get(arg) == Type("bool") and out.type == Type("int32")
                if to_index and uses[out.id] == 1 and not eqn.metadata:
                    converted[out.id] = arg
            case Cond(index=int(index), branches=(_, _)) if index in converted and index not in eqn.args:
                found[index] = converted[index]
        known |= {var.id: var.type for var in eqn.outs}
    return found
