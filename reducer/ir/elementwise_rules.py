"""Type rules of elementwise primitives."""

from __future__ import annotations

from typing import Final

from reducer.ir.rule_table import RULES, Attributes, Rule, arity, broadcast, need, one, rule
from reducer.ir.types import Type


def _elementwise(n: int, kinds: str, result: str | None = None) -> Rule:
    """`n` arguments of one dtype whose kind is in `kinds` (f float, i integer, b bool); result dtype or the same."""

    def check(args: tuple[Type, ...], _: Attributes, __: tuple[Type, ...]) -> tuple[Type, ...]:
        arity(args, n)
        need(len({a.dtype for a in args}) == 1, f"dtypes differ: {', '.join(map(str, args))}")
        kind = "f" if args[0].inexact else "i" if args[0].integer else "b" if args[0].dtype == "bool" else "k"
        need(kind in kinds, f"does not take {args[0].dtype}")
        return (Type(result or args[0].dtype, broadcast(args)),)

    return check


_FLOAT_FUNCTIONS: Final = (
    "tanh sin cos tan exp exp2 log log1p log2 expm1 sqrt rsqrt cbrt logistic erf erf_inv erfc lgamma digamma "
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


@rule("abs")
def _abs(args: tuple[Type, ...], _: Attributes, __: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 1)
    need(args[0].inexact or args[0].integer, f"does not take {args[0].dtype}")
    return (args[0].with_dtype("float32") if args[0].dtype == "complex64" else args[0],)


@rule("pow")
def _pow(args: tuple[Type, ...], _: Attributes, __: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 2)
    need(args[0].inexact, f"does not take {args[0].dtype}")
    need(args[1].dtype == args[0].dtype or args[1].integer, f"dtypes differ: {args[0]}, {args[1]}")
    return (Type(args[0].dtype, broadcast(args)),)


@rule("select_n")
def _select_n(args: tuple[Type, ...], _: Attributes, __: tuple[Type, ...]) -> tuple[Type, ...]:
    need(len(args) >= 2, "takes a selector and at least one case")
    which, *cases = args
    need(which.dtype == "bool" or which.dtype == "int32", f"selects by bool or int32, not {which.dtype}")
    need(which.dtype != "bool" or len(cases) <= 2, "a bool selects among at most two cases")
    need(len({(c.dtype, c.shape) for c in cases}) == 1, "cases differ in type")
    need(which.shape in ((), cases[0].shape), f"selector {which} does not fit {cases[0]}")
    return (cases[0],)


@rule("clamp")
def _clamp(args: tuple[Type, ...], _: Attributes, __: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 3)
    low, x, high = args
    need(low.dtype == x.dtype == high.dtype, "dtypes differ")
    need(low.shape in ((), x.shape) and high.shape in ((), x.shape), "bounds do not fit the operand")
    return (x,)


@rule("convert_element_type")
def _convert(args: tuple[Type, ...], _: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 1)
    return (args[0].with_dtype(one(recorded).dtype),)


@rule("bitcast_convert_type")
def _bitcast(args: tuple[Type, ...], _: Attributes, recorded: tuple[Type, ...]) -> tuple[Type, ...]:
    arity(args, 1)
    out = args[0].with_dtype(one(recorded).dtype)
    need(out.nbytes == args[0].nbytes, f"{args[0].dtype} and {out.dtype} differ in width")
    return (out,)


#: Result axis k is operand axis k, for every operand that has axes (of equal ranks; size 1 stretches).
ELEMENTWISE: Final = frozenset(name for name, entry in RULES.items() if entry.__module__ == __name__)
