"""Operations that move, combine or reduce elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reducer.errors import ProgramError
from reducer.ir.equations import Arg, Attr, Enum, Lit
from reducer.ir.types import Type
from reducer.raising import attributes
from reducer.raising.attributes import integer, integers, pairs, text_of
from reducer.raising.convert import Raiser, handles, metadata, only, out_of, outs_of
from reducer.raising.frame import Frame, reshaped
from reducer.stablehlo.model import Block, Operation, attribute

#: What a reduction's body does -> the primitive, its windowed and cumulative forms, and the primitive itself.
_REDUCTIONS: Final = {
    "add": ("reduce_sum", "add"),
    "multiply": ("reduce_prod", "mul"),
    "maximum": ("reduce_max", "max"),
    "minimum": ("reduce_min", "min"),
    "and": ("reduce_and", "and"),
    "or": ("reduce_or", "or"),
    "xor": ("reduce_xor", "xor"),
}
_CUMULATIVE: Final = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}
_WINDOWED: Final = {"add": "reduce_window_sum", "maximum": "reduce_window_max", "minimum": "reduce_window_min"}


@handles("stablehlo.broadcast_in_dim")
def _broadcast(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    (arg,), out = raiser.args(frame, operation), out_of(operation)
    source, dims = frame.type(arg), integers(operation, "broadcast_dimensions")
    scalar = frame.scalars.get(arg) if isinstance(arg, int) else None
    if source == out and dims == tuple(range(out.rank)):
        return (arg,)
    if isinstance(scalar, Lit) or isinstance(arg, Lit):
        value = arg if isinstance(arg, Lit) else scalar
        assert isinstance(value, Lit)
        return (frame.fill(out, value.value),)
    if list(dims) != sorted(dims):
        order = tuple(sorted(range(len(dims)), key=dims.__getitem__))
        turned = source.with_shape(tuple(source.shape[i] for i in order))
        arg, dims = frame.op("transpose", (arg,), turned, permutation=order), tuple(sorted(dims))
    made = frame.op("broadcast_in_dim", (arg,), out, metadata(operation), broadcast_dimensions=dims)
    if not source.shape:
        frame.scalars[made] = arg
    return (made,)


@handles("stablehlo.reshape")
def _reshape(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    (arg,) = raiser.args(frame, operation)
    return (reshaped(frame, arg, out_of(operation)),)


@handles("stablehlo.transpose")
def _transpose(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    args, order = raiser.args(frame, operation), integers(operation, "permutation")
    if not order:
        return args
    return (frame.op("transpose", args, out_of(operation), metadata(operation), permutation=order),)


@handles("stablehlo.reverse")
def _reverse(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    dims = integers(operation, "dimensions")
    return (frame.op("rev", raiser.args(frame, operation), out_of(operation), metadata(operation), dimensions=dims),)


@handles("stablehlo.iota")
def _iota(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    del raiser
    return (frame.op("iota", (), out_of(operation), dimension=integer(operation, "iota_dimension")),)


@handles("stablehlo.concatenate")
def _concatenate(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    axis = integer(operation, "dimension")
    args = raiser.args(frame, operation)
    return (frame.op("concatenate", args, out_of(operation), metadata(operation), dimension=axis),)


@handles("stablehlo.slice")
def _slice(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    strides = integers(operation, "strides")
    return (
        frame.op(
            "slice",
            raiser.args(frame, operation),
            out_of(operation),
            metadata(operation),
            start_indices=integers(operation, "start_indices"),
            limit_indices=integers(operation, "limit_indices"),
            strides=None if all(n == 1 for n in strides) else strides,
        ),
    )


@handles("stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice")
def _dynamic(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    primitive = operation.name.removeprefix("stablehlo.")
    return (frame.op(primitive, raiser.args(frame, operation), out_of(operation), metadata(operation)),)


@handles("stablehlo.pad")
def _pad(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    config = tuple(zip(*(integers(operation, name) for name in names), strict=True))
    return (
        frame.op("pad", raiser.args(frame, operation), out_of(operation), metadata(operation), padding_config=config),
    )


@handles("stablehlo.dot_general")
def _dot_general(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    only(operation, "algorithm")
    found = attributes.fields(text_of(operation, "dot_dimension_numbers"))
    lc, rc, lb, rb = (
        found.get(f"{side}_{kind}_dimensions", ())
        for kind, side in (("contracting", "lhs"), ("contracting", "rhs"), ("batching", "lhs"), ("batching", "rhs"))
    )
    return (
        frame.op(
            "dot_general",
            raiser.args(frame, operation),
            out_of(operation),
            metadata(operation),
            dimension_numbers=((lc, rc), (lb, rb)),
            precision=precision(operation),
        ),
    )


def precision(operation: Operation) -> Attr:
    """The precision of a product, None for the default."""
    found = attributes.members(attribute(operation.attributes, "precision_config") or "")
    if not set(found) - {"DEFAULT"}:
        return None
    if len(set(found)) > 1:
        raise ProgramError(f"operands of different precision: {', '.join(found)}")
    return Enum(f"Precision.{found[0]}")


def body_operation(region: Block) -> str | None:
    """What a body that combines its two parameters, in order, does: "add"; "second": it returns the latter one."""
    *first, last = region.operations
    if len(region.params) != 2 or len(last.operands) != 1:
        return None
    if not first:
        return "second" if last.operands[0] == region.params[1] else None
    if len(first) > 1 or last.operands != first[0].results or set(first[0].operands) != set(region.params):
        return None
    return first[0].name.removeprefix("stablehlo.")


@handles("stablehlo.reduce")
def _reduce(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    axes = integers(operation, "dimensions")
    args = raiser.args(frame, operation)
    if len(operation.results) == 2:
        return _arg_reduction(frame, operation, args, axes)
    body = body_operation(operation.regions[0])
    if body not in _REDUCTIONS or len(args) != 2:
        raise ProgramError("a reduction with another body than one operation")
    primitive, combine = _REDUCTIONS[body]
    (x, start), out = args, out_of(operation)
    value: Arg = frame.op(primitive, (x,), out, metadata(operation), axes=axes) if axes else x
    if _neutral(start, body):
        return (value,)
    return (frame.op(combine, (value, start), out),)


def _neutral(start: Arg, body: str) -> bool:
    """True if a reduction that starts with this scalar is one without it."""
    if not isinstance(start, Lit):
        return False
    match body:
        case "add" | "or" | "xor":
            return start.value in ("0", "0.0", "-0.0", "False")
        case "multiply":
            return start.value in ("1", "1.0")
        case "and":
            return start.value in ("True", "-1")
        case "maximum":
            return start.value in ("-inf", "False") or start.value == _extreme(start.dtype, 0)
        case _:
            return start.value in ("inf", "True") or start.value == _extreme(start.dtype, 1)


def _extreme(dtype: str, which: int) -> str | None:
    from reducer.ir.scalars import integer_range

    return str(integer_range(dtype)[which]) if Type(dtype).integer else None


def _arg_reduction(frame: Frame, operation: Operation, args: Sequence[Arg], axes: tuple[int, ...]) -> Sequence[Arg]:
    """`argmax` and `argmin`, which JAX lowers as a reduction of pairs of values and indices."""
    x, index, *_ = args
    made = frame.made_by.get(index) if isinstance(index, int) else None
    values, indices = outs_of(operation)
    first = next((o for o in operation.regions[0].operations if o.name == "stablehlo.compare"), None)
    counted = getattr(made, "primitive", None) == "iota" and len(axes) == 1 and len(args) == 4
    direction = attributes.member(text_of(first, "comparison_direction")) if first is not None else ""
    extremum = {"GT": "max", "LT": "min"}.get(direction)
    if not counted or extremum is None or dict(getattr(made, "attributes", ())).get("dimension") != axes[0]:
        raise ProgramError("a reduction of several values that is no argmax or argmin")
    place = frame.op(f"arg{extremum}", (x,), indices, metadata(operation), axes=axes)
    best = frame.op(f"reduce_{extremum}", (x,), values, axes=axes)
    return best, place


@handles("stablehlo.reduce_window")
def _reduce_window(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    args, out = raiser.args(frame, operation), out_of(operation)
    body = body_operation(operation.regions[0]) or ""
    if len(args) != 2 or not _neutral(args[1], body):
        raise ProgramError("a windowed reduction of several values, or one that does not start with nothing")
    x, one = frame.type(args[0]), (1,) * out.rank
    window = {
        "window_dimensions": integers(operation, "window_dimensions"),
        "window_strides": integers(operation, "window_strides", one),
        "base_dilation": integers(operation, "base_dilations", one),
        "window_dilation": integers(operation, "window_dilations", one),
    }
    padding = pairs(operation, "padding", out.rank)
    axis = _cumulative_axis(x, window, padding)
    if axis is not None and body in _CUMULATIVE:
        back = padding[axis][1] > 0
        found = frame.op(
            _CUMULATIVE[body], args[:1], out, metadata(operation), axis=axis, reverse=True if back else None
        )
        return (found,)
    if body not in _WINDOWED:
        raise ProgramError(f"a windowed reduction by {body or 'several operations'}")
    return (frame.op(_WINDOWED[body], args[:1], out, metadata(operation), padding=padding, **window),)


def _cumulative_axis(x: Type, window: dict[str, tuple[int, ...]], padding: tuple[tuple[int, int], ...]) -> int | None:
    """The axis along which a window sees all that is before (or behind) each element: a cumulative sum, lowered."""
    wide = [k for k, n in enumerate(window["window_dimensions"]) if n != 1]
    others = [window[name] for name in ("window_strides", "base_dilation", "window_dilation")]
    if len(wide) != 1 or any(n != 1 for sizes in others for n in sizes):
        return None
    n = x.shape[wide[0]]
    if window["window_dimensions"][wide[0]] != n or padding[wide[0]] not in ((n - 1, 0), (0, n - 1)):
        return None
    return wide[0] if all(p == (0, 0) for k, p in enumerate(padding) if k != wide[0]) else None
