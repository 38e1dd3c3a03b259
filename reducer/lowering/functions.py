"""Nested functions: a block of an equation becomes one, with names for what it takes, and is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from reducer.ir.equations import Block, Equation, Lit, Var
from reducer.lowering import names
from reducer.lowering.texts import Expr, returned, targets

if TYPE_CHECKING:
    from reducer.lowering.blocks import Value, Writer


def nested(w: Writer, eqn: Equation, block: Block, field: str, closed_over: Mapping[int, Value]) -> Writer:
    """A writer for a block of the equation; `closed_over` gives parameters that are values of this function."""
    scope = w.context.scope(tuple(closed_over.values()))
    path = (*w.path, (w.index, field))
    return type(w)(w.context, block, scope, closed_over, path, w.inside(eqn))


def define(w: Writer, name: str, params: Sequence[str], inner: Writer, result: str) -> None:
    """Write a function whose body `inner` has written, with a blank line around it unless a decorator is above."""
    body = [*inner.lines, f"return {result}"]
    if not w.lines[-1:] or not w.lines[-1].startswith("@"):
        separate(w)
    w.lines.append(f"def {name}({', '.join(params)}):")
    w.lines += [f"    {line}".rstrip() for line in body] + [""]


def separate(w: Writer) -> None:
    """Leave a blank line before a function."""
    if w.lines and w.lines[-1]:
        w.lines.append("")


def params_of(inner: Writer, params: Sequence[Var], hints: Sequence[str] = ()) -> list[str]:
    """Names for parameters of a nested function."""
    roles = names.roles(inner.block)
    out = []
    for i, var in enumerate(params):
        name = inner.scope.variable(var.type, hints[i] if i < len(hints) else "", roles.get(var.id, ""))
        inner.define(var, name)
        out.append(name)
    return out


def texts_of(exprs: Sequence[Expr]) -> list[str]:
    """The texts of expressions."""
    return [expr.text for expr in exprs]


def function_of(w: Writer, eqn: Equation, block: Block, field: str, hint: str, args: Sequence[int | Lit] = ()) -> str:
    """Define a function of a block's parameters; returns its name."""
    inner = nested(w, eqn, block, field, {})
    params = params_of(inner, block.params, [w.copy_hint(arg) for arg in args])
    result = returned(texts_of(inner.write()))
    name = w.scope.new(hint)
    define(w, name, params, inner, result)
    return name


def use(w: Writer, eqn: Equation, function: str, args: Sequence[int | Lit], *hints: str) -> None:
    """``y = function(args)``."""
    call = f"{function}({', '.join(w.take(args))})"
    w.flush()
    w.statement(eqn, f"{targets(w.targets(eqn.outs, hints))} = ", call)


def packed(inner: Writer, params: Sequence[Var], whole: str, hints: Sequence[str]) -> str:
    """One parameter that holds several values, which the first line of the function unpacks."""
    if not params:
        return "_"
    if len(params) == 1:
        return params_of(inner, params, hints)[0]
    name = inner.scope.new(whole)
    inner.lines.append(f"{targets(params_of(inner, params, hints))} = {name}")
    return name
