"""Writers of primitives on whole arrays: shapes, reductions, products, slices, sorting."""

from __future__ import annotations

from typing import Final

from reducer.ir.equations import GatherDims, Lit
from reducer.ir.types import Type
from reducer.lowering import texts
from reducer.lowering.texts import MUL, Expr, attribute, call
from reducer.lowering.writers import Operand, Use, Writer, arguments, registrar

WRITERS: Final[dict[str, Writer]] = {}
register = registrar(WRITERS)


@register("reshape")
def _reshape(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    return call(f"{x.atom}.reshape", *(map(repr, use.out.shape) if use.out.shape else ("()",)))


@register("transpose")
def _transpose(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    permutation = tuple(use.need("permutation"))
    if permutation == (1, 0):
        return Expr(f"{x.atom}.T")
    return call(f"{x.atom}.transpose", *map(attribute, permutation)) if permutation else Expr(x.typed)


@register("squeeze")
def _squeeze(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    return call(f"{x.atom}.squeeze", attribute(tuple(use.need("dimensions"))))


@register("broadcast_in_dim")
def _broadcast_in_dim(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    if isinstance(x.value, Lit):
        return texts.fill(use.out, x.value.value)
    if not x.type.shape:
        return call("jnp.broadcast_to", x.typed, attribute(use.out.shape))
    dims = attribute(tuple(use.need("broadcast_dimensions")))
    return call("lax.broadcast_in_dim", x.typed, attribute(use.out.shape), dims)


@register("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_xor")
def _reduce(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    axes = tuple(use.need("axes"))
    # `x.sum()` accumulates narrow types in a wider one; for f32 it is the primitive itself.
    if use.primitive == "reduce_sum" and x.type.dtype == "float32" and axes:
        every = axes == tuple(range(x.type.rank))
        return call(f"{x.atom}.sum", *(() if every else (attribute(axes[0] if len(axes) == 1 else axes),)))
    return call(f"lax.{use.primitive}", x.typed, attribute(axes))


@register("argmax", "argmin")
def _argmax(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    (axis,) = use.need("axes")
    return call(f"lax.{use.primitive}", x.typed, attribute(axis), texts.dtype(use.out.dtype))


@register("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
def _cumulative(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    axis = attribute(use.attributes.get("axis", 0))
    return call(f"lax.{use.primitive}", x.typed, axis=axis, reverse=attribute(bool(use.attributes.get("reverse"))))


@register("rev")
def _rev(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    return call("lax.rev", x.typed, attribute(tuple(use.need("dimensions"))))


@register("dot_general")
def _dot_general(use: Use) -> Expr:
    x, w = arguments(use, 2)
    (lc, rc), (lb, rb) = use.need("dimension_numbers")
    numbers = ((tuple(lc), tuple(rc)), (tuple(lb), tuple(rb)))
    one_dtype = x.type.dtype == w.type.dtype == use.out.dtype
    plain = numbers == (((1,), (0,)), ((), ())) and x.type.rank == w.type.rank == 2
    if plain and one_dtype and use.attr("precision") is None:
        return Expr(f"{x.plain.within(MUL)} @ {w.plain.within(MUL + 1)}", MUL)
    return call(
        "lax.dot_general",
        x.typed,
        w.typed,
        attribute(numbers),
        precision=use.attr("precision"),
        preferred_element_type=texts.dtype(use.out.dtype),
    )


@register("concatenate")
def _concatenate(use: Use) -> Expr:
    return call(
        "lax.concatenate", f"[{', '.join(a.typed for a in use.args)}]", attribute(use.attributes.get("dimension", 0))
    )


@register("split")
def _split(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    axis = use.attributes.get("axis", 0)
    sizes = attribute(tuple(out.shape[axis] for out in use.outs))
    pieces = call("lax.split", x.typed, sizes, axis=attribute(axis))
    return Expr(f"{pieces.text}[0]") if len(use.outs) == 1 else pieces


@register("slice")
def _slice(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    starts, limits = tuple(use.need("start_indices")), tuple(use.need("limit_indices"))
    return call("lax.slice", x.typed, attribute(starts), attribute(limits), *_optional(use.attr("strides")))


def _optional(text: str | None) -> tuple[str, ...]:
    return () if text is None else (text,)


def _starts(args: tuple[Operand, ...]) -> str:
    # A Python integer becomes an i32 index; one of another dtype must say so.
    texts_ = [a.plain.text if a.type.dtype == "int32" else a.typed for a in args]
    return f"({texts_[0]},)" if len(texts_) == 1 else f"({', '.join(texts_)})"


@register("dynamic_slice")
def _dynamic_slice(use: Use) -> Expr:
    x, *starts = use.args
    sizes = attribute(use.out.shape)
    return call("lax.dynamic_slice", x.typed, _starts(tuple(starts)), sizes, allow_negative_indices="False")


@register("dynamic_update_slice")
def _dynamic_update_slice(use: Use) -> Expr:
    x, update, *starts = use.args
    return call(
        "lax.dynamic_update_slice", x.typed, update.typed, _starts(tuple(starts)), allow_negative_indices="False"
    )


@register("iota")
def _iota(use: Use) -> Expr:
    kind = texts.dtype(use.out.dtype)
    if use.out.rank == 1:
        return call("lax.iota", kind, attribute(use.out.shape[0]))
    return call("lax.broadcasted_iota", kind, attribute(use.out.shape), attribute(use.attributes.get("dimension", 0)))


@register("pad")
def _pad(use: Use) -> Expr:
    x, value = arguments(use, 2)
    return call("lax.pad", x.typed, value.typed, attribute(tuple(use.need("padding_config"))))


@register("sort")
def _sort(use: Use) -> Expr:
    operands = [a.typed for a in use.args]
    keywords = {name: use.attr(name) for name in ("dimension", "is_stable", "num_keys")}
    return call("lax.sort", operands[0] if len(operands) == 1 else f"({', '.join(operands)})", **keywords)


@register("top_k")
def _top_k(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    # Whether it is stable is no choice on every version; it is where the choice is not offered.
    axis = use.attributes.get("axis", x.type.rank - 1)
    last = axis in (-1, x.type.rank - 1)
    return call("lax.top_k", x.typed, attribute(use.out.shape[axis]), axis=None if last else attribute(axis))


@register("optimization_barrier")
def _barrier(use: Use) -> Expr:
    operands = [a.typed for a in use.args]
    return call("lax.optimization_barrier", operands[0] if len(operands) == 1 else f"({', '.join(operands)})")


@register("gather")
def _gather(use: Use) -> Expr:
    x, indices = arguments(use, 2)
    dims = use.need("dimension_numbers")
    keywords = {name: use.attr(name) for name in ("indices_are_sorted", "unique_indices", "mode")}
    fill = use.attributes.get("fill_value")
    return call(
        "lax.gather",
        x.typed,
        indices.typed,
        dimension_numbers=attribute(dims),
        slice_sizes=attribute(tuple(use.attributes.get("slice_sizes") or _slice_sizes(x.type, use.out, dims))),
        fill_value=None if fill is None else texts.number(str(fill), use.out.dtype).text,
        **keywords,
    )


def _slice_sizes(operand: Type, out: Type, dims: GatherDims) -> list[int]:
    """Sizes of the slices a gather takes: what the offset dimensions of the result say, 1 elsewhere."""
    one = {*dims.collapsed_slice_dims, *dims.operand_batching_dims}
    sizes = iter([out.shape[i] for i in dims.offset_dims])
    return [1 if axis in one else next(sizes) for axis in range(operand.rank)]


@register("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max")
def _scatter(use: Use) -> Expr:
    keywords = {name: use.attr(name) for name in ("indices_are_sorted", "unique_indices", "mode")}
    return call(
        f"lax.{use.primitive.replace('-', '_')}",
        *(a.typed for a in arguments(use, 3)),
        dimension_numbers=attribute(use.need("dimension_numbers")),
        **keywords,
    )


@register("conv_general_dilated")
def _conv(use: Use) -> Expr:
    x, w = arguments(use, 2)
    keywords = {
        name: use.attr(name)
        for name in (
            "lhs_dilation",
            "rhs_dilation",
            "dimension_numbers",
            "feature_group_count",
            "batch_group_count",
            "precision",
        )
    }
    return call(
        "lax.conv_general_dilated",
        x.typed,
        w.typed,
        window_strides=attribute(tuple(use.need("window_strides"))),
        padding=attribute(tuple(use.need("padding"))),
        preferred_element_type=texts.dtype(use.out.dtype),
        **keywords,
    )
