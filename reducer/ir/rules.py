"""Type rules of first-order primitives: what an equation's results must be, given its arguments.

One table, `RULES`. Attributes are the parameters a jaxpr shows, without those that merely repeat the result's type
(`shape`, `new_sizes`, `new_dtype`, ...) and without sharding; where the result's type cannot be derived it is the
parameter, so a rule also gets the recorded result types and checks them.

Rules know shapes and dtypes. Memory spaces follow one rule for all: every array argument lies in one space, and so
do the results (`ANY_MEMORY` are the exceptions).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from reducer.errors import ProgramError
from reducer.ir.equations import Op
from reducer.ir.types import Memory, Type

Attributes = dict[str, Any]
#: (argument types, attributes, recorded result types) -> result types. Raises ProgramError.
Rule = Callable[[tuple[Type, ...], Attributes, tuple[Type, ...]], tuple[Type, ...]]

RULES: Final[dict[str, Rule]] = {}
#: Primitives that compute nothing, so each value stays where it is.
ANY_MEMORY: Final = frozenset(("optimization_barrier",))


def infer(
    primitive: str, args: tuple[Type, ...], attributes: Attributes, recorded: tuple[Type, ...] = ()
) -> tuple[Type, ...]:
    """Result types of a primitive.

    Args:
        primitive: a key of `RULES`.
        args: argument types; scalars have shape ``()``.
        attributes: by name.
        recorded: result types as recorded; needed by primitives whose size or dtype is a parameter.

    Raises:
        ProgramError: unknown primitive, wrong arity, shapes or dtypes that do not fit, or mixed memory spaces.
    """
    rule = RULES.get(primitive)
    if rule is None:
        raise ProgramError(f"unknown primitive {primitive!r}", hint="reducer/ir/rules.py lists the known ones")
    outs = rule(args, attributes, recorded)
    if primitive in ANY_MEMORY:
        return outs
    memory = memory_of(args)
    return tuple(out.in_memory(memory) for out in outs)


def check_op(op: Op, args: tuple[Type, ...]) -> None:
    """Compare an equation's recorded result types with the rule.

    Raises:
        ProgramError: they differ, or the rule refuses the arguments.
    """
    recorded = tuple(var.type for var in op.outs)
    expected = infer(op.primitive, args, dict(op.attributes), recorded)
    if expected != recorded:
        want, got = " ".join(map(str, expected)), " ".join(map(str, recorded))
        raise ProgramError(f"{op.primitive} gives {want}, but {got} is recorded")


def memory_of(args: tuple[Type, ...]) -> Memory:
    """The one memory space of the array arguments (scalars go along with anything; none at all: the device).

    Raises:
        ProgramError: host and device arrays are mixed, which JAX rejects while tracing.
    """
    spaces = {a.memory for a in args if a.shape} or {a.memory for a in args}
    if len(spaces) > 1 or (spaces == {"device"} and any(a.on_host for a in args)):
        raise ProgramError("host and device values are mixed in one operation", hint="transfer one of them first")
    return spaces.pop() if spaces else "device"


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise ProgramError(message)


def _arity(args: tuple[Type, ...], n: int) -> None:
    _need(len(args) == n, f"takes {n} arguments, got {len(args)}")


def broadcast(args: tuple[Type, ...]) -> tuple[int, ...]:
    """Common shape of elementwise arguments: equal ranks with axes of size 1 stretched; scalars fit anything.

    Raises:
        ProgramError: the shapes do not fit.
    """
    shapes = [a.shape for a in args if a.shape]
    if not shapes:
        return ()
    _need(len({len(s) for s in shapes}) == 1, f"ranks differ: {', '.join(map(str, args))}")
    out = []
    for sizes in zip(*shapes, strict=True):
        wide = {n for n in sizes if n != 1}
        _need(len(wide) <= 1, f"shapes do not fit: {', '.join(map(str, args))}")
        out.append(wide.pop() if wide else 1)
    return tuple(out)


def _elementwise(n: int, kinds: str, result: str | None = None) -> Rule:
    """`n` arguments of one dtype whose kind is in `kinds` (f float, i integer, b bool); result dtype or the same."""

    def rule(args: tuple[Type, ...], _: Attributes, __: tuple[Type, ...]) -> tuple[Type, ...]:
        _arity(args, n)
        _need(len({a.dtype for a in args}) == 1, f"dtypes differ: {', '.join(map(str, args))}")
        kind = "f" if args[0].inexact else "i" if args[0].integer else "b" if args[0].dtype == "bool" else "k"
        _need(kind in kinds, f"does not take {args[0].dtype}")
        return (Type(result or args[0].dtype, broadcast(args)),)

    return rule


_FLOAT_FUNCTIONS: Final = (
    "tanh sin cos tan exp exp2 log log1p expm1 sqrt rsqrt cbrt logistic erf erf_inv erfc lgamma digamma "
    "floor ceil round asin acos atan sinh cosh asinh acosh atanh reduce_precision"
)
for _name in _FLOAT_FUNCTIONS.split():
    RULES[_name] = _elementwise(1, "f")
for _name in ("neg", "sign", "square", "integer_pow"):
    RULES[_name] = _elementwise(1, "fi")
for _name in ("copy", "stop_gradient"):
    RULES[_name] = _elementwise(1, "fib")
for _name in ("not",):
    RULES[_name] = _elementwise(1, "ib")
for _name in ("population_count", "clz"):
    RULES[_name] = _elementwise(1, "i")
RULES["is_finite"] = _elementwise(1, "f", "bool")
for _name in ("add", "sub", "mul", "div", "rem", "add_any"):
    RULES[_name] = _elementwise(2, "fi")
for _name in ("max", "min"):
    RULES[_name] = _elementwise(2, "fib")
for _name in ("atan2", "nextafter"):
    RULES[_name] = _elementwise(2, "f")
for _name in ("and", "or", "xor"):
    RULES[_name] = _elementwise(2, "ib")
for _name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
    RULES[_name] = _elementwise(2, "i")
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    RULES[_name] = _elementwise(2, "fib", "bool")


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for name in names:
            RULES[name] = rule
        return rule

    return register


def _one(recorded: tuple[Type, ...]) -> Type:
    _need(len(recorded) == 1, f"has one result, got {len(recorded)}")
    return recorded[0]


@_rule("abs")
def _abs(args: tuple[Type, ...], _: Attributes, __: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 1)
    _need(args[0].inexact or args[0].integer, f"does not take {args[0].dtype}")
    return (args[0].with_dtype("float32") if args[0].dtype == "complex64" else args[0],)


@_rule("pow")
def _pow(args: tuple[Type, ...], _: Attributes, __: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 2)
    _need(args[0].inexact, f"does not take {args[0].dtype}")
    _need(args[1].dtype == args[0].dtype or args[1].integer, f"dtypes differ: {args[0]}, {args[1]}")
    return (Type(args[0].dtype, broadcast(args)),)


@_rule("select_n")
def _select_n(args: tuple[Type, ...], _: Attributes, __: tuple[Type, ...]) -> tuple[Type, ...]:
    _need(len(args) >= 2, "takes a selector and at least one case")
    which, *cases = args
    _need(which.dtype == "bool" or which.dtype == "int32", f"selects by bool or int32, not {which.dtype}")
    _need(which.dtype != "bool" or len(cases) <= 2, "a bool selects among at most two cases")
    _need(len({(c.dtype, c.shape) for c in cases}) == 1, "cases differ in type")
    _need(which.shape in ((), cases[0].shape), f"selector {which} does not fit {cases[0]}")
    return (cases[0],)


@_rule("clamp")
def _clamp(args: tuple[Type, ...], _: Attributes, __: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 3)
    low, x, high = args
    _need(low.dtype == x.dtype == high.dtype, "dtypes differ")
    _need(low.shape in ((), x.shape) and high.shape in ((), x.shape), "bounds do not fit the operand")
    return (x,)


@_rule("convert_element_type")
def _convert(args: tuple[Type, ...], _: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 1)
    return (args[0].with_dtype(_one(recorded).dtype),)


@_rule("bitcast_convert_type")
def _bitcast(args: tuple[Type, ...], _: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 1)
    out = args[0].with_dtype(_one(recorded).dtype)
    _need(out.nbytes == args[0].nbytes, f"{args[0].dtype} and {out.dtype} differ in width")
    return (out,)


@_rule("broadcast_in_dim")
def _broadcast_in_dim(args: tuple[Type, ...], attrs: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 1)
    shape, dims = _one(recorded).shape, attrs.get("broadcast_dimensions", ())
    _need(len(dims) == args[0].rank, "one broadcast dimension per axis of the operand")
    _need(tuple(sorted(set(dims))) == tuple(dims), "broadcast dimensions rise")
    for axis, dim in enumerate(dims):
        _need(0 <= dim < len(shape), f"broadcast dimension {dim} is out of range")
        _need(args[0].shape[axis] in (1, shape[dim]), f"{args[0]} does not broadcast to {shape}")
    return (args[0].with_shape(shape),)


@_rule("reshape")
def _reshape(args: tuple[Type, ...], _: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 1)
    out = args[0].with_shape(_one(recorded).shape)
    _need(out.size == args[0].size, f"{args[0]} has another number of elements than {out}")
    return (out,)


@_rule("transpose")
def _transpose(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 1)
    permutation = attrs.get("permutation", ())
    _need(sorted(permutation) == list(range(args[0].rank)), f"not a permutation of the axes of {args[0]}")
    return (args[0].with_shape(tuple(args[0].shape[i] for i in permutation)),)


@_rule("squeeze")
def _squeeze(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 1)
    dims = _axes(attrs.get("dimensions", ()), args[0])
    _need(all(args[0].shape[d] == 1 for d in dims), "only axes of size 1 are squeezed")
    return (_without(args[0], dims),)


def _axes(axes: Any, operand: Type) -> tuple[int, ...]:
    out = tuple(axes)
    fits = len(set(out)) == len(out) and all(isinstance(a, int) and 0 <= a < operand.rank for a in out)
    _need(fits, f"axes {out} do not fit {operand}")
    return out


def _without(operand: Type, axes: tuple[int, ...]) -> Type:
    return operand.with_shape(tuple(n for i, n in enumerate(operand.shape) if i not in axes))


def _reduction(kinds: str) -> Rule:
    def rule(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
        _arity(args, 1)
        kind = "f" if args[0].inexact else "i" if args[0].integer else "b"
        _need(kind in kinds, f"does not take {args[0].dtype}")
        return (_without(args[0], _axes(attrs.get("axes", ()), args[0])),)

    return rule


for _name in ("reduce_sum", "reduce_prod"):
    RULES[_name] = _reduction("fi")
for _name in ("reduce_max", "reduce_min"):
    RULES[_name] = _reduction("fib")
for _name in ("reduce_and", "reduce_or", "reduce_xor"):
    RULES[_name] = _reduction("ib")


@_rule("argmax", "argmin")
def _argmax(args: tuple[Type, ...], attrs: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 1)
    out = _without(args[0], _axes(attrs.get("axes", ()), args[0]))
    _need(_one(recorded).integer, "gives an integer index")
    return (out.with_dtype(recorded[0].dtype),)


@_rule("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
def _cumulative(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 1)
    _axes((attrs.get("axis", 0),), args[0])
    return (args[0],)


@_rule("rev")
def _rev(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 1)
    _axes(attrs.get("dimensions", ()), args[0])
    return (args[0],)


@_rule("dot_general")
def _dot_general(args: tuple[Type, ...], attrs: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 2)
    lhs, rhs = args
    if "dimension_numbers" not in attrs:
        raise ProgramError("needs dimension_numbers")
    (lc, rc), (lb, rb) = attrs["dimension_numbers"]
    left, right = _axes((*lb, *lc), lhs), _axes((*rb, *rc), rhs)
    _need(len(lb) == len(rb) and len(lc) == len(rc), "as many axes on the left as on the right")
    for i, j in zip(left, right, strict=True):
        _need(lhs.shape[i] == rhs.shape[j], f"axis {i} of {lhs} does not match axis {j} of {rhs}")
    batch = tuple(lhs.shape[i] for i in lb)
    shape = batch + _without(lhs, left).shape + _without(rhs, right).shape
    return (Type(recorded[0].dtype if recorded else lhs.dtype, shape),)


@_rule("concatenate")
def _concatenate(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
    _need(len(args) > 0, "takes at least one argument")
    axis = attrs.get("dimension", 0)
    _axes((axis,), args[0])
    _need(len({(a.dtype, _without(a, (axis,)).shape) for a in args if a.rank > axis}) == 1, "shapes do not fit")
    _need(all(a.rank == args[0].rank for a in args), "ranks differ")
    shape = list(args[0].shape)
    shape[axis] = sum(a.shape[axis] for a in args)
    return (args[0].with_shape(tuple(shape)),)


@_rule("split")
def _split(args: tuple[Type, ...], attrs: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 1)
    axis = attrs.get("axis", 0)
    _axes((axis,), args[0])
    _need(all(r.rank == args[0].rank for r in recorded), "ranks differ")
    sizes = [r.shape[axis] for r in recorded]
    _need(sum(sizes) == args[0].shape[axis], f"the pieces of {args[0]} do not add up")
    shapes = [(*args[0].shape[:axis], n, *args[0].shape[axis + 1 :]) for n in sizes]
    return tuple(args[0].with_shape(s) for s in shapes)


@_rule("slice")
def _slice(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 1)
    x, starts, limits = args[0], attrs.get("start_indices", ()), attrs.get("limit_indices", ())
    strides = attrs.get("strides") or (1,) * x.rank
    _need(len(starts) == len(limits) == len(strides) == x.rank, "one start, limit and stride per axis")
    shape = []
    for start, limit, stride, size in zip(starts, limits, strides, x.shape, strict=True):
        _need(0 <= start <= limit <= size and stride >= 1, f"slice {start}:{limit}:{stride} does not fit {x}")
        shape.append(-(-(limit - start) // stride))
    return (x.with_shape(tuple(shape)),)


def _starts(operand: Type, starts: tuple[Type, ...]) -> None:
    _need(len(starts) == operand.rank, "one start index per axis")
    _need(all(not s.shape and s.integer for s in starts), "start indices are integer scalars")


@_rule("dynamic_slice")
def _dynamic_slice(args: tuple[Type, ...], _: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    _need(len(args) > 0, "takes an operand")
    _starts(args[0], args[1:])
    out = args[0].with_shape(_one(recorded).shape)
    fits = out.rank == args[0].rank and all(n <= m for n, m in zip(out.shape, args[0].shape, strict=False))
    _need(fits, f"{out} is no slice of {args[0]}")
    return (out,)


@_rule("dynamic_update_slice")
def _dynamic_update_slice(args: tuple[Type, ...], _: Attributes, __: tuple[Type, ...]) -> tuple[Type, ...]:
    _need(len(args) > 1, "takes an operand and an update")
    x, update = args[:2]
    _starts(x, args[2:])
    fits = update.dtype == x.dtype and update.rank == x.rank
    _need(fits and all(n <= m for n, m in zip(update.shape, x.shape, strict=True)), f"{update} does not fit {x}")
    return (x,)


@_rule("iota")
def _iota(args: tuple[Type, ...], attrs: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 0)
    _axes((attrs.get("dimension", 0),), _one(recorded))
    return recorded


@_rule("pad")
def _pad(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 2)
    config = attrs.get("padding_config", ())
    _need(len(config) == args[0].rank and not args[1].shape, "one padding per axis, and a scalar to pad with")
    _need(args[0].dtype == args[1].dtype, "dtypes differ")
    shape = tuple(
        low + high + n + max(n - 1, 0) * inner for n, (low, high, inner) in zip(args[0].shape, config, strict=True)
    )
    _need(all(n >= 0 for n in shape), "a padded size is negative")
    return (args[0].with_shape(shape),)


@_rule("sort")
def _sort(args: tuple[Type, ...], attrs: Attributes, _: tuple[Type, ...]) -> tuple[Type, ...]:
    _need(len(args) > 0 and len({a.shape for a in args}) == 1, "sorts arrays of one shape")
    _axes((attrs.get("dimension", 0),), args[0])
    return args


@_rule("top_k")
def _top_k(args: tuple[Type, ...], _: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 1)
    _need(len(recorded) == 2 and args[0].rank > 0, "gives values and indices of an array")
    k = recorded[0].shape[-1] if recorded[0].shape else 0
    _need(0 < k <= args[0].shape[-1], f"cannot take {k} of {args[0]}")
    out = args[0].with_shape((*args[0].shape[:-1], k))
    return out, out.with_dtype("int32")


@_rule("optimization_barrier")
def _barrier(args: tuple[Type, ...], _: Attributes, __: tuple[Type, ...]) -> tuple[Type, ...]:
    return args


@_rule("scatter", "scatter-add", "scatter-mul", "scatter-min", "scatter-max")
def _scatter(args: tuple[Type, ...], _: Attributes, __: tuple[Type, ...]) -> tuple[Type, ...]:
    _arity(args, 3)
    _need(args[1].integer, "indices are integers")
    return (args[0],)


@_rule("gather", "conv_general_dilated", "random_bits")
def _as_recorded(_: tuple[Type, ...], __: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    # The result depends on dimension numbers in ways JAX itself checks while tracing; the worker compares then.
    return (_one(recorded),)
