"""Equations without blocks: each is an expression of the values it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from reducer.ir.equations import Equation, Fill, Name, Op, ShardingConstraint, Transfer
from reducer.lowering import table, texts
from reducer.lowering.texts import Expr, call
from reducer.lowering.writers import Use

if TYPE_CHECKING:
    from reducer.lowering.blocks import Writer


def expression(w: Writer, eqn: Equation) -> Callable[[], Expr] | None:
    """What writes the expression of an equation, taking in the values it uses; None if the equation holds blocks."""
    match eqn:
        case Op():
            return lambda: _op(w, eqn)
        case Fill():
            return lambda: _fill(eqn)
        case Name(arg=arg, name=name):
            return lambda: call("checkpoint_name", *w.take((arg,)), texts.quote(name))
        case Transfer():
            return lambda: _transfer(w, eqn)
        case ShardingConstraint(arg=arg, spec=spec):
            return lambda: call("lax.with_sharding_constraint", *w.take((arg,)), texts.spec(spec))
        case _:
            return None


def _transfer(w: Writer, eqn: Transfer) -> Expr:
    # Where a value that goes to the host comes from is what JAX has to be told to transpose the move.
    told = eqn.memory == "host" and w.context.differentiated and w.type(eqn.arg).inexact
    source = texts.space("device") if told else None
    return call("jax.device_put", *w.take((eqn.arg,)), texts.space(eqn.memory), src=source)


def _op(w: Writer, eqn: Op) -> Expr:
    outs = tuple(var.type for var in eqn.outs)
    return table.expression(Use(eqn.primitive, tuple(w.operands(eqn.args)), dict(eqn.attributes), outs))


def _fill(eqn: Fill) -> Expr:
    (var,) = eqn.outs
    expr = texts.fill(var.type, eqn.value)
    return call("jax.device_put", expr.text, texts.space("host")) if var.type.on_host else expr
