"""Loops, conditionals, checkpoints and shard_map: equations with a body."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from reducer.errors import ProgramError
from reducer.ir.equations import (
    Arg,
    Block,
    Checkpoint,
    Cond,
    Lit,
    Op,
    Scan,
    ShardingConstraint,
    ShardMap,
    Var,
    While,
)
from reducer.ir.types import Type
from reducer.ir.walk import fresh
from reducer.lowering.capture import versions
from reducer.lowering.capture.convert import REGIONS, Converter, Needs, handles, ids, inline_call, outs_of
from reducer.lowering.capture.decisions import Decisions
from reducer.lowering.capture.frame import Frame, type_of
from reducer.lowering.capture.policies import recover
from reducer.lowering.capture.shardings import named_spec, spec_of


def passed(frame: Frame, values: Needs) -> tuple[Arg, ...]:
    """Constants a nested block needs, as values of the enclosing one."""
    return tuple(frame.constant(value, aval) for value, aval in values)


def variables(args: tuple[Arg, ...]) -> tuple[Arg, ...]:
    """Those arguments that are no scalars."""
    return tuple(arg for arg in args if isinstance(arg, int))


@handles("scan", table=REGIONS)
def _scan(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    params = eqn.params
    n, c = versions.scan_counts(params)
    metadata, inherited = converter.metadata(frame, eqn)
    consts = variables(args[:n])
    body, hoisted = converter.block(params["jaxpr"], inherited, at=len(consts), given=args[:n])
    outs = outs_of(frame, eqn)
    frame.add(
        Scan(
            outs=outs,
            length=int(params["length"]),
            body=body,
            consts=consts + passed(frame, hoisted),
            carry=args[n : n + c],
            xs=args[n + c :],
            reverse=bool(params["reverse"]),
            unroll=max(1, int(params["unroll"])),
            metadata=metadata,
        )
    )
    return ids(outs)


@handles("while", table=REGIONS)
def _while(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    n, m = versions.while_counts(eqn.params)
    metadata, inherited = converter.metadata(frame, eqn)
    carry, cond_consts, body_consts = args[n + m :], args[:n], args[n : n + m]
    test, step = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    predicate = versions.open_jaxpr(test)[0].outvars[0].aval
    if predicate.shape:
        # `vmap` of a loop: each element goes on by its own predicate, and the loop while there is one.
        cond, cond_needs = converter.block(test, inherited, at=n, complete=_any(predicate))
        body, body_needs = _batched_body(converter, inherited, eqn, n, m)
        body_consts = cond_consts + body_consts
    else:
        cond, cond_needs = converter.block(test, inherited, at=len(variables(cond_consts)), given=cond_consts)
        body, body_needs = converter.block(step, inherited, at=len(variables(body_consts)), given=body_consts)
        cond_consts, body_consts = variables(cond_consts), variables(body_consts)
    outs = outs_of(frame, eqn)
    frame.add(
        While(
            outs=outs,
            cond=cond,
            body=body,
            cond_consts=cond_consts + passed(frame, cond_needs),
            body_consts=body_consts + passed(frame, body_needs),
            carry=carry,
            metadata=metadata,
        )
    )
    return ids(outs)


def _any(predicate: Any) -> Callable[[Frame, list[Arg]], list[Arg]]:
    def complete(frame: Frame, results: list[Arg]) -> list[Arg]:
        out = frame.var(Type("bool"))
        axes = tuple(range(len(predicate.shape)))
        frame.add(Op(outs=(out,), primitive="reduce_or", args=(results[0],), attributes=(("axes", axes),)))
        return [out.id]

    return complete


def _batched_body(converter: Converter, inherited: Mapping[str, str], eqn: Any, n: int, m: int) -> tuple[Block, Needs]:
    """Body of a loop with one predicate per element: those that are done keep their values."""
    (test, test_consts), (step, step_consts) = (
        versions.open_jaxpr(eqn.params[name]) for name in ("cond_jaxpr", "body_jaxpr")
    )
    frame = converter.frame(inherited)
    params = [frame.var(type_of(v.aval)) for v in (*test.invars[:n], *step.invars)]
    values = [p.id for p in params]
    carry = values[n + m :]
    (going,) = converter.inline(frame, test, test_consts, dict(zip(test.invars, values[:n] + carry, strict=True)))
    new = converter.inline(frame, step, step_consts, dict(zip(step.invars, values[n:], strict=True)))
    results: list[Arg] = []
    for old, value, var in zip(carry, new, step.invars[m:], strict=True):
        out = frame.var(type_of(var.aval))
        which = frame.var(Type("bool", out.type.shape))
        dims = tuple(range(len(test.outvars[0].aval.shape)))
        spread = (("broadcast_dimensions", dims),)
        frame.add(Op(outs=(which,), primitive="broadcast_in_dim", args=(going,), attributes=spread))
        frame.add(Op(outs=(out,), primitive="select_n", args=(which.id, old, value)))
        results.append(out.id)
    needs = [(value, aval) for value, aval, _ in frame.hoisted]
    extra = [var for _, _, var in frame.hoisted]
    at = n + m
    return Block((*params[:at], *extra, *params[at:]), tuple(frame.eqns), tuple(results)), needs


@handles("cond", table=REGIONS)
def _cond(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    platforms = eqn.params.get("branches_platforms")
    if platforms is not None:
        # `lax.platform_dependent`: this is about TPUs only.
        chosen = next(i for i, names in enumerate(platforms) if names is None or "tpu" in names)
        jaxpr, consts = versions.open_jaxpr(eqn.params["branches"][chosen])
        return converter.inline(frame, jaxpr, consts, dict(zip(jaxpr.invars, args[1:], strict=True)))
    metadata, inherited = converter.metadata(frame, eqn)
    branches = [converter.block(branch, inherited) for branch in eqn.params["branches"]]
    # Every branch takes every constant that one of them needs.
    needs = list({id(value): (value, aval) for _, hoisted in branches for value, aval in hoisted}.values())
    aligned = tuple(with_params(block, hoisted, needs) for block, hoisted in branches)
    outs = outs_of(frame, eqn)
    frame.add(
        Cond(
            outs=outs,
            index=_index(frame, args[0], len(branches)),
            branches=aligned,
            args=args[1:] + passed(frame, needs),
            metadata=metadata,
        )
    )
    return ids(outs)


def with_params(block: Block, has: Needs, needs: Needs, at: int | None = None) -> Block:
    """A block whose parameters for the constants `has` become ones for all of `needs`, at position `at` (last)."""
    at = len(block.params) - len(has) if at is None else at
    own = {id(value): var for (value, _), var in zip(has, block.params[at:], strict=False)}
    new = fresh(block)
    extra = [own.get(id(value)) or Var(next(new), type_of(aval)) for value, aval in needs]
    return msgspec.structs.replace(block, params=(*block.params[:at], *extra, *block.params[at + len(has) :]))


def _index(frame: Frame, index: Arg, branches: int) -> Arg:
    """The branch index without the clamp into range that JAX wrote before: the IR's index is clamped by meaning."""
    made_by = frame.made_by.get(index) if isinstance(index, int) else None
    if isinstance(made_by, Op) and made_by.primitive == "clamp":
        low, inside, high = made_by.args
        if low == Lit("int32", "0") and high == Lit("int32", str(branches - 1)):
            return inside
    return index


