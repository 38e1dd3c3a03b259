"""Equations that hold blocks: loops, checkpoints, branches, calls. Each becomes a nested function and its use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reducer.errors import ProgramError
from reducer.ir.equations import (
    Block,
    Call,
    Checkpoint,
    Cond,
    CustomJvp,
    CustomVjp,
    Equation,
    Lit,
    Scan,
    ShardMap,
    Var,
    While,
)
from reducer.lowering import texts
from reducer.lowering.custom_rules import custom_jvp, custom_vjp
from reducer.lowering.functions import define, function_of, nested, packed, texts_of, use
from reducer.lowering.names import plural, stem
from reducer.lowering.texts import Expr, pack, returned, targets

if TYPE_CHECKING:
    from reducer.lowering.blocks import Value, Writer


def is_loop(eqn: Equation) -> bool:
    """True for the equations whose lowering is a loop, which is what the scheduling metadata talks about."""
    return isinstance(eqn, Scan | While)


def write(w: Writer, eqn: Equation) -> None:
    """Write an equation that holds blocks.

    Raises:
        ProgramError: not an equation of the IR.
    """
    match eqn:
        case Scan():
            _scan(w, eqn)
        case Checkpoint(differentiated=True):
            _differentiated(w, eqn)
        case Checkpoint():
            function = function_of(w, eqn, eqn.body, "body", "block", eqn.args)
            use(w, eqn, checkpointed(w, eqn, function), eqn.args)
        case Cond():
            _cond(w, eqn)
        case While():
            _while(w, eqn)
        case Call():
            name = texts.identifier(eqn.name, "inner")
            use(w, eqn, f"jax.jit({function_of(w, eqn, eqn.body, 'body', name, eqn.args)})", eqn.args)
        case CustomVjp():
            custom_vjp(w, eqn)
        case CustomJvp():
            custom_jvp(w, eqn)
        case ShardMap():
            _shard_map(w, eqn)
        case _:
            raise ProgramError(f"not an equation: {type(eqn).__name__}")


def checkpointed(w: Writer, eqn: Checkpoint, function: str) -> str:
    """``jax.checkpoint(layer, policy=policy)``."""
    policy = None if eqn.policy is None else w.context.policies[eqn.policy]
    prevent_cse = None if eqn.prevent_cse else "False"
    return texts.call("jax.checkpoint", function, policy=policy, prevent_cse=prevent_cse).text


# -- loops --------------------------------------------------------------------------------------------------------


def _fused(body: Block) -> Checkpoint | None:
    """The checkpoint a scan body consists of, if it takes exactly the body's parameters and gives its results."""
    if len(body.eqns) != 1 or not isinstance(body.eqns[0], Checkpoint):
        return None
    eqn = body.eqns[0]
    same_args = sorted(a for a in eqn.args if isinstance(a, int)) == sorted(p.id for p in body.params)
    same_results = body.results == tuple(var.id for var in eqn.outs)
    plain = not eqn.differentiated and not eqn.metadata and len(eqn.args) == len(body.params)
    return eqn if same_args and same_results and plain else None


def _scan(w: Writer, eqn: Scan) -> None:
    consts = w.names(eqn.consts)
    n, m = len(eqn.consts), len(eqn.consts) + len(eqn.carry)
    checkpoint = _fused(eqn.body)
    if checkpoint is None:
        params, block = eqn.body.params, eqn.body
        inner = nested(w, eqn, block, "body", _closed(params, consts))
    else:
        # The checkpoint may take the body's parameters in another order.
        place = dict(zip(checkpoint.args, checkpoint.body.params, strict=True))
        params, block = tuple(place[var.id] for var in eqn.body.params), checkpoint.body
        inner = nested(w, eqn, block, "body", _closed(params, consts))
        inner.path = (*inner.path, (0, "body"))
    carry = packed(inner, params[n:m], "carry", ["c"] * len(eqn.carry))
    xs = packed(inner, params[m:], "xs", [w.copy_hint(arg) for arg in eqn.xs])
    results = texts_of(inner.write())
    k = len(eqn.carry)
    name = w.scope.new(_loop_name(block, checkpoint is not None))
    signature = [carry, xs if (carry, xs) != ("_", "_") else "__"]
    define(w, name, signature, inner, f"{pack(results[:k])}, {pack(results[k:], 'None')}")
    function = name if checkpoint is None else checkpointed(w, checkpoint, name)
    taken = w.take((*eqn.carry, *eqn.xs))
    w.flush()
    call = texts.call(
        "lax.scan",
        function,
        pack(taken[:k]),
        pack(taken[k:], "None"),
        length=None if eqn.xs else repr(eqn.length),
        reverse="True" if eqn.reverse else None,
        unroll=repr(eqn.unroll) if eqn.unroll != 1 else None,
    )
    ys = [plural(text) if text.isidentifier() else "ys" for text in results[k:]]
    bound = w.targets(eqn.outs, ["c"] * k + ys)
    w.statement(eqn, f"{pack(bound[:k], '_')}, {pack(bound[k:], '_')} = ", call.text)


