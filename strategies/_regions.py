"""From a tree of nodes to blocks of equations. Draws nothing; well-typed by construction."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from reducer.ir.build import lit
from reducer.ir.equations import BARRIER, Arg, Block, Op, Spec, Var
from reducer.ir.types import Type
from strategies._motifs import layer
from strategies._scope import Scope, State
from strategies._trees import (
    Branch,
    Constrain,
    Jit,
    Leaf,
    Loop,
    Move,
    Node,
    Remat,
    Seq,
    Shard,
    Update,
    keeps_x_on_host,
)

_INDEX: Final = Type("int32")


def build(node: Node, scope: Scope, state: State) -> State:
    """Append a node to the scope. x enters and leaves in the memory space the node keeps it in."""
    state = {**state, "x": scope.fit(state["x"], "host" if keeps_x_on_host(node) else "device")}
    match node:
        case Leaf():
            return {**state, "x": layer(scope, node, _id(state["x"]))}
        case Update():
            return _update(node, scope, state)
        case Seq(nodes=nodes):
            home = scope.b.type(state["x"]).memory
            for inner in nodes:
                state = build(inner, scope, state)
            return {**state, "x": scope.fit(state["x"], home)}
        case Loop(kind="scan"):
            return _scan(node, scope, state)
        case Loop(kind="map"):
            return _map(node, scope, state)
        case Loop():
            return _while(node, scope, state)
        case Remat(node=inner):
            add = partial(scope.b.checkpoint, policy=node.policy, prevent_cse=node.prevent_cse)
            return _region(inner, scope, state, add)
        case Jit(node=inner):
            return _region(inner, scope, state, scope.b.call)
        case Branch():
            return _branch(node, scope, state)
        case Shard():
            return _shard(node, scope, state)
        case Constrain(node=inner, spec=spec):
            value = state["x"]
            if not scope.manual and not scope.b.type(value).on_host:
                value = scope.b.constrain(value, spec[: scope.b.type(value).rank])
            return build(inner, scope, {**state, "x": value})
        case Move():
            return _move(node, scope, state)


def _id(value: Arg) -> int:
    assert isinstance(value, int)
    return value


def _results(scope: Scope, state: State, outs: tuple[int, ...]) -> State:
    """Results of a region: the state, and the rest, which are extras here too."""
    scope.extras.extend(outs[len(state) :])
    return dict(zip(state, outs, strict=False))


def _region(inner: Node, scope: Scope, state: State, add: Callable[..., tuple[int, ...]]) -> State:
    region, args = scope.region(state)
    body = region.finish(build(inner, region, args))
    return _results(scope, state, add(body, *state.values(), *map(scope.weight, region.weight_types())))


def _scan(node: Loop, scope: Scope, state: State) -> State:
    region, args = scope.region(state)
    out = build(node.node, region, args)
    body = region.finish(out, weights_first=region.weights if node.shared else ())
    weights = _weights(node, scope, region)
    outs = scope.b.scan(
        body,
        length=node.length,
        consts=weights if node.shared else (),
        carry=list(state.values()),
        xs=() if node.shared else weights,
        reverse=node.reverse,
        unroll=node.unroll,
        metadata=BARRIER if node.barrier else (),
    )
    return _results(scope, state, outs)


def _weights(node: Loop, scope: Scope, region: Scope) -> list[Arg]:
    """What a loop passes to its body: one value for all steps, or one slice for each."""
    if not node.shared:
        return [scope.weight(t.stacked(node.length)) for t in region.weight_types()]
    weights = [scope.weight(t) for t in region.weight_types()]
    # JAX adds up the cotangents of a loop constant on the device, wherever the constant lives.
    return [scope.stopped(w) if scope.b.type(w).on_host else w for w in weights]


def _map(node: Loop, scope: Scope, state: State) -> State:
    """A scan over the rows of x: its parameters are the rest of the state, then a row, then slices of weights."""
    rest = {slot: value for slot, value in state.items() if slot != "x"}
    region, args = scope.region(rest)
    row = region.b.param(scope.b.type(state["x"]).element)
    out = build(node.node, region, {**args, "x": row})
    region.extras.insert(0, _id(out.pop("x")))
    body = region.finish(out, weights_first=region.weights if node.shared else ())
    weights = _weights(node, scope, region)
    outs = scope.b.scan(
        body,
        length=node.length,
        consts=weights if node.shared else (),
        carry=list(rest.values()),
        xs=[state["x"], *(() if node.shared else weights)],
        reverse=node.reverse,
        unroll=node.unroll,
        metadata=BARRIER if node.barrier else (),
    )
    after = dict(zip(rest, outs, strict=False))
    scope.extras.extend(outs[len(rest) + 1 :])
    return {slot: outs[len(rest)] if slot == "x" else after[slot] for slot in state}


def _while(node: Loop, scope: Scope, state: State) -> State:
    """A loop that counts to `length`. It has no reverse derivative, so under a gradient x passes through a stop."""
    b = scope.b
    start: State = {"i": lit(0, "int32"), **state}
    if scope.gradient:
        start = {slot: scope.stopped(v) for slot, v in start.items()}
    region, args = scope.region(start)
    out = build(node.node, region, {slot: v for slot, v in args.items() if slot != "i"})
    out = {"i": region.b.op("add", args["i"], lit(1, "int32")), **out}
    region.extras.clear()
    body = region.finish(out, weights_first=region.weights)
    test, carry = scope.region(start)
    bound = lit(node.length, "int32")
    cond = test.b.block(test.b.op("lt", carry["i"], bound))
    weights = [scope.stopped(scope.weight(t)) for t in region.weight_types()]
    outs = dict(zip(start, b.while_loop(cond, body, list(start.values()), body_consts=weights), strict=True))
    if not scope.gradient:
        return {slot: outs[slot] for slot in state}
    x = scope.fit(outs["x"], "device")
    x = b.op("add", scope.fit(state["x"], "device"), x)
    return {**{slot: outs[slot] for slot in state}, "x": scope.fit(x, b.type(state["x"]).memory)}


def _branch(node: Branch, scope: Scope, state: State) -> State:
    """Both branches take the weights of both; extra results stay inside."""
    one, args_one = scope.region(state)
    out_one = build(node.first, one, args_one)
    two, args_two = scope.region(state)
    mine = one.weight_types()
    for type_ in mine:
        two.b.param(type_)
    out_two = build(node.second, two, args_two)
    theirs = two.weight_types()
    for type_ in theirs:
        one.b.param(type_)
    home = scope.b.type(state["x"]).memory
    blocks: list[Block] = []
    for region, out in ((one, out_one), (two, out_two)):
        region.extras.clear()
        blocks.append(region.finish({**out, "x": region.fit(out["x"], home)}))
    index = scope.weight(_INDEX)
    # A branch that ignores an argument gives it zeros on the device for a cotangent, wherever the argument lives.
    weights = [scope.stopped(w) if scope.b.type(w).on_host else w for w in map(scope.weight, (*mine, *theirs))]
    return _results(scope, state, scope.b.cond(index, blocks, *state.values(), *weights))


def _shard(node: Shard, scope: Scope, state: State) -> State:
    """x is divided along its leading axis; all else is replicated."""
    if scope.manual:
        return build(node.node, scope, state)
    x = scope.b.type(state["x"])
    region, args = scope.region({slot: value for slot, value in state.items() if slot != "x"}, manual=True)
    part = region.b.param(x.with_shape((x.shape[0] // node.devices, *x.shape[1:])))
    mine = _mean(region, part, node) if node.reduced else part
    out = build(node.node, region, {"x": mine, **args})
    order = ("x", *(slot for slot in state if slot != "x"))
    body = region.finish({slot: out[slot] for slot in order})
    # `finish` keeps parameters in the order they were made: the rest of the state came before x.
    params = sorted(body.params, key=lambda var: var.id != part)
    body = Block(tuple(params), body.eqns, body.results)
    split: Spec = (node.axis,)
    types = [scope.b.type(state[slot]) for slot in order]
    extras = [region.b.type(e) for e in region.extras]
    weights = [scope.weight(t) for t in region.weight_types()]
    outs = scope.b.shard_map(
        body,
        *(state[slot] for slot in order),
        *weights,
        in_specs=[split, *(() for _ in (*order[1:], *weights))],
        out_specs=[split, *(() for _ in (*order[1:], *extras))],
        to=[*types, *extras],
    )
    after = _results(scope, {slot: state[slot] for slot in order}, outs)
    return {slot: after[slot] for slot in state}


def _mean(region: Scope, x: int, node: Shard) -> int:
    """The mean over the devices of an axis."""
    type_ = region.b.type(x)
    # The table of type rules has no collectives, so the builder cannot infer one: it comes in a block of its own.
    total = Op(outs=(Var(1, type_),), primitive="psum", args=(0,), attributes=(("axes", (node.axis,)),))
    (summed,) = region.b.call(Block((Var(0, type_),), (total,), (1,)), x, name="total")
    return region.b.op("mul", summed, lit(1.0 / node.devices, type_.dtype))


def _move(node: Move, scope: Scope, state: State) -> State:
    match node.what:
        case "carry":
            inner = build(node.node, scope, {**state, "x": scope.fit(state["x"], "device")})
            return {**inner, "x": scope.fit(inner["x"], "host")}
        case "extras" | "extras-back":
            before = len(scope.extras)
            state = build(node.node, scope, state)
            scope.extras[before:] = [_moved(scope, e, node.what) for e in scope.extras[before:]]
            return state
        case how:
            with scope.streaming(how):
                return build(node.node, scope, state)


def _moved(scope: Scope, extra: int, what: str) -> int:
    """An extra result in the other memory space. Nothing differentiable depends on one that stays on the host."""
    if what == "extras":
        return extra if scope.b.type(extra).on_host else scope.b.transfer(extra, "host")
    return _id(scope.fit(scope.stopped(extra), "device")) if scope.b.type(extra).on_host else extra


def _update(node: Update, scope: Scope, state: State) -> State:
    """Change an optional slot if the state has it."""
    b, x = scope.b, state["x"]
    if node.slot == "aux" and "aux" in state:
        total = b.op("reduce_sum", b.convert(x, "float32"), axes=tuple(range(b.type(x).rank)))
        return {**state, "aux": b.op("add", state["aux"], b.op("tanh", total))}
    # Inside a map or a shard_map x has another shape than the slots made for it: nothing to do there.
    if node.slot == "y" and "y" in state and b.type(state["y"]) == b.type(x):
        return {**state, "x": b.op("tanh", b.op("add", x, state["y"])), "y": b.op("sin", x)}
    type_ = b.type(x)
    if node.slot in ("aux", "y") or "buffer" not in state or b.type(state["buffer"]).shape[1:] != type_.shape:
        return state
    index = b.transfer(state["count"], "host") if node.index_on_host else state["count"]
    starts = (index, *(lit(0, "int32") for _ in type_.shape))
    if node.slot == "read":
        buffer = scope.stopped(state["buffer"])
        row = b.op("dynamic_slice", buffer, *starts, to=type_.stacked(1).in_memory("host"))
        read = b.op("reshape", b.transfer(row, "device"), to=type_)
        return {**state, "x": b.op("tanh", b.op("add", x, read))}
    update = scope.fit(b.op("reshape", x, to=type_.stacked(1)), "host")
    buffer = b.op("dynamic_update_slice", state["buffer"], update, *starts)
    return {**state, "buffer": buffer, "count": b.op("add", state["count"], lit(1, "int32"))}
