"""Type rules of primitives that move, combine or reduce elements."""

from __future__ import annotations

from typing import Any

from reducer.errors import ProgramError
from reducer.ir.rule_table import RULES, Attributes, Rule, arity, need, one, rule
from reducer.ir.types import Type


@rule("broadcast_in_dim")
def _broadcast_in_dim(args: tuple[Type, ...], attrs: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 1)
    shape, dims = one(recorded).shape, attrs.get("broadcast_dimensions", ())
    need(len(dims) == args[0].rank, "one broadcast dimension per axis of the operand")
    need(tuple(sorted(set(dims))) == tuple(dims), "broadcast dimensions rise")
    for axis, dim in enumerate(dims):
        need(0 <= dim < len(shape), f"broadcast dimension {dim} is out of range")
        need(args[0].shape[axis] in (1, shape[dim]), f"{args[0]} does not broadcast to {shape}")
    return (args[0].with_shape(shape),)


@rule("reshape")
def _reshape(args: tuple[Type, ...], _: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 1)
    out = args[0].with_shape(one(recorded).shape)
    need(out.size == args[0].size, f"{args[0]} has another number of elements than {out}")
    return (out,)


@rule("transpose")
def _transpose(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 1)
    permutation = attrs.get("permutation", ())
    need(sorted(permutation) == list(range(args[0].rank)), f"not a permutation of the axes of {args[0]}")
    return (args[0].with_shape(tuple(args[0].shape[i] for i in permutation)),)


@rule("squeeze")
def _squeeze(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 1)
    dims = _axes(attrs.get("dimensions", ()), args[0])
    need(all(args[0].shape[d] == 1 for d in dims), "only axes of size 1 are squeezed")
    return (_without(args[0], dims),)


def _axes(axes: Any, operand: Type) -> tuple[int, ...]:
    out = tuple(axes)
    fits = len(set(out)) == len(out) and all(isinstance(a, int) and 0 <= a < operand.rank for a in out)
    need(fits, f"axes {out} do not fit {operand}")
    return out


def _without(operand: Type, axes: tuple[int, ...]) -> Type:
    return operand.with_shape(tuple(n for i, n in enumerate(operand.shape) if i not in axes))