def _closed(params: Sequence[Var], consts: Sequence[Value]) -> dict[int, Value]:
    return {var.id: value for var, value in zip(params, consts, strict=False)}


def _loop_name(block: Block, checkpointed_: bool) -> str:
    if any(is_loop(eqn) for eqn in block.eqns):
        return "block"
    return "layer" if checkpointed_ else "step"


def _while(w: Writer, eqn: While) -> None:
    consts = w.names((*eqn.cond_consts, *eqn.body_consts))
    n = len(eqn.cond_consts)
    functions = []
    for field, block, own in (("cond", eqn.cond, consts[:n]), ("body", eqn.body, consts[n:])):
        inner = nested(w, eqn, block, field, _closed(block.params, own))
        carry = packed(inner, block.params[len(own) :], "carry", [])
        result = returned(texts_of(inner.write()))
        name = w.scope.new("more" if field == "cond" else "step")
        define(w, name, [carry], inner, result)
        functions.append(name)
    init = pack(w.take(eqn.carry))
    w.flush()
    call = texts.call("lax.while_loop", *functions, init)
    w.statement(eqn, f"{targets(w.targets(eqn.outs))} = ", call.text)


# -- branches, devices ----------------------------------------------------------------------------------------------


def _cond(w: Writer, eqn: Cond) -> None:
    functions = [
        function_of(w, eqn, block, f"branches[{i}]", f"branch_{i}", eqn.args) for i, block in enumerate(eqn.branches)
    ]
    predicate = w.predicates.get(eqn.index) if isinstance(eqn.index, int) else None
    index, *args = w.take((eqn.index if predicate is None else predicate, *eqn.args))
    w.flush()
    if predicate is None:
        call = texts.call("lax.switch", index, f"[{', '.join(functions)}]", *args)
    else:
        call = texts.call("lax.cond", index, *reversed(functions), *args)
    w.statement(eqn, f"{targets(w.targets(eqn.outs))} = ", call.text)


def _differentiated(w: Writer, eqn: Checkpoint) -> None:
    """In a backward pass only the barrier on the inputs is left of a checkpoint; the body stands in line."""
    values = dict(zip((var.id for var in eqn.body.params), w.names(eqn.args), strict=False))
    inputs = [var for var in eqn.body.params if not isinstance(values.get(var.id), Lit)]
    if eqn.prevent_cse and inputs:
        before = [value.text for var in inputs if isinstance(value := values[var.id], Expr)]
        after = [w.scope.variable(var.type, stem(text)) for var, text in zip(inputs, before, strict=True)]
        w.lines.append(f"{targets(after)} = lax.optimization_barrier({pack(before)})")
        values |= {var.id: Expr(name) for var, name in zip(inputs, after, strict=True)}
    inner = type(w)(w.context, eqn.body, w.scope, values, (*w.path, (w.index, "body")), w.ambient)
    results = inner.write()
    w.lines += inner.lines
    for var, result in zip(eqn.outs, results, strict=True):
        w.bind_result(var, result)


def _shard_map(w: Writer, eqn: ShardMap) -> None:
    function = function_of(w, eqn, eqn.body, "body", "shard", eqn.args)
    in_specs = ", ".join(map(texts.spec, eqn.in_specs))
    mapped = texts.call(
        "jax.shard_map",
        function,
        in_specs=f"({in_specs},)" if eqn.in_specs else "()",
        out_specs=pack([*map(texts.spec, eqn.out_specs)]),
        axis_names=f"{{{', '.join(map(texts.quote, sorted(eqn.manual)))}}}" if eqn.manual else None,
        check_vma=None if eqn.check_vma else "False",
    )
    use(w, eqn, mapped.text, eqn.args)
