"""Operations with regions that stay regions: loops, branches, calls, manual computations; and sharding constraints."""

from __future__ import annotations

from collections.abc import Sequence

from reducer.errors import ProgramError
from reducer.ir.equations import Arg, Cond, Lit, Op, ShardingConstraint, ShardMap, While
from reducer.ir.types import Type
from reducer.raising import attributes, loops, shardings
from reducer.raising.attributes import text_of
from reducer.raising.convert import Raiser, handles, metadata, out_of, outs_of
from reducer.raising.frame import Frame
from reducer.stablehlo.model import Block, Operation, attribute


@handles("func.call")
def _call(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    return _inline(raiser, frame, operation, text_of(operation, "callee"))


@handles("stablehlo.composite")
def _composite(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    return _inline(raiser, frame, operation, text_of(operation, "decomposition"))


def _inline(raiser: Raiser, frame: Frame, operation: Operation, reference: str) -> Sequence[Arg]:
    name = reference.removeprefix("@")
    name = attributes.string(name) if name.startswith('"') else name
    function = raiser.functions.get(name)
    if function is None:
        raise ProgramError(f"there is no function {name}")
    with raiser.at(name):
        return raiser.inline(frame, function.body, raiser.args(frame, operation))


@handles("stablehlo.while")
def _while(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    carry = tuple(raiser.args(frame, operation))
    test, step = operation.regions
    cond, (proceed,) = raiser.region(frame, test, "cond")
    body, results = raiser.region(frame, step, "body")
    loop = While(
        outs=tuple(map(frame.var, outs_of(operation))),
        cond=cond.block((proceed,), before=tuple(cond.captured.values())),
        body=body.block(results, before=tuple(body.captured.values())),
        cond_consts=tuple(cond.captured),
        body_consts=tuple(body.captured),
        carry=carry,
        metadata=metadata(operation, loop=True),
    )
    counted = loops.counted(loop, frame.types, frame.var)
    if counted is None:
        return frame.add(loop)
    frame.add(counted.scan)
    return counted.results


@handles("stablehlo.if")
def _if(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    (which,) = raiser.args(frame, operation)
    index = frame.op("convert_element_type", (which,), Type("int32"))
    yes, no = operation.regions
    return _branches(raiser, frame, operation, index, (no, yes))


@handles("stablehlo.case")
def _case(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    (index,) = raiser.args(frame, operation)
    made = frame.made_by.get(index) if isinstance(index, int) else None
    if isinstance(made, Op) and made.primitive == "clamp":
        # JAX clamps the index into range before; the IR's index is clamped by meaning.
        low, inside, high = made.args
        if low == Lit("int32", "0") and high == Lit("int32", str(len(operation.regions) - 1)):
            index = inside
    return _branches(raiser, frame, operation, index, operation.regions)


def _branches(
    raiser: Raiser, frame: Frame, operation: Operation, index: Arg, regions: Sequence[Block]
) -> Sequence[Arg]:
    raised = [raiser.region(frame, region, f"branches[{i}]") for i, region in enumerate(regions)]
    # Every branch takes whatever one of them reads.
    args = tuple(dict.fromkeys(arg for inner, _ in raised for arg in inner.captured))
    branches = []
    for inner, results in raised:
        params = [inner.captured.get(arg) or inner.var(frame.type(arg)) for arg in args]
        branches.append(inner.block(results, before=params))
    outs = tuple(map(frame.var, outs_of(operation)))
    return frame.add(Cond(outs=outs, index=index, branches=tuple(branches), args=args, metadata=metadata(operation)))


@handles("sdy.sharding_constraint")
def _constraint(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    (arg,) = raiser.args(frame, operation)
    if raiser.mesh is None:
        return (arg,)
    spec = shardings.spec(text_of(operation, "sharding"), raiser.mesh)
    out = frame.var(out_of(operation))
    return frame.add(ShardingConstraint(outs=(out,), arg=arg, spec=spec, metadata=metadata(operation)))


@handles("sdy.manual_computation")
def _manual(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    args, (region,) = raiser.args(frame, operation), operation.regions
    named = attributes.strings(attribute(operation.attributes, "manual_axes") or "")
    axes = tuple(name for name, _ in raiser.mesh.axes) if raiser.mesh else ()
    manual = tuple(axis for axis in axes if axis in named)
    if not manual:
        return raiser.inline(frame, region, args)
    ins, outs = (
        tuple(shardings.among(s, manual) for s in shardings.specs(text_of(operation, name), raiser.mesh))
        for name in ("in_shardings", "out_shardings")
    )
    inner, results = raiser.region(frame, region, "body")
    variables = tuple(map(frame.var, outs_of(operation)))
    return frame.add(
        ShardMap(
            outs=variables,
            # Constant arrays are the same on every device.
            args=(*args, *inner.captured),
            body=inner.block(results, behind=tuple(inner.captured.values())),
            in_specs=(*ins, *((),) * len(inner.captured)),
            out_specs=outs,
            manual=() if manual == axes else manual,
            metadata=metadata(operation),
        )
    )