def _reduction(kinds: str) -> Rule:
    def check(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
        arity(args, 1)
        kind = "f" if args[0].inexact else "i" if args[0].integer else "b"
        need(kind in kinds, f"does not take {args[0].dtype}")
        return (_without(args[0], _axes(attrs.get("axes", ()), args[0])),)

    return check


for _name in ("reduce_sum", "reduce_prod"):
    RULES[_name] = _reduction("fi")
for _name in ("reduce_max", "reduce_min"):
    RULES[_name] = _reduction("fib")
for _name in ("reduce_and", "reduce_or", "reduce_xor"):
    RULES[_name] = _reduction("ib")


@rule("argmax", "argmin")
def _argmax(args: tuple[Type, ...], attrs: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 1)
    out = _without(args[0], _axes(attrs.get("axes", ()), args[0]))
    need(one(recorded).integer, "gives an integer index")
    return (out.with_dtype(recorded[0].dtype),)


@rule("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
def _cumulative(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 1)
    _axes((attrs.get("axis", 0),), args[0])
    return (args[0],)


@rule("rev")
def _rev(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 1)
    _axes(attrs.get("dimensions", ()), args[0])
    return (args[0],)


@rule("dot_general")
def _dot_general(args: tuple[Type, ...], attrs: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 2)
    lhs, rhs = args
    if "dimension_numbers" not in attrs:
        raise ProgramError("needs dimension_numbers")
    (lc, rc), (lb, rb) = attrs["dimension_numbers"]
    left, right = _axes((*lb, *lc), lhs), _axes((*rb, *rc), rhs)
    need(len(lb) == len(rb) and len(lc) == len(rc), "as many axes on the left as on the right")
    for i, j in zip(left, right, strict=True):
        need(lhs.shape[i] == rhs.shape[j], f"axis {i} of {lhs} does not match axis {j} of {rhs}")
    batch = tuple(lhs.shape[i] for i in lb)
    shape = batch + _without(lhs, left).shape + _without(rhs, right).shape
    return (Type(recorded[0].dtype if recorded else lhs.dtype, shape),)


@rule("concatenate")
def _concatenate(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
    need(len(args) > 0, "takes at least one argument")
    axis = attrs.get("dimension", 0)
    _axes((axis,), args[0])
    need(len({(a.dtype, _without(a, (axis,)).shape) for a in args if a.rank > axis}) == 1, "shapes do not fit")
    need(all(a.rank == args[0].rank for a in args), "ranks differ")
    shape = list(args[0].shape)
    shape[axis] = sum(a.shape[axis] for a in args)
    return (args[0].with_shape(tuple(shape)),)


@rule("split")
def _split(args: tuple[Type, ...], attrs: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 1)
    axis = attrs.get("axis", 0)
    _axes((axis,), args[0])
    need(all(r.rank == args[0].rank for r in recorded), "ranks differ")
    sizes = [r.shape[axis] for r in recorded]
    need(sum(sizes) == args[0].shape[axis], f"the pieces of {args[0]} do not add up")
    shapes = [(*args[0].shape[:axis], n, *args[0].shape[axis + 1 :]) for n in sizes]
    return tuple(args[0].with_shape(s) for s in shapes)


@rule("slice")
def _slice(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 1)
    x, starts, limits = args[0], attrs.get("start_indices", ()), attrs.get("limit_indices", ())
    strides = attrs.get("strides") or (1,) * x.rank
    need(len(starts) == len(limits) == len(strides) == x.rank, "one start, limit and stride per axis")
    shape = []
    for start, limit, stride, size in zip(starts, limits, strides, x.shape, strict=True):
        need(0 <= start <= limit <= size and stride >= 1, f"slice {start}:{limit}:{stride} does not fit {x}")
        shape.append(-(-(limit - start) // stride))
    return (x.with_shape(tuple(shape)),)


def _starts(operand: Type, starts: tuple[Type, ...]) -> None:
    need(len(starts) == operand.rank, "one start index per axis")
    need(all(not s.shape and s.integer for s in starts), "start indices are integer scalars")


@rule("dynamic_slice")
def _dynamic_slice(args: tuple[Type, ...], _: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    need(len(args) > 0, "takes an operand")
    _starts(args[0], args[1:])
    out = args[0].with_shape(one(recorded).shape)
    fits = out.rank == args[0].rank and all(n <= m for n, m in zip(out.shape, args[0].shape, strict=False))
    need(fits, f"{out} is no slice of {args[0]}")
    return (out,)


@rule("dynamic_update_slice")
def _dynamic_update_slice(args: tuple[Type, ...], _: Attributes, __: tuple[Type, ...]) -> tuple[Type, ...]:
    need(len(args) > 1, "takes an operand and an update")
    x, update = args[:2]
    _starts(x, args[2:])
    fits = update.dtype == x.dtype and update.rank == x.rank
    need(fits and all(n <= m for n, m in zip(update.shape, x.shape, strict=True)), f"{update} does not fit {x}")
    return (x,)


@rule("iota")
def _iota(args: tuple[Type, ...], attrs: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 0)
    _axes((attrs.get("dimension", 0),), one(recorded))
    return recorded


@rule("pad")
def _pad(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 2)
    config = attrs.get("padding_config", ())
    need(len(config) == args[0].rank and not args[1].shape, "one padding per axis, and a scalar to pad with")
    need(args[0].dtype == args[1].dtype, "dtypes differ")
    shape = tuple(
        low + high + n + max(n - 1, 0) * inner for n, (low, high, inner) in zip(args[0].shape, config, strict=True)
    )
    need(all(n >= 0 for n in shape), "a padded size is negative")
    return (args[0].with_shape(shape),)


@rule("sort")
def _sort(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
    need(len(args) > 0 and len({a.shape for a in args}) == 1, "sorts arrays of one shape")
    _axes((attrs.get("dimension", 0),), args[0])
    return args


@rule("top_k")
def _top_k(args: tuple[Type, ...], _: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 1)
    need(len(recorded) == 2 and args[0].rank > 0, "gives values and indices of an array")
    k = recorded[0].shape[-1] if recorded[0].shape else 0
    need(0 < k <= args[0].shape[-1], f"cannot take {k} of {args[0]}")
    out = args[0].with_shape((*args[0].shape[:-1], k))
    return out, out.with_dtype("int32")


@rule("optimization_barrier")
def _barrier(args: tuple[Type, ...], _: Attributes, __: tuple[Type, ...]) -> tuple[Type, ...]:
    return args


@rule("scatter", "scatter-add", "scatter-mul", "scatter-min", "scatter-max")
def _scatter(args: tuple[Type, ...], _: Attributes, __: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 3)
    need(args[1].integer, "indices are integers")
    return (args[0],)


@rule("gather", "conv_general_dilated", "random_bits")
def _as_recorded(_: tuple[Type, ...], __: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    # The result depends on dimension numbers in ways JAX itself checks while tracing; the worker compares then.
    return (one(recorded),)