@handles(*versions.CHECKPOINTS, table=REGIONS)
def _checkpoint(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    params = eqn.params
    metadata, inherited = converter.metadata(frame, eqn)
    prevent_cse = params["prevent_cse"]
    if not isinstance(prevent_cse, bool):
        raise ProgramError("prevent_cse is given per argument")
    differentiated = bool(params["differentiated"])
    if differentiated and not prevent_cse:
        return inline_call(converter, frame, eqn, args)  # nothing is left of it but its body
    policy, decisions = None, None
    # After differentiation the policy has been applied: what is left of it is never asked again.
    if params["policy"] is not None and not differentiated:
        policy = recover(params["policy"])
        if policy is None:
            converter.decided += 1
            decisions = Decisions(params["policy"], converter.decided)
    with converter.under(decisions):
        body, hoisted = converter.block(params["jaxpr"], inherited)
    if decisions is not None:
        policy = decisions.as_policy()
    outs = outs_of(frame, eqn)
    frame.add(
        Checkpoint(
            outs=outs,
            args=args + passed(frame, hoisted),
            body=body,
            policy=policy,
            prevent_cse=prevent_cse,
            differentiated=differentiated,
            metadata=metadata,
        )
    )
    return ids(outs)


@handles("shard_map", table=REGIONS)
def _shard_map(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    params = eqn.params
    mesh = params["mesh"]
    converter.use_mesh(tuple(mesh.shape.items()))
    metadata, inherited = converter.metadata(frame, eqn)
    body, hoisted = converter.block(params["jaxpr"], inherited)
    axes = versions.manual_axes(params)
    manual = tuple(name for name in mesh.axis_names if name in axes)
    outs = outs_of(frame, eqn)
    frame.add(
        ShardMap(
            outs=outs,
            args=args + passed(frame, hoisted),
            body=body,
            in_specs=(*map(spec_of, params["in_specs"]), *((),) * len(hoisted)),
            out_specs=tuple(map(spec_of, params["out_specs"])),
            manual=() if manual == tuple(mesh.axis_names) else manual,
            check_vma=bool(params["check_vma"]),
            metadata=metadata,
        )
    )
    return ids(outs)


@handles("sharding_constraint")
def _constraint(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    spec = named_spec(converter, eqn.params["sharding"])
    if spec is None:
        return args  # one device: says nothing
    metadata, _ = converter.metadata(frame, eqn)
    outs = outs_of(frame, eqn)
    frame.add(ShardingConstraint(outs=outs, arg=args[0], spec=spec, metadata=metadata))
    return ids(outs)
