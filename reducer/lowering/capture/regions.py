"""Loops, conditionals, checkpoints and shard_map: equations with a body."""

from __future__ import annotations

from collections.abc import Sequence
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
from reducer.ir.walk import fresh
from reducer.lowering.capture import versions
from reducer.lowering.capture.convert import (
    REGIONS,
    Converter,
    Frame,
    Needs,
    handles,
    ids,
    inline_call,
    outs_of,
    type_of,
)
from reducer.lowering.capture.decisions import Decisions
from reducer.lowering.capture.policies import recover
from reducer.lowering.capture.shardings import named_spec, spec_of


def passed(frame: Frame, values: Needs) -> tuple[Arg, ...]:
    """Constants a nested block needs, as values of the enclosing one."""
    return tuple(frame.constant(value, aval) for value, aval in values)


@handles("scan", table=REGIONS)
def _scan(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    params = eqn.params
    n, c = versions.scan_counts(params)
    metadata, inherited = converter.metadata(frame, eqn)
    body, hoisted = converter.block(params["jaxpr"], inherited, at=n)
    outs = outs_of(frame, eqn)
    frame.add(
        Scan(
            outs=outs,
            length=int(params["length"]),
            body=body,
            consts=args[:n] + passed(frame, hoisted),
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
    cond, cond_needs = converter.block(eqn.params["cond_jaxpr"], inherited, at=n)
    body, body_needs = converter.block(eqn.params["body_jaxpr"], inherited, at=m)
    outs = outs_of(frame, eqn)
    frame.add(
        While(
            outs=outs,
            cond=cond,
            body=body,
            cond_consts=args[:n] + passed(frame, cond_needs),
            body_consts=args[n : n + m] + passed(frame, body_needs),
            carry=args[n + m :],
            metadata=metadata,
        )
    )
    return ids(outs)


@handles("cond", table=REGIONS)
def _cond(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
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
    manual = tuple(name for name in mesh.axis_names if name in params["manual_axes"])
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
