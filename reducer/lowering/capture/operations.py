"""Equations without a body that are no plain `Op`: conversions, constants, names, moves, and what gets written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reducer.errors import ProgramError
from reducer.ir.equations import Arg, Fill, Lit, Name, Op
from reducer.ir.scalars import convert_scalar
from reducer.ir.types import DTYPES, Type
from reducer.lowering.capture.convert import Converter, handles, ids, operation, outs_of
from reducer.lowering.capture.frame import Frame, transfer, type_of, zeros
from reducer.lowering.capture.shardings import constrain, named_spec
from reducer.lowering.capture.versions import on_device, open_jaxpr


@handles("convert_element_type")
def _convert(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    # Weak types do not exist here, so a conversion that only changes weakness is the value itself.
    if str(eqn.invars[0].aval.dtype) == str(eqn.outvars[0].aval.dtype):
        return args
    # Tracing folds a conversion of a scalar, so there is none in the IR; what is made of it must see that here.
    scalar = convert_scalar(args[0], str(eqn.outvars[0].aval.dtype)) if isinstance(args[0], Lit) else None
    return operation(converter, frame, eqn, args) if scalar is None else (scalar,)


@handles("one_minus_square")
def _one_minus_square(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    # Only some versions have it. Written out it is the same to the last bit, and means the same everywhere.
    metadata, _ = converter.metadata(frame, eqn)
    one = Lit(type_of(eqn.outvars[0].aval).dtype, "1.0")
    minus, plus, out = (outs_of(frame, eqn) for _ in range(3))
    for outs, primitive, operands in (
        (minus, "sub", (one, args[0])),
        (plus, "add", (one, args[0])),
        (out, "mul", (minus[0].id, plus[0].id)),
    ):
        frame.add(Op(outs=outs, primitive=primitive, args=operands, metadata=metadata))
    return ids(out)


@handles("broadcast_in_dim")
def _broadcast(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    out = type_of(eqn.outvars[0].aval)
    if type_of(eqn.invars[0].aval) == out:
        return args
    if not isinstance(args[0], Lit) or out.on_host:
        return operation(converter, frame, eqn, args)
    var = frame.var(out)
    frame.add(Fill(outs=(var,), value=args[0].value))
    return (var.id,)


@handles("reshape")
def _reshape(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    order = eqn.params.get("dimensions")
    if order is None:
        return operation(converter, frame, eqn, args)
    # It reads the dimensions in another order: JAX, too, lowers this to a transposition and a plain reshape.
    metadata, _ = converter.metadata(frame, eqn)
    type_ = type_of(eqn.invars[0].aval)
    turned = frame.var(Type(type_.dtype, tuple(type_.shape[i] for i in order), type_.memory))
    attributes = (("permutation", tuple(map(int, order))),)
    frame.add(Op(outs=(turned,), primitive="transpose", args=args, attributes=attributes, metadata=metadata))
    outs = outs_of(frame, eqn)
    frame.add(Op(outs=outs, primitive="reshape", args=(turned.id,), metadata=metadata))
    return ids(outs)


@handles("scatter")
def _scatter(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    """One that writes; `x.at[i].apply(f)` is the same primitive with a computation of the user's."""
    update = eqn.params.get("update_jaxpr")
    if update is not None:
        jaxpr, _ = open_jaxpr(update)
        if jaxpr.eqns or jaxpr.outvars[0] is not jaxpr.invars[-1]:
            raise ProgramError("it updates by a computation of its own")
    return operation(converter, frame, eqn, args)


@handles("reshard")
def _reshard(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    spec = named_spec(converter, eqn.params["dst_sharding"])
    if spec is None:
        return args
    return (constrain(frame, args[0], type_of(eqn.outvars[0].aval), spec),)


@handles("empty", "empty2")
def _empty(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    # Memory nobody writes to before it is read; JAX lowers it to zeros.
    del args
    aval = eqn.outvars[0].aval
    if converter.only_read and (type_ := type_of(aval)).on_host:
        return (transfer(frame, zeros(frame, on_device(aval)), type_, "host"),)
    return (zeros(frame, aval),)


@handles("tie")
def _tie(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    del converter, frame, eqn
    return args[1:]


@handles("lt_to", "le_to", "eq_to")
def _total_order(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    """Comparisons in which -0.0 comes before 0.0 and nan last: those of the bit patterns as integers."""
    metadata, _ = converter.metadata(frame, eqn)

    def add(primitive: str, type_: Type, *operands: Arg) -> int:
        out = frame.var(type_)
        frame.add(Op(outs=(out,), primitive=primitive, args=operands, metadata=metadata))
        return out.id

    keys: list[Arg] = []
    for arg, var in zip(args, eqn.invars, strict=True):
        type_ = type_of(var.aval)
        if not type_.inexact:
            keys.append(arg)
            continue
        bits = 8 * DTYPES[type_.dtype][1]
        integer = type_.with_dtype(f"int{bits}")
        pattern = add("bitcast_convert_type", integer, arg)
        sign = add("shift_right_arithmetic", integer, pattern, Lit(integer.dtype, str(bits - 1)))
        flip = add("shift_right_logical", integer, sign, Lit(integer.dtype, "1"))
        keys.append(add("xor", integer, pattern, flip))
    return (add(eqn.primitive.name.removesuffix("_to"), type_of(eqn.outvars[0].aval), *keys),)


@handles("platform_index")
def _platform_index(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    # Read by a conditional only, which is resolved where it stands.
    del converter, frame, eqn, args
    return (Lit("int32", "0"),)


@handles("name")
def _name(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    outs = outs_of(frame, eqn)
    metadata, _ = converter.metadata(frame, eqn)
    frame.add(Name(outs=outs, arg=args[0], name=eqn.params["name"], metadata=metadata))
    return ids(outs)


@handles("device_put")
def _device_put(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    values: list[Arg] = []
    metadata, _ = converter.metadata(frame, eqn)
    for arg, source, target, device in zip(args, eqn.invars, eqn.outvars, eqn.params["devices"], strict=True):
        before, after = type_of(source.aval), type_of(target.aval)
        value: Arg = arg
        kind = getattr(device, "memory_kind", None)
        if kind is not None and "host" in str(kind) and not after.on_host:
            raise ProgramError(f"a move to {kind} that the types do not show")
        if before.memory != after.memory:
            value = transfer(frame, arg, before, after.memory, metadata)
        spec = named_spec(converter, device)
        values.append(value if spec is None else constrain(frame, value, after, spec))
    return values
