"""How each first-order primitive is written: one table, `TABLE`, primitive -> function from a `Use` to text.

The public function chosen binds that primitive and nothing else, on every JAX version we support: `lax.select_n`
and not `jnp.where` (which wraps itself in a jit), `lax.dynamic_slice(allow_negative_indices=False)` (which adds no
wrap-around arithmetic). Where the infix operator does so too, the operator is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from reducer.errors import ProgramError
from reducer.ir.equations import Lit
from reducer.ir.types import Type
from reducer.lowering import texts
from reducer.lowering.texts import ADD, AND, ATOM, COMPARE, MUL, OR, SHIFT, UNARY, XOR, Expr, attribute, call


@dataclass(frozen=True, slots=True)
class Operand:
    """One argument of an equation: text if it is a variable, the scalar itself if it is one, and its type."""

    value: Expr | Lit
    type: Type

    @property
    def typed(self) -> str:
        """As an argument of a function: a scalar keeps its dtype."""
        return texts.scalar(self.value).text if isinstance(self.value, Lit) else self.value.text

    @property
    def plain(self) -> Expr:
        """Beside an array of its dtype: a scalar is a Python number, whose dtype JAX takes from the array."""
        return texts.number(self.value.value, self.value.dtype) if isinstance(self.value, Lit) else self.value

    @property
    def atom(self) -> str:
        """Something a method can be called on."""
        return self.typed if isinstance(self.value, Lit) else self.value.within(ATOM)


@dataclass(frozen=True, slots=True)
class Use:
    """One equation as its writer sees it."""

    primitive: str
    args: tuple[Operand, ...]
    attributes: dict[str, Any]
    outs: tuple[Type, ...]

    @property
    def out(self) -> Type:
        """Type of the first result."""
        return self.outs[0]

    def attr(self, name: str) -> str | None:
        """Text of an attribute, None if it is absent or None (the default of every function used here)."""
        value = self.attributes.get(name)
        return None if value is None else attribute(value)

    def need(self, name: str) -> Any:
        """Value of an attribute that has no default.

        Raises:
            ProgramError: it is missing.
        """
        if name not in self.attributes:
            raise ProgramError(f"{self.primitive} needs the attribute {name!r}")
        return self.attributes[name]


Writer = Callable[[Use], Expr]

TABLE: Final[dict[str, Writer]] = {}


def expression(use: Use) -> Expr:
    """Text of an equation's value (a tuple or list of values if it has several results).

    Raises:
        ProgramError: unknown primitive, wrong number of arguments, or a missing or malformed attribute.
    """
    writer = TABLE.get(use.primitive)
    if writer is None:
        raise ProgramError(
            f"unknown primitive {use.primitive!r}", hint="reducer/lowering/table.py lists the known ones"
        )
    try:
        return writer(use)
    except (IndexError, TypeError, ValueError) as error:
        # Attributes are data from a file: a wrong shape of one must not look like a bug of ours.
        raise ProgramError(f"malformed {use.primitive}: {error}") from error


def _register(*names: str) -> Callable[[Writer], Writer]:
    def register(writer: Writer) -> Writer:
        for name in names:
            TABLE[name] = writer
        return writer

    return register


def _args(use: Use, n: int) -> tuple[Operand, ...]:
    if len(use.args) != n:
        raise ProgramError(f"{use.primitive} takes {n} arguments, got {len(use.args)}")
    return use.args


def _function(name: str, n: int, *attributes: str) -> Writer:
    """``name(args, attribute=value)``, arguments and attributes in the order of the jaxpr."""

    def write(use: Use) -> Expr:
        keywords = {a: use.attr(a) for a in attributes}
        return call(name, *(a.typed for a in _args(use, n)), **keywords)

    return write


def _infix(symbol: str, precedence: int) -> Writer:
    """``x + y``. Chained comparisons mean something else in Python, so they never share a level."""

    def write(use: Use) -> Expr:
        x, y = _args(use, 2)
        # Two scalars: one must carry the dtype, or Python would compute the value itself.
        left = Expr(x.typed) if isinstance(x.value, Lit) and isinstance(y.value, Lit) else x.plain
        low = precedence + 1 if precedence == COMPARE else precedence
        return Expr(f"{left.within(low)} {symbol} {y.plain.within(precedence + 1)}", precedence)

    return write


for _name in "tanh sin cos tan exp log log1p expm1 sqrt floor ceil exp2 cbrt sinh cosh".split():
    TABLE[_name] = _function(f"jnp.{_name}", 1)
for _name in (
    "rsqrt logistic erf erf_inv erfc lgamma digamma asin acos atan asinh acosh atanh sign square is_finite "
    "population_count clz stop_gradient bessel_i0e bessel_i1e real imag conj abs"
).split():
    TABLE[_name] = _function(f"lax.{_name}", 1)
for _name in "atan2 nextafter rem igamma igammac zeta polygamma complex".split():
    TABLE[_name] = _function(f"lax.{_name}", 2)
for _name in "shift_right_logical shift_right_arithmetic pow".split():
    TABLE[_name] = _function(f"lax.{_name}", 2)
TABLE["copy"] = _function("jnp.copy", 1)
TABLE["round"] = _function("lax.round", 1, "rounding_method")
TABLE["integer_pow"] = _function("lax.integer_pow", 1, "y")
TABLE["reduce_precision"] = _function("lax.reduce_precision", 1, "exponent_bits", "mantissa_bits")
for _name, _symbol, _level in (
    ("add", "+", ADD),
    ("add_any", "+", ADD),
    ("sub", "-", ADD),
    ("mul", "*", MUL),
    ("shift_left", "<<", SHIFT),
    ("and", "&", AND),
    ("xor", "^", XOR),
    ("or", "|", OR),
    ("eq", "==", COMPARE),
    ("ne", "!=", COMPARE),
    ("lt", "<", COMPARE),
    ("le", "<=", COMPARE),
    ("gt", ">", COMPARE),
    ("ge", ">=", COMPARE),
):
    TABLE[_name] = _infix(_symbol, _level)


@_register("max", "min")
def _extremum(use: Use) -> Expr:
    x, y = _args(use, 2)
    name = "jnp.maximum" if use.primitive == "max" else "jnp.minimum"
    left = x.typed if isinstance(y.value, Lit) else x.plain.text
    return call(name, left, y.plain.text)


@_register("div")
def _div(use: Use) -> Expr:
    # `/` on integers is another operation in Python.
    return _infix("/", MUL)(use) if use.out.inexact else _function("lax.div", 2)(use)


@_register("neg", "not")
def _prefix(use: Use) -> Expr:
    (x,) = _args(use, 1)
    return Expr(f"{'-' if use.primitive == 'neg' else '~'}{x.atom}", UNARY)


@_register("one_minus_square")
def _one_minus_square(use: Use) -> Expr:
    # Some versions have a primitive for 1 - x*x; written so, it has the primitive's numbers to the last bit.
    (x,) = _args(use, 1)
    return Expr(f"(1 - {x.atom}) * (1 + {x.atom})", MUL)


@_register("select_n")
def _select_n(use: Use) -> Expr:
    return call("lax.select_n", *(a.typed for a in use.args))


@_register("clamp")
def _clamp(use: Use) -> Expr:
    return call("lax.clamp", *(a.typed for a in _args(use, 3)))


@_register("convert_element_type")
def _convert(use: Use) -> Expr:
    (x,) = _args(use, 1)
    if x.type.dtype == "complex64" or use.out.dtype == "bool":
        return call("lax.convert_element_type", x.typed, texts.dtype(use.out.dtype))
    return call(f"{x.atom}.astype", texts.dtype(use.out.dtype))


@_register("bitcast_convert_type")
def _bitcast(use: Use) -> Expr:
    (x,) = _args(use, 1)
    return call("lax.bitcast_convert_type", x.typed, texts.dtype(use.out.dtype))


@_register("reshape")
def _reshape(use: Use) -> Expr:
    (x,) = _args(use, 1)
    return call(f"{x.atom}.reshape", *(map(repr, use.out.shape) if use.out.shape else ("()",)))


@_register("transpose")
def _transpose(use: Use) -> Expr:
    (x,) = _args(use, 1)
    permutation = tuple(use.need("permutation"))
    if permutation == (1, 0):
        return Expr(f"{x.atom}.T")
    return call(f"{x.atom}.transpose", *map(attribute, permutation)) if permutation else Expr(x.typed)


@_register("squeeze")
def _squeeze(use: Use) -> Expr:
    (x,) = _args(use, 1)
    return call(f"{x.atom}.squeeze", attribute(tuple(use.need("dimensions"))))


@_register("broadcast_in_dim")
def _broadcast_in_dim(use: Use) -> Expr:
    (x,) = _args(use, 1)
    if isinstance(x.value, Lit):
        return texts.fill(use.out, x.value.value)
    if not x.type.shape:
        return call("jnp.broadcast_to", x.typed, attribute(use.out.shape))
    dims = attribute(tuple(use.need("broadcast_dimensions")))
    return call("lax.broadcast_in_dim", x.typed, attribute(use.out.shape), dims)


@_register("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_xor")
def _reduce(use: Use) -> Expr:
    (x,) = _args(use, 1)
    axes = tuple(use.need("axes"))
    # `x.sum()` accumulates narrow types in a wider one; for f32 it is the primitive itself.
    if use.primitive == "reduce_sum" and x.type.dtype == "float32" and axes:
        every = axes == tuple(range(x.type.rank))
        return call(f"{x.atom}.sum", *(() if every else (attribute(axes[0] if len(axes) == 1 else axes),)))
    return call(f"lax.{use.primitive}", x.typed, attribute(axes))


@_register("argmax", "argmin")
def _argmax(use: Use) -> Expr:
    (x,) = _args(use, 1)
    (axis,) = use.need("axes")
    return call(f"lax.{use.primitive}", x.typed, attribute(axis), texts.dtype(use.out.dtype))


@_register("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
def _cumulative(use: Use) -> Expr:
    (x,) = _args(use, 1)
    axis = attribute(use.attributes.get("axis", 0))
    return call(f"lax.{use.primitive}", x.typed, axis=axis, reverse=attribute(bool(use.attributes.get("reverse"))))


@_register("rev")
def _rev(use: Use) -> Expr:
    (x,) = _args(use, 1)
    return call("lax.rev", x.typed, attribute(tuple(use.need("dimensions"))))


@_register("dot_general")
def _dot_general(use: Use) -> Expr:
    x, w = _args(use, 2)
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


@_register("concatenate")
def _concatenate(use: Use) -> Expr:
    return call(
        "lax.concatenate", f"[{', '.join(a.typed for a in use.args)}]", attribute(use.attributes.get("dimension", 0))
    )


@_register("split")
def _split(use: Use) -> Expr:
    (x,) = _args(use, 1)
    axis = use.attributes.get("axis", 0)
    sizes = attribute(tuple(out.shape[axis] for out in use.outs))
    pieces = call("lax.split", x.typed, sizes, axis=attribute(axis))
    return Expr(f"{pieces.text}[0]") if len(use.outs) == 1 else pieces


@_register("slice")
def _slice(use: Use) -> Expr:
    (x,) = _args(use, 1)
    starts, limits = tuple(use.need("start_indices")), tuple(use.need("limit_indices"))
    return call("lax.slice", x.typed, attribute(starts), attribute(limits), *_optional(use.attr("strides")))


def _optional(text: str | None) -> tuple[str, ...]:
    return () if text is None else (text,)


def _starts(args: tuple[Operand, ...]) -> str:
    # A Python integer becomes an i32 index; one of another dtype must say so.
    texts_ = [a.plain.text if a.type.dtype == "int32" else a.typed for a in args]
    return f"({texts_[0]},)" if len(texts_) == 1 else f"({', '.join(texts_)})"


@_register("dynamic_slice")
def _dynamic_slice(use: Use) -> Expr:
    x, *starts = use.args
    sizes = attribute(use.out.shape)
    return call("lax.dynamic_slice", x.typed, _starts(tuple(starts)), sizes, allow_negative_indices="False")


@_register("dynamic_update_slice")
def _dynamic_update_slice(use: Use) -> Expr:
    x, update, *starts = use.args
    return call(
        "lax.dynamic_update_slice", x.typed, update.typed, _starts(tuple(starts)), allow_negative_indices="False"
    )


@_register("iota")
def _iota(use: Use) -> Expr:
    kind = texts.dtype(use.out.dtype)
    if use.out.rank == 1:
        return call("lax.iota", kind, attribute(use.out.shape[0]))
    return call("lax.broadcasted_iota", kind, attribute(use.out.shape), attribute(use.attributes.get("dimension", 0)))


@_register("pad")
def _pad(use: Use) -> Expr:
    x, value = _args(use, 2)
    return call("lax.pad", x.typed, value.typed, attribute(tuple(use.need("padding_config"))))


@_register("sort")
def _sort(use: Use) -> Expr:
    operands = [a.typed for a in use.args]
    keywords = {name: use.attr(name) for name in ("dimension", "is_stable", "num_keys")}
    return call("lax.sort", operands[0] if len(operands) == 1 else f"({', '.join(operands)})", **keywords)


@_register("top_k")
def _top_k(use: Use) -> Expr:
    (x,) = _args(use, 1)
    return call("lax.top_k", x.typed, attribute(use.out.shape[-1]))


@_register("optimization_barrier")
def _barrier(use: Use) -> Expr:
    operands = [a.typed for a in use.args]
    return call("lax.optimization_barrier", operands[0] if len(operands) == 1 else f"({', '.join(operands)})")


@_register("gather")
def _gather(use: Use) -> Expr:
    x, indices = _args(use, 2)
    keywords = {name: use.attr(name) for name in ("indices_are_sorted", "unique_indices", "mode", "fill_value")}
    return call(
        "lax.gather",
        x.typed,
        indices.typed,
        dimension_numbers=attribute(use.need("dimension_numbers")),
        slice_sizes=attribute(tuple(use.need("slice_sizes"))),
        **keywords,
    )


@_register("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max")
def _scatter(use: Use) -> Expr:
    keywords = {name: use.attr(name) for name in ("indices_are_sorted", "unique_indices", "mode")}
    return call(
        f"lax.{use.primitive.replace('-', '_')}",
        *(a.typed for a in _args(use, 3)),
        dimension_numbers=attribute(use.need("dimension_numbers")),
        **keywords,
    )


@_register("conv_general_dilated")
def _conv(use: Use) -> Expr:
    x, w = _args(use, 2)
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


@_register("random_bits")
def _random_bits(use: Use) -> Expr:
    (key,) = _args(use, 1)
    return call("jax.random.bits", key.typed, attribute(use.out.shape), texts.dtype(use.out.dtype))
