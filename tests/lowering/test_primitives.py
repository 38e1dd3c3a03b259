"""Every primitive of the table, written, traced, and compared: its types, its jaxpr, and for many its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from reducer.errors import ProgramError
from reducer.ir.build import Builder, lit
from reducer.ir.equations import (
    Arg,
    Block,
    ConvDims,
    Enum,
    GatherDims,
    Lit,
    Mesh,
    Op,
    Program,
    ScatterDims,
    Var,
)
from reducer.ir.rules import RULES
from reducer.ir.types import DTYPES, Type, parse_type
from reducer.lowering.emit import emit
from reducer.lowering.load import load
from reducer.lowering.table import TABLE


@dataclass
class Case:
    """One equation: arguments (types, or scalars), attributes, recorded result types, and what it computes."""

    primitive: str
    args: tuple[str | Lit, ...]
    to: tuple[str, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    numbers: Callable[..., Any] | None = None
    #: What JAX calls the primitive; None: it writes it with others.
    traced: str | None = ""
    mesh: Mesh | None = None

    def __str__(self) -> str:
        args = ",".join(a.value if isinstance(a, Lit) else a for a in self.args)
        return f"{self.primitive}({args})"

    @property
    def program(self) -> Program:
        """The equation as a program; the types of primitives without a rule are as given."""
        b = Builder()
        args: list[Arg] = [a if isinstance(a, Lit) else b.param(parse_type(a)) for a in self.args]
        to = tuple(map(parse_type, self.to))
        if self.primitive in RULES:
            return Program(b.block(*b.ops(self.primitive, *args, to=to, **self.attributes)))
        outs = tuple(Var(100 + i, t) for i, t in enumerate(to))
        attributes = tuple(sorted(self.attributes.items()))
        eqn = Op(outs=outs, primitive=self.primitive, args=tuple(args), attributes=attributes)
        return Program(Block(b.block().params, (eqn,), tuple(v.id for v in outs)))


def case(
    primitive: str, *args: str | Lit, to: str = "", numbers: Any = None, traced: str | None = "", **attrs: Any
) -> Case:
    return Case(primitive, args, tuple(to.split()), attrs, numbers, traced)


X, B, N, P = "f32[2,3]", "bf16[2,3]", "i32[2,3]", "bool[2,3]"


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


GATHER = GatherDims(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
SCATTER = ScatterDims(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
DIMS = (((1,), (0,)), ((), ()))
WINDOW = {"window_dimensions": (2, 1), "window_strides": (1, 1), "padding": ((0, 0), (0, 0))}

RAGGED = {"ragged_dot_dimension_numbers": ((((1,), (1,)), ((), ())), (0,), (0,))}
APPROXIMATE = {"reduction_dimension": 1, "recall_target": "0.95", "is_max_k": True}


def elementwise() -> Iterator[Case]:
    unary = {
        name: getattr(np, name)
        for name in (
            "tanh",
            "sin",
            "cos",
            "tan",
            "exp",
            "exp2",
            "log",
            "log1p",
            "expm1",
            "sqrt",
            "cbrt",
            "floor",
            "ceil",
            "sinh",
            "cosh",
        )
    }
    unary |= {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "atanh": np.arctanh}
    unary |= {"logistic": sigmoid, "rsqrt": lambda x: 1 / np.sqrt(x), "acosh": None}
    unary |= dict.fromkeys(("erf", "erf_inv", "erfc", "lgamma", "digamma", "bessel_i0e", "bessel_i1e"))
    for name, numbers in unary.items():
        yield case(name, X, to=X, numbers=numbers)
        yield case(name, B, to=B)
    for name in ("neg", "sign", "abs", "square"):
        yield case(name, X, numbers={"neg": np.negative}.get(name, getattr(np, name, None)))
        yield case(name, N)
    yield case("integer_pow", X, y=3, numbers=lambda x: x**3)
    yield case("integer_pow", X, y=2, numbers=lambda x: x * x)
    yield case("round", X, rounding_method=Enum("RoundingMethod.TO_NEAREST_EVEN"), numbers=np.round)
    yield case("round", X)
    yield case("reduce_precision", X, exponent_bits=8, mantissa_bits=7)
    yield case("copy", X, numbers=np.copy)
    yield case("stop_gradient", X, numbers=np.copy, traced=None)
    yield case("one_minus_square", X, to=X, numbers=lambda x: (1 - x) * (1 + x), traced=None)
    yield case("log2", X, to=X, numbers=np.log2, traced=None)  # older versions divide logarithms
    yield case("is_finite", X, numbers=np.isfinite)
    yield case("not", P, numbers=np.logical_not)
    yield case("not", N, numbers=np.invert)
    yield case("population_count", N)
    yield case("clz", N)
    for name in ("real", "imag"):
        yield case(name, "c64[3]", to="f32[3]", numbers=getattr(np, name))
    yield case("conj", "c64[3]", to="c64[3]", numbers=np.conj)
    yield case("complex", "f32[3]", "f32[3]", to="c64[3]", numbers=lambda x, y: x + 1j * y)
    infix = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "max": np.maximum,
        "min": np.minimum,
    }
    for name, numbers in infix.items():
        yield case(name, X, X, numbers=numbers)
        yield case(name, X, "f32[2,1]", numbers=numbers)
        yield case(name, X, "f32[]", numbers=numbers)
        yield case(name, X, lit(-2.5), numbers=lambda x, f=numbers: f(x, np.float32(-2.5)))
        yield case(name, lit(-2.5), X, numbers=lambda x, f=numbers: f(np.float32(-2.5), x))
        yield case(name, lit(2.0), lit(3.0), numbers=lambda f=numbers: f(np.float32(2), np.float32(3)), traced=None)
        yield case(name, B, lit(0.1, "bfloat16"))
        yield case(name, N, N, numbers=numbers if name != "div" else None)
        yield case(name, N, lit(7, "int32"))
        yield case(name, "i8[4]", lit(-7, "int8"))
        yield case(name, "u32[4]", lit(4294967295, "uint32"))
    yield case("div", N, lit(2, "int32"), numbers=lambda x: x // 2)
    yield case("add_any", X, X, numbers=np.add, traced="add")
    yield case("rem", X, X, numbers=np.fmod)
    yield case("rem", N, lit(3, "int32"), numbers=lambda x: np.fmod(x, 3))
    yield case("pow", X, X, numbers=np.power)
    yield case("pow", X, lit(2.0), numbers=lambda x: x**2)
    yield case("pow", X, N, numbers=np.power)
    yield case("atan2", X, X, numbers=np.arctan2)
    yield case("nextafter", X, X, numbers=np.nextafter)
    for name in ("igamma", "igammac", "zeta", "polygamma", "igamma_grad_a"):
        yield case(name, X, X, to=X, traced=None if name == "polygamma" else "")
    yield case("regularized_incomplete_beta", X, X, X, to=X)
    for name in ("and", "or", "xor"):
        numbers = getattr(np, f"bitwise_{name}")
        yield case(name, N, N, numbers=numbers)
        yield case(name, P, P, numbers=numbers)
        yield case(name, P, lit(True, "bool"), numbers=lambda x, f=numbers: f(x, True))
        yield case(name, "u8[4]", lit(255, "uint8"), numbers=lambda x, f=numbers: f(x, np.uint8(255)))
    for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
        yield case(name, N, N)
        yield case(name, "u32[4]", lit(3, "uint32"))
    for name, ufunc in {
        "eq": "equal",
        "ne": "not_equal",
        "lt": "less",
        "le": "less_equal",
        "gt": "greater",
        "ge": "greater_equal",
    }.items():
        numbers = getattr(np, ufunc)
        yield case(name, X, X, numbers=numbers)
        yield case(name, X, lit(1.5), numbers=lambda x, f=numbers: f(x, 1.5))
        yield case(name, lit(1.5), X, numbers=lambda x, f=numbers: f(1.5, x))
        yield case(name, P, P, numbers=numbers)
    yield case("mul", X, lit(float("inf")), numbers=lambda x: x * np.inf)
    yield case("add", X, lit(float("nan")), numbers=lambda x: x + np.nan)
    yield case("mul", "f8_e4m3fn[4]", lit(2.0, "float8_e4m3fn"))
    yield case("select_n", P, X, X, numbers=lambda p, x, y: np.where(p, y, x))
    yield case("select_n", "bool[]", X, X, numbers=lambda p, x, y: y if p else x)
    yield case("select_n", "bool[]", "f32[]", lit(0.0))
    yield case("select_n", N, X, X, X)
    yield case("clamp", lit(0.0), X, lit(1.0), numbers=lambda x: np.clip(x, 0, 1))
    yield case("clamp", X, X, X)
    for to in ("bf16[2,3]", "i32[2,3]", "bool[2,3]", "f8_e5m2[2,3]", "c64[2,3]"):
        yield case("convert_element_type", X, to=to)
    yield case("convert_element_type", N, to="f32[2,3]", numbers=lambda x: x.astype(np.float32))
    yield case("convert_element_type", "c64[2,3]", to=X, traced=None, numbers=np.real)
    yield case("bitcast_convert_type", X, to=N, numbers=lambda x: x.view(np.int32))


def arrays() -> Iterator[Case]:
    yield case("reshape", X, to="f32[6]", numbers=np.ravel)
    yield case("reshape", "f32[1,1]", to="f32[]", numbers=lambda x: x[0, 0])
    yield case("reshape", X, to="f32[3,1,2]", numbers=lambda x: x.reshape(3, 1, 2))
    yield case("transpose", X, permutation=(1, 0), numbers=np.transpose)
    yield case("transpose", "f32[2,3,4]", permutation=(1, 2, 0), numbers=lambda x: x.transpose(1, 2, 0))
    yield case("squeeze", "f32[1,3,1]", dimensions=(0, 2), numbers=np.squeeze)
    yield case("squeeze", "f32[1,3]", dimensions=(0,), numbers=np.squeeze)
    yield case(
        "broadcast_in_dim", "f32[3]", to=X, broadcast_dimensions=(1,), numbers=lambda x: np.broadcast_to(x, (2, 3))
    )
    yield case(
        "broadcast_in_dim", "f32[2,1]", to=X, broadcast_dimensions=(0, 1), numbers=lambda x: np.broadcast_to(x, (2, 3))
    )
    yield case("broadcast_in_dim", "f32[]", to=X, broadcast_dimensions=(), numbers=lambda x: np.broadcast_to(x, (2, 3)))
    yield case(
        "broadcast_in_dim", lit(2.5), to=X, broadcast_dimensions=(), numbers=lambda: np.full((2, 3), 2.5, np.float32)
    )
    yield case(
        "broadcast_in_dim", lit(False, "bool"), to=P, broadcast_dimensions=(), numbers=lambda: np.zeros((2, 3), bool)
    )
    for name in ("sum", "prod", "max", "min"):
        numbers = getattr(np, name)
        yield case(f"reduce_{name}", X, axes=(1,), numbers=lambda x, f=numbers: f(x, 1))
        yield case(f"reduce_{name}", X, axes=(0, 1), numbers=numbers)
        yield case(f"reduce_{name}", B, axes=(0,))
        yield case(f"reduce_{name}", "i8[2,3]", axes=(0,), numbers=lambda x, f=numbers: f(x, 0).astype(np.int8))
    yield case("reduce_sum", "f32[2,3,4]", axes=(0, 2), numbers=lambda x: x.sum((0, 2)))
    yield case("reduce_and", P, axes=(0,), numbers=lambda x: x.all(0))
    yield case("reduce_or", P, axes=(0,), numbers=lambda x: x.any(0))
    yield case("reduce_xor", P, axes=(0,), numbers=lambda x: np.logical_xor.reduce(x, 0))
    for name, numbers in (("argmax", np.argmax), ("argmin", np.argmin)):
        yield case(name, X, to="i32[2]", axes=(1,), numbers=lambda x, f=numbers: f(x, 1))
    yield case("cumsum", X, axis=1, numbers=lambda x: np.cumsum(x, 1))
    yield case("cumprod", X, axis=0, reverse=True, numbers=lambda x: np.cumprod(x[::-1], 0)[::-1])
    for name in ("cummax", "cummin", "cumlogsumexp"):
        yield case(name, X, axis=0, reverse=False)
    yield case("rev", X, dimensions=(1,), numbers=lambda x: x[:, ::-1])
    yield case("dot_general", "f32[2,3]", "f32[3,4]", dimension_numbers=DIMS, numbers=np.matmul)
    yield case("dot_general", "bf16[2,3]", "bf16[3,4]", to="f32[2,4]", dimension_numbers=DIMS)
    yield case(
        "dot_general", "f32[2,3]", "f32[4,3]", dimension_numbers=(((1,), (1,)), ((), ())), numbers=lambda x, w: x @ w.T
    )
    yield case("dot_general", "f32[3]", "f32[3]", dimension_numbers=(((0,), (0,)), ((), ())), numbers=np.dot)
    yield case(
        "dot_general", "f32[5,2,3]", "f32[5,3,4]", dimension_numbers=(((2,), (1,)), ((0,), (0,))), numbers=np.matmul
    )
    yield case(
        "dot_general",
        "f32[2,3]",
        "f32[3,4]",
        dimension_numbers=DIMS,
        precision=Enum("Precision.HIGHEST"),
        numbers=np.matmul,
    )
    yield case(
        "dot_general",
        "f32[2,3]",
        "f32[3,4]",
        dimension_numbers=DIMS,
        precision=(Enum("Precision.HIGH"), Enum("Precision.DEFAULT")),
    )
    yield case("concatenate", X, X, dimension=1, numbers=lambda x, y: np.concatenate([x, y], 1))
    yield case("split", "f32[5,2]", to="f32[2,2] f32[3,2]", axis=0, numbers=lambda x: (x[:2], x[2:]))
    yield case("split", X, to=X, axis=0, traced=None)
    yield case("slice", "f32[4,5]", start_indices=(1, 0), limit_indices=(3, 5), numbers=lambda x: x[1:3])
    yield case(
        "slice", "f32[4,5]", start_indices=(0, 1), limit_indices=(4, 5), strides=(2, 3), numbers=lambda x: x[::2, 1:5:3]
    )
    yield case(
        "dynamic_slice", "f32[4,5]", "i32[]", lit(1, "int32"), to="f32[2,2]", numbers=lambda x, i: x[i : i + 2, 1:3]
    )
    yield case("dynamic_slice", "f32[4]", "u8[]", to="f32[2]")
    yield case("dynamic_slice", "f32[4]", lit(1, "uint32"), to="f32[2]", numbers=lambda x: x[1:3])
    yield case("dynamic_update_slice", "f32[4,5]", "f32[1,5]", lit(2, "int32"), "i32[]")
    yield case("iota", to="i32[4]", dimension=0, numbers=lambda: np.arange(4, dtype=np.int32))
    yield case(
        "iota", to="f32[2,3]", dimension=1, numbers=lambda: np.broadcast_to(np.arange(3, dtype=np.float32), (2, 3))
    )
    yield case("pad", X, lit(1.0), padding_config=((1, 0, 0), (0, 2, 1)))
    yield case(
        "pad",
        X,
        "f32[]",
        padding_config=((1, 0, 0), (0, 0, 0)),
        numbers=lambda x, v: np.pad(x, ((1, 0), (0, 0)), constant_values=v),
    )
    yield case("sort", X, dimension=1, is_stable=True, num_keys=1, numbers=lambda x: np.sort(x, 1))
    yield case("sort", X, N, dimension=0, is_stable=False, num_keys=1)
    yield case(
        "top_k",
        X,
        to="f32[2,2] i32[2,2]",
        numbers=lambda x: (-np.sort(-x, 1)[:, :2], np.argsort(-x, 1, kind="stable")[:, :2].astype(np.int32)),
    )
    yield case("top_k", X, to="f32[2,1] i32[2,1]", axis=1, is_stable=True)
    yield case("optimization_barrier", X, numbers=np.copy)
    yield case("optimization_barrier", X, N)
    yield case(
        "gather", "f32[4,5]", "i32[3,1]", to="f32[3,5]", dimension_numbers=GATHER, mode=Enum("GatherScatterMode.CLIP")
    )
    yield case(
        "gather",
        "f32[4,5]",
        "i32[3,1]",
        to="f32[3,5]",
        dimension_numbers=GATHER,
        slice_sizes=(1, 5),
        fill_value="nan",
        indices_are_sorted=True,
        unique_indices=False,
        mode=Enum("GatherScatterMode.FILL_OR_DROP"),
    )
    for name in ("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max"):
        yield case(
            name,
            "f32[4,5]",
            "i32[3,1]",
            "f32[3,5]",
            to="f32[4,5]",
            dimension_numbers=SCATTER,
            mode=Enum("GatherScatterMode.CLIP"),
        )
    yield case(
        "conv_general_dilated",
        "f32[1,2,8,8]",
        "f32[4,2,3,3]",
        to="f32[1,4,8,8]",
        dimension_numbers=ConvDims((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3)),
        window_strides=(1, 1),
        padding=((1, 1), (1, 1)),
        lhs_dilation=(1, 1),
        rhs_dilation=(1, 1),
        feature_group_count=1,
        batch_group_count=1,
    )
    yield case("tile", X, to="f32[4,3]", numbers=lambda x: np.tile(x, (2, 1)), traced=None)
    yield case("empty", to=X)
    yield case("stack", X, X, to="f32[2,2,3]", axis=1, numbers=lambda x, y: np.stack([x, y], 1))
    yield case("unstack", X, to="f32[2] f32[2] f32[2]", axis=1)
    yield case("ragged_dot_general", "f32[4,3]", "f32[2,3,5]", "i32[2]", to="f32[4,5]", **RAGGED)
    yield case("approx_top_k", X, to="f32[2,2] i32[2,2]", **APPROXIMATE)
    yield case("lu", "f32[2,2]", to="f32[2,2] i32[2] i32[2]")
    yield case("qr", "f32[3,2]", to="f32[3,2] f32[2,2]", full_matrices=False, traced=None)
    yield case("eigh", "f32[2,2]", to="f32[2,2] f32[2]", lower=True, sort_eigenvalues=True)
    yield case("cholesky", "f32[2,2]", to="f32[2,2]", traced=None)
    yield case("triangular_solve", "f32[2,2]", "f32[2,3]", to="f32[2,3]", left_side=True, lower=True)
    yield case("fft", "c64[8]", to="c64[8]", fft_type=Enum("FftType.FFT"), fft_lengths=(8,))
    for name, numbers in (("sum", np.sum), ("max", np.max), ("min", np.min)):
        yield case(
            f"reduce_window_{name}",
            X,
            to="f32[1,3]",
            **WINDOW,
            numbers=lambda x, f=numbers: f(x, 0, keepdims=True),
        )
    yield case("reduce_window_max", N, to="i32[1,3]", **WINDOW)


def randoms() -> Iterator[Case]:
    yield case("random_bits", "key<fry>[]", to="u32[4]", bit_width=32)
    yield case("random_bits", "key<rbg>[]", to="u8[4]", bit_width=8)
    yield case("random_seed", "i32[]", to="key<fry>[]")
    yield case("random_wrap", "u32[2]", to="key<fry>[]")
    yield case("random_unwrap", "key<urbg>[]", to="u32[4]")
    yield case("random_split", "key<fry>[]", to="key<fry>[3]")
    yield case("random_fold_in", "key<fry>[]", "u32[]", to="key<fry>[]")
    yield case("random_clone", "key<fry>[]", to="key<fry>[]")
    yield case("rng_bit_generator", "u32[4]", to="u32[4] u32[8]")


CASES = [*elementwise(), *arrays(), *randoms()]
#: Those need a mesh around them; tests of shard_map write them.
COLLECTIVES = {
    "psum",
    "psum2",
    "psum_invariant",
    "pmax",
    "pmin",
    "ppermute",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "axis_index",
    "pvary",
    "pcast",
}


def values(program: Program) -> list[Any]:
    """Inputs for a program: numbers inside the domain of most functions, different for each input."""
    import jax
    import jax.numpy as jnp

    out: list[Any] = []
    for n, var in enumerate(program.block.params):
        shape, dtype = var.type.shape, var.type.dtype
        if dtype.startswith("key"):
            impl = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}[dtype]
            out.append(jax.random.key(n, impl=impl))
            continue
        ramp = (np.arange(var.type.size) * 7 + 3 * n) % 5
        numbers = ramp / 8 + 0.25 if var.type.inexact else ramp % 2 if dtype == "bool" else ramp % 3
        out.append(jnp.asarray(numbers.reshape(shape)).astype(dtype))
    return out


def primitives(jaxpr: Any) -> list[str]:
    """Primitives of a jaxpr, through calls."""
    found: list[str] = []
    for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
        found += primitives(inner) if inner is not None else [eqn.primitive.name]
    return found


def recorded(program: Program) -> list[str]:
    types = {v.id: v.type for eqn in program.block.eqns for v in eqn.outs}
    return [f"{types[r].dtype}{list(types[r].shape)}" for r in program.block.results if isinstance(r, int)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_writes_exactly_this_primitive(case: Case) -> None:
    import jax

    program = case.program
    inputs = values(program)
    jaxpr = jax.make_jaxpr(load(program, typed=True).fn)(*inputs)
    assert [f"{a.dtype}{list(a.shape)}" for a in jaxpr.out_avals] == recorded(program)
    if case.traced is not None:
        assert primitives(jaxpr) == [case.traced or case.primitive]


@pytest.mark.parametrize("case", [c for c in CASES if c.numbers], ids=str)
def test_computes_what_numpy_computes(case: Case) -> None:
    program = case.program
    inputs = values(program)
    got = load(program, typed=False).fn(*inputs)
    assert case.numbers is not None
    want = case.numbers(*map(np.asarray, inputs))
    several = isinstance(want, tuple)
    for one, other in zip(got if several else [got], want if several else [want], strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [d for d, (_, _, kind) in DTYPES.items() if kind != "k"])
def test_scalars_and_arrays_of_every_dtype(dtype: str) -> None:
    import jax

    values = {"b": ("True", "False"), "c": ("(1+2j)", "(nan-infj)"), "f": ("0.5", "-1e-05", "inf")}
    b = Builder()
    for value in values.get(DTYPES[dtype][2], ("1", "3")):
        x = b.fill(Type(dtype, (2,)), value)
        y = b.op("broadcast_in_dim", Lit(dtype, value), to=Type(dtype, (2, 3)), broadcast_dimensions=())
        program = Program(b.block(x, y, Lit(dtype, value)))
        with jax.enable_x64(dtype.endswith("64")):
            avals = jax.make_jaxpr(load(program).fn)().out_avals
        assert {str(aval.dtype) for aval in avals} == {dtype}


def test_every_primitive_of_the_table_has_a_case() -> None:
    assert {case.primitive for case in CASES} | COLLECTIVES == set(TABLE)


def test_every_primitive_with_a_type_rule_can_be_written() -> None:
    assert set(RULES) <= set(TABLE)


def test_an_unknown_primitive_is_named_with_its_place() -> None:
    x = Type("float32", (2,))
    eqn = Op(outs=(Var(1, x),), primitive="frobnicate", args=(0,))
    program = Program(Block((Var(0, x),), (eqn,), (1,)))
    with pytest.raises(ProgramError, match=r"eqns\[0\].*frobnicate") as caught:
        emit(program)
    assert caught.value.where == "eqns[0]"


@pytest.mark.parametrize(
    ("primitive", "attributes"),
    [
        ("transpose", ()),
        ("transpose", (("permutation", 3),)),
        ("dot_general", (("dimension_numbers", (1, 2)),)),
        ("slice", (("start_indices", "0"), ("limit_indices", 7))),
        ("round", (("rounding_method", Enum("RoundingMethod.mro")),)),
        ("round", (("rounding_method", Enum("os.system")),)),
        ("gather", (("dimension_numbers", (1,)),)),
    ],
)
def test_malformed_attributes_are_errors_of_the_program(primitive: str, attributes: Any) -> None:
    x = Type("float32", (2, 2))
    eqn = Op(
        outs=(Var(2, x),),
        primitive=primitive,
        args=(0, 1)[: 2 if primitive in ("dot_general", "gather") else 1],
        attributes=attributes,
    )
    with pytest.raises(ProgramError, match=r"eqns\[0\]"):
        emit(Program(Block((Var(0, x), Var(1, x)), (eqn,), (2,))))
