"""From a plan to a program: the state, the stages, results and entries. Draws nothing."""

from __future__ import annotations

from typing import Final

from reducer.ir.build import Builder, lit
from reducer.ir.equations import Arg, Block, Entry, Grad, Program, Spec
from reducer.ir.types import Type
from strategies._regions import build
from strategies._scope import Scope, State
from strategies._trees import Plan, keeps_x_on_host

#: Rows of the host buffer in the state.
BUFFER_ROWS: Final = 4


def assemble(plan: Plan) -> Program:
    """The program of a plan."""
    scope = Scope(gradient=plan.gradient != "none")
    b = scope.b
    x = b.param(plan.x.in_memory("host" if keeps_x_on_host(plan.stages[0]) else "device"))
    # A carry on the host has no derivative in JAX either.
    state: State = {"x": scope.stopped(x) if b.type(x).on_host else x}
    for slot in plan.slots:
        match slot:
            case "y":
                state["y"] = b.param(plan.x)
            case "aux":
                state["aux"] = lit(0.0, "float32")
            case "buffer":
                state["count"] = lit(0, "int32")
                # JAX has no derivative of a slice of a host array.
                state["buffer"] = scope.stopped(b.param(plan.x.stacked(BUFFER_ROWS).in_memory("host")))
    for stage in plan.stages:
        state = build(stage, scope, state)
        scope.offered, scope.extras = scope.offered + scope.extras, []
    results = _program_results(plan, scope, state)
    block = b.block(*results)
    return _with_entries(plan, b, block)


def _program_results(plan: Plan, scope: Scope, state: State) -> list[Arg]:
    """The state without counters, then what no stage took; a gradient needs something on the device to sum."""
    b = scope.b
    x = scope.fit(state["x"], "device") if plan.gradient != "none" else state["x"]
    if plan.total:
        x = scope.fit(x, "device")
        x = b.op("reduce_sum", x, axes=tuple(range(b.type(x).rank)))
    rest = [v for slot, v in state.items() if slot not in ("x", "count") and isinstance(v, int)]
    return [x, *rest, *scope.offered]


def _with_entries(plan: Plan, b: Builder, block: Block) -> Program:
    gradient = None
    if plan.gradient != "none":
        argnums = _argnums(plan, block)
        gradient = Grad(argnums, plan.with_value)
    free = [b.type(r) for r in block.results] if gradient is None else []
    entries = []
    for var in block.params:
        donated = plan.donated and var.type in free
        if donated:
            free.remove(var.type)
        entries.append(Entry(_spec(plan, var.type), donated))
    inputs = tuple(entries) if any(e != Entry() for e in entries) else ()
    return Program(block=block, gradient=gradient, mesh=plan.mesh, inputs=inputs, meta=plan.meta)


def _argnums(plan: Plan, block: Block) -> tuple[int, ...]:
    inexact = [i for i, var in enumerate(block.params) if var.type.inexact]
    weights = [i for i in inexact if i > 0] or inexact
    match plan.gradient:
        case "x":
            return (0,)
        case "weights":
            return tuple(weights)
        case "first":
            return (weights[0],)
        case _:
            return tuple(inexact)


def _spec(plan: Plan, type_: Type) -> Spec | None:
    """FSDP-like: the last axis that divides is sharded over the first mesh axis asked for."""
    if plan.mesh is None or not plan.sharded:
        return None
    sizes = dict(plan.mesh.axes)
    spec: list[str | None] = [None] * type_.rank
    axes = list(plan.sharded)
    for i in reversed(range(type_.rank)):
        if axes and type_.shape[i] % sizes[axes[0]] == 0 and type_.shape[i] > 1:
            spec[i] = axes.pop(0)
    return tuple(spec)
