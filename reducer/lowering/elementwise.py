"""Writers of elementwise primitives."""

from __future__ import annotations

from typing import Final

from reducer.ir.equations import Lit
from reducer.lowering import texts
from reducer.lowering.texts import ADD, AND, COMPARE, MUL, OR, SHIFT, UNARY, XOR, Expr, call
from reducer.lowering.writers import Use, Writer, arguments, function, registrar

WRITERS: Final[dict[str, Writer]] = {}
register = registrar(WRITERS)


def _infix(symbol: str, precedence: int) -> Writer:
    """``x + y``. Chained comparisons mean something else in Python, so they never share a level."""

    def write(use: Use) -> Expr:
        x, y = arguments(use, 2)
        # Between two scalars Python would compute the value itself, and it turns `1.0 < x` into `x > 1.0`.
        keep = isinstance(x.value, Lit) and (isinstance(y.value, Lit) or precedence == COMPARE)
        left = Expr(x.typed) if keep else x.plain
        low = precedence + 1 if precedence == COMPARE else precedence
        return Expr(f"{left.within(low)} {symbol} {y.plain.within(precedence + 1)}", precedence)

    return write


for _name in (
    "tanh",
    "sin",
    "cos",
    "tan",
    "exp",
    "log",
    "log1p",
    "log2",
    "expm1",
    "sqrt",
    "floor",
    "ceil",
    "exp2",
    "cbrt",
    "sinh",
    "cosh",
):
    WRITERS[_name] = function(f"jnp.{_name}", 1)
for _name in (
    "rsqrt",
    "logistic",
    "erf",
    "erf_inv",
    "erfc",
    "lgamma",
    "digamma",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
    "sign",
    "square",
    "is_finite",
    "population_count",
    "clz",
    "stop_gradient",
    "abs",
):
    WRITERS[_name] = function(f"lax.{_name}", 1)
for _name in ("atan2", "nextafter", "rem"):
    WRITERS[_name] = function(f"lax.{_name}", 2)
for _name in ("shift_right_logical", "shift_right_arithmetic", "pow"):
    WRITERS[_name] = function(f"lax.{_name}", 2)
WRITERS["copy"] = function("jnp.copy", 1)
WRITERS["round"] = function("lax.round", 1, "rounding_method")
WRITERS["integer_pow"] = function("lax.integer_pow", 1, "y")
WRITERS["reduce_precision"] = function("lax.reduce_precision", 1, "exponent_bits", "mantissa_bits")
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
    WRITERS[_name] = _infix(_symbol, _level)


@register("max", "min")
def _extremum(use: Use) -> Expr:
    x, y = arguments(use, 2)
    name = "jnp.maximum" if use.primitive == "max" else "jnp.minimum"
    left = x.typed if isinstance(y.value, Lit) else x.plain.text
    return call(name, left, y.plain.text)


@register("div")
def _div(use: Use) -> Expr:
    # `/` on integers is another operation in Python.
    return _infix("/", MUL)(use) if use.out.inexact else function("lax.div", 2)(use)


@register("neg", "not")
def _prefix(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    return Expr(f"{'-' if use.primitive == 'neg' else '~'}{x.atom}", UNARY)


@register("select_n")
def _select_n(use: Use) -> Expr:
    return call("lax.select_n", *(a.typed for a in use.args))


@register("clamp")
def _clamp(use: Use) -> Expr:
    return call("lax.clamp", *(a.typed for a in arguments(use, 3)))


@register("convert_element_type")
def _convert(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    if use.out.dtype == "bool":
        return call("lax.convert_element_type", x.typed, "jnp.bool_")
    if x.type.dtype == "complex64" and use.out.dtype != "complex64":
        # The conversion itself warns that it takes the real part.
        return call(f"lax.real({x.typed}).astype", texts.dtype(use.out.dtype))
    return call(f"{x.atom}.astype", texts.dtype(use.out.dtype))


@register("bitcast_convert_type")
def _bitcast(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    return call("lax.bitcast_convert_type", x.typed, texts.dtype(use.out.dtype))
