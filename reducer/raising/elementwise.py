"""Constants, elementwise operations, conversions, moves between memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reducer.errors import ProgramError
from reducer.ir.equations import Arg, Enum, Lit, Op, Transfer
from reducer.ir.scalars import convert_scalar
from reducer.ir.types import DTYPES, Memory, Type
from reducer.raising import attributes, constants
from reducer.raising.attributes import member, text_of
from reducer.raising.convert import HANDLERS, Handler, Raiser, handles, metadata, only, out_of, outs_of, placement
from reducer.raising.frame import Frame, reshaped
from reducer.stablehlo.model import Operation, attribute

#: A constant of so few different elements is put together from them; larger ones become inputs.
MAX_ELEMENTS: Final = 1024
MAX_RUNS: Final = 16

#: Operation (of the dialects stablehlo and chlo) -> primitive, where nothing but the arguments matters.
_SAME: Final = {
    "abs": "abs",
    "atan2": "atan2",
    "cbrt": "cbrt",
    "ceil": "ceil",
    "complex": "complex",
    "cosine": "cos",
    "count_leading_zeros": "clz",
    "exponential": "exp",
    "exponential_minus_one": "expm1",
    "floor": "floor",
    "imag": "imag",
    "is_finite": "is_finite",
    "log": "log",
    "log_plus_one": "log1p",
    "logistic": "logistic",
    "negate": "neg",
    "not": "not",
    "popcnt": "population_count",
    "real": "real",
    "rsqrt": "rsqrt",
    "sign": "sign",
    "sine": "sin",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
}
_CHLO: Final = {
    "acos": "acos",
    "acosh": "acosh",
    "asin": "asin",
    "asinh": "asinh",
    "atan": "atan",
    "atanh": "atanh",
    "bessel_i1e": "bessel_i1e",
    "conj": "conj",
    "cosh": "cosh",
    "digamma": "digamma",
    "erf": "erf",
    "erf_inv": "erf_inv",
    "erfc": "erfc",
    "lgamma": "lgamma",
    "next_after": "nextafter",
    "polygamma": "polygamma",
    "sinh": "sinh",
    "square": "square",
    "tan": "tan",
    "zeta": "zeta",
}
#: Where an argument that repeats one scalar may be that scalar, as JAX records it.
_BROADCASTING: Final = {
    "add": "add",
    "and": "and",
    "divide": "div",
    "maximum": "max",
    "minimum": "min",
    "multiply": "mul",
    "or": "or",
    "power": "pow",
    "shift_left": "shift_left",
    "shift_right_arithmetic": "shift_right_arithmetic",
    "shift_right_logical": "shift_right_logical",
    "subtract": "sub",
    "xor": "xor",
}


def _plain(primitive: str) -> Handler:
    def handler(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
        return frame.ops(primitive, raiser.args(frame, operation), outs_of(operation), metadata(operation))

    return handler


def broadcasting(primitive: str) -> Handler:
    """The handler of an operation that is this primitive."""

    def handler(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
        args = with_scalars(frame, raiser.args(frame, operation))
        return frame.ops(primitive, args, outs_of(operation), metadata(operation))

    return handler


HANDLERS.update((f"stablehlo.{name}", _plain(primitive)) for name, primitive in _SAME.items())
HANDLERS.update((f"chlo.{name}", _plain(primitive)) for name, primitive in _CHLO.items())
HANDLERS.update((f"stablehlo.{name}", broadcasting(primitive)) for name, primitive in _BROADCASTING.items())


def with_scalars(frame: Frame, args: Sequence[Arg]) -> list[Arg]:
    """The arguments, those that repeat one scalar replaced by it as long as one array is left to give the shape."""
    scalars = [frame.scalars.get(arg) if isinstance(arg, int) else None for arg in args]
    if all(scalar is not None for scalar in scalars):
        return list(args)
    return [arg if scalar is None else scalar for arg, scalar in zip(args, scalars, strict=True)]


@handles("stablehlo.constant")
def _constant(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    text, type_ = text_of(operation, "value"), out_of(operation)
    value = constants.splat(text)
    if value is not None:
        return (frame.fill(type_, value),)
    if constants.is_range(text):
        return (frame.op("iota", (), type_, dimension=0),)
    runs = constants.runs(text) if type_.size <= MAX_ELEMENTS else None
    if runs is None or len(runs) > MAX_RUNS:
        return (raiser.constant(frame, text, type_),)
    parts = [frame.fill(Type(type_.dtype, (length,)), value) for value, length in runs]
    flat = frame.op("concatenate", parts, Type(type_.dtype, (type_.size,)), dimension=0)
    return (reshaped(frame, flat, type_),)


@handles("stablehlo.compare")
def _compare(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    if "TOTALORDER" in (attribute(operation.attributes, "compare_type") or ""):
        raise ProgramError("comparison in total order")
    direction = member(text_of(operation, "comparison_direction")).lower()
    args = with_scalars(frame, raiser.args(frame, operation))
    return (frame.op(direction, args, out_of(operation), metadata(operation)),)


@handles("stablehlo.select")
def _select(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    which, yes, no = raiser.args(frame, operation)
    return (frame.op("select_n", (which, no, yes), out_of(operation), metadata(operation)),)


@handles("stablehlo.clamp")
def _clamp(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    return (frame.op("clamp", raiser.args(frame, operation), out_of(operation), metadata(operation)),)


@handles("stablehlo.convert")
def _convert(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    (arg,), out = raiser.args(frame, operation), out_of(operation)
    if frame.type(arg) == out:
        return (arg,)
    made = frame.made_by.get(arg) if isinstance(arg, int) else None
    if isinstance(made, Op) and made.primitive == "convert_element_type":
        # An index along the mesh is a signed integer that is computed as an unsigned one.
        before = frame.made_by.get(made.args[0]) if isinstance(made.args[0], int) else None
        if isinstance(before, Op) and before.primitive == "axis_index" and before.outs[0].type == out:
            return (made.args[0],)
    scalar = frame.scalars.get(arg) if isinstance(arg, int) else arg
    if isinstance(scalar, Lit) and (folded := convert_scalar(scalar, out.dtype)) is not None:
        return (frame.fill(out, folded.value),)
    return (frame.op("convert_element_type", (arg,), out, metadata(operation)),)


@handles("stablehlo.bitcast_convert")
def _bitcast(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    (arg,), out = raiser.args(frame, operation), out_of(operation)
    if DTYPES[frame.type(arg).dtype][1] != DTYPES[out.dtype][1]:
        raise ProgramError("between dtypes of different width")
    return (frame.op("bitcast_convert_type", (arg,), out, metadata(operation)),)


@handles("stablehlo.round_nearest_even", "stablehlo.round_nearest_afz")
def _round(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    method = "TO_NEAREST_EVEN" if operation.name.endswith("even") else "AWAY_FROM_ZERO"
    how = Enum(f"RoundingMethod.{method}")
    return (
        frame.op("round", raiser.args(frame, operation), out_of(operation), metadata(operation), rounding_method=how),
    )


@handles("stablehlo.reduce_precision")
def _reduce_precision(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    return (
        frame.op(
            "reduce_precision",
            raiser.args(frame, operation),
            out_of(operation),
            metadata(operation),
            exponent_bits=attributes.integer(operation, "exponent_bits"),
            mantissa_bits=attributes.integer(operation, "mantissa_bits"),
        ),
    )


@handles("stablehlo.optimization_barrier")
def _barrier(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    args = raiser.args(frame, operation)
    if not args:
        return ()
    return frame.ops("optimization_barrier", args, outs_of(operation), metadata(operation))


@handles("stablehlo.custom_call")
def _custom_call(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    target = attributes.string(text_of(operation, "call_target_name"))
    args = raiser.args(frame, operation)
    match target, placement(operation):
        case "annotate_device_placement", str(kind) if len(args) == 1:
            memory: Memory = "device" if kind == "device" else "host"
            out = frame.var(out_of(operation))
            return frame.add(Transfer(outs=(out,), arg=args[0], memory=memory, metadata=metadata(operation)))
        case "Sharding", _ if raiser.mesh is None and len(args) == 1:
            return args
        case _:
            only(operation, "call_target_name")
    return ()
