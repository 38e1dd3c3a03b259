"""Every operation JAX lowers a primitive to is raised to that primitive, or to one that computes the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reducer.ir.equations import Op
from reducer.ir.walk import equations
from tests.raising.roundtrip import round_trip

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

X = jnp.linspace(-1.5, 2.0, 24, dtype=jnp.float32).reshape(2, 3, 4)
M = jnp.linspace(0.1, 0.9, 16, dtype=jnp.float32).reshape(4, 4) + jnp.eye(4)
N = jnp.arange(24, dtype=jnp.int32).reshape(4, 6) % 7 - 3
I = jnp.array([2, 0, 3, 1], jnp.int32)  # noqa: E741
B = X > 0
K = jnp.array([1, 2], jnp.uint32)

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def elementwise() -> dict[str, Case]:
    floats = (
        "abs ceil cos cbrt exp exp2 expm1 floor is_finite log1p logistic neg sign sin sqrt tan tanh erf erf_inv erfc "
        "lgamma digamma asin acos atan sinh cosh asinh atanh square rsqrt log acosh"
    )
    domain = {"sqrt": X + 2, "rsqrt": X + 2, "log": X + 2, "log1p": X + 1, "acosh": X + 3}
    inside = dict.fromkeys(("erf_inv", "asin", "acos", "atanh"), X / 2.5)
    found: dict[str, Case] = {
        name: (getattr(lax, name), ({**domain, **inside}.get(name, X),)) for name in floats.split()
    }
    for name in ("add", "sub", "mul", "div", "max", "min", "rem", "atan2", "nextafter", "eq", "ne", "lt", "le", "gt"):
        found[name] = (getattr(lax, name), (X, X[::-1] + 0.25))
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right_logical"):
        found[name] = (getattr(lax, name), (abs(N), N % 3))
    found["pow"] = (lax.pow, (X + 2, X))
    found["shift_right_arithmetic"] = (lax.shift_right_arithmetic, (N, abs(N) % 3))
    found["not"] = (lambda n, b: (~n, ~b), (N, B))
    found["population_count"] = (lambda n: (lax.population_count(n), lax.clz(n)), (N,))
    found["round"] = (lambda x: (lax.round(x), lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)), (X,))
    found["scalars"] = (lambda x: (2 * x + 1) / 3 - x * x[0, 0, 0], (X,))
    found["scalar comparisons"] = (lambda x: (x > 0.5) & (x < 1), (X,))
    found["integer powers"] = (lambda x: x**3 + x**-2, (X + 2,))
    found["select"] = (lambda b, x: jnp.where(b, x, 0.0), (B, X))
    found["clamp"] = (lambda x: (lax.clamp(-0.5, x, 0.5), jnp.clip(x, -1, 1)), (X,))
    found["convert"] = (lambda x, n, b: (x.astype(jnp.bfloat16), n.astype(float), b.astype(int), n > 0), (X, N, B))
    found["bitcast"] = (lambda x: lax.bitcast_convert_type(x, jnp.int32), (X,))
    found["reduce_precision"] = (lambda x: lax.reduce_precision(x, 8, 7), (X,))
    found["complex"] = (lambda x: (lax.real(lax.complex(x, 2 * x)), lax.abs(lax.complex(x, x))), (X,))
    found["narrow floats"] = (lambda x: x.astype(jnp.float8_e4m3fn).astype(jnp.float32) + jnp.inf, (X,))
    found["barrier"] = (lambda x, y: lax.optimization_barrier((x, y)), (X, N))
    return found


def arrays() -> dict[str, Case]:
    return {
        "broadcast": (lambda x: jnp.broadcast_to(x[:, None], (2, 5, 3, 4)), (X,)),
        "shapes": (lambda x: (x.reshape(6, 4).T, x.transpose(2, 0, 1), x[None, 0], jnp.squeeze(x[:1])), (X,)),
        "slices": (lambda x: (x[1:, ::2, 1:3], x[:, ::-1], x[..., -1]), (X,)),
        "concatenate": (lambda x: (jnp.concatenate([x, x * 2], 1), jnp.stack([x, x]), jnp.split(x, 3, 1)), (X,)),
        "pad": (lambda x: lax.pad(x, 0.5, ((1, 0, 0), (0, 2, 1), (-1, 0, 0))), (X,)),
        "iota": (lambda x: x + lax.broadcasted_iota(jnp.float32, x.shape, 1) + jnp.arange(4.0), (X,)),
        "reductions": (lambda x: (x.sum(), x.sum(1), x.max((0, 2)), x.min(), x.prod(2), x.mean(0)), (X,)),
        "predicates": (lambda b: (b.all(), b.any(1)), (B,)),
        "integers": (lambda n: (n.sum(), n.max(1), n.min(), jnp.bitwise_xor.reduce(n, 0)), (N,)),
        "places": (lambda x, n: (jnp.argmax(x, 1), jnp.argmin(x, 2), n.argmax(1)), (X, N)),
        "cumulative": (lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 2), lax.cummax(x, 1, reverse=True)), (X,)),
        "windows": (
            lambda x: (
                lax.reduce_window(x, 0.0, lax.add, (1, 2, 2), (1, 1, 2), "VALID"),
                lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2), (1, 1, 1), "SAME"),
            ),
            (X,),
        ),
        "matmul": (lambda x, m: (x @ m, jnp.einsum("bij,bkj->bik", x, x), m @ m), (X, M)),
        "precision": (lambda m: jnp.dot(m, m, precision="highest", preferred_element_type=jnp.float32), (M,)),
        "convolution": (
            lambda x, w: lax.conv_general_dilated(
                x, w, (2, 1), ((1, 1), (0, 1)), lhs_dilation=(1, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")
            ),
            (X.reshape(1, 3, 4, 2), X[:, :2].reshape(2, 2, 2, 2)),
        ),
        "grouped convolution": (
            lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", feature_group_count=3),
            (X, X[0].reshape(3, 1, 4)),
        ),
        "constants": (lambda x: x + jnp.array([[1.0], [2.0], [2.0]]) * jnp.arange(4), (X,)),
    }


def indexing() -> dict[str, Case]:
    return {
        "dynamic": (
            lambda x, i: (
                lax.dynamic_slice(x, (i[0], 0, i[1]), (1, 2, 4)),
                lax.dynamic_update_slice(x, x[:1], (1, 0, 0)),
            ),
            (X, I),
        ),
        "gather": (lambda n, i: (n[i], n[i, i], jnp.take(n, i, 1), n[:, i[:2]]), (N, I)),
        "gather with fill": (lambda n, i: n.at[i + 2].get(mode="fill", fill_value=7), (N, I)),
        "batched gather": (lambda m, i: jnp.take_along_axis(m, i[:, None], 1), (M, I)),
        "scatter": (lambda n, i: (n.at[i].set(1), n.at[i].add(n), n.at[:, i].max(0), n.at[i, i].mul(2)), (N, I)),
        "sort": (lambda x, n: (jnp.sort(x, 1), jnp.argsort(x, 2), jnp.sort(n, descending=True)), (X, N)),
        "sort by two keys": (lambda n: lax.sort((n % 2, n, n + 1), num_keys=2), (N,)),
        "top_k": (lambda x: lax.top_k(x, 2), (X,)),
        "one hot": (lambda i: jax.nn.one_hot(i, 4), (I,)),
        "solve": (lambda m, x: lax.linalg.triangular_solve(m, x[0, :1], lower=True, unit_diagonal=True), (M, X)),
        "random bits": (lambda k: (jax.random.bits(k, (5,)), jax.random.uniform(k, (3, 2)), jax.random.split(k)), (K,)),
        "normal": (lambda k: jax.random.normal(k, (4,)), (K,)),
        "dropout": (lambda k, x: jnp.where(jax.random.bernoulli(k, 0.5, x.shape), x * 2, 0), (K, X)),
        "fft": (lambda x: lax.real(jnp.fft.fft(x)), (X,)),
    }


def control() -> dict[str, Case]:
    return {
        "cond": (lambda x: lax.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, x), (X,)),
        "switch": (lambda i, x: lax.switch(i[0], [lambda x: x, lambda x: x + 1, lambda x: x.sum() + 0 * x], x), (I, X)),
        "scan": (lambda x: lax.scan(lambda c, y: (c + y, c * y), x[0], x), (X,)),
        "scan backwards": (lambda x: lax.scan(lambda c, y: (c + y, c * y), x[0], x, reverse=True), (X,)),
        "scan of nothing": (lambda x: lax.scan(lambda c, _: (c * 2, c.sum()), x, None, length=3), (X,)),
        "scan once": (lambda x: lax.scan(lambda c, y: (c + y, c), x[0], x[:1]), (X,)),
        "nested scan": (
            lambda x: lax.scan(lambda c, y: lax.scan(lambda c, z: (c + z, c.sum()), c, y), x[0, 0], x, reverse=True),
            (X,),
        ),
        "associative scan": (lambda x: lax.associative_scan(jnp.multiply, x, axis=1), (X,)),
        "fori": (lambda x: lax.fori_loop(0, 4, lambda i, x: x * i + x[0], x), (X,)),
        "fori from two": (lambda n: lax.fori_loop(2, 4, lambda i, n: n + n[i] * i, n), (N,)),
        "fori to an argument": (lambda i, x: lax.fori_loop(0, i[0], lambda i, x: x + i, x), (I, X)),
        "while": (lambda x: lax.while_loop(lambda s: s[0].sum() < 99, lambda s: (s[0] + s[1], s[1]), (x, x**2)), (X,)),
        "map": (lambda x: lax.map(lambda y: y / y.sum(), x), (X,)),
        "vmap of while": (
            lambda i: jax.vmap(lambda n: lax.while_loop(lambda n: n < 9, lambda n: n * 2 + 1, n))(i),
            (I,),
        ),
        "gradient": (
            lambda x, m: jax.grad(lambda m: lax.scan(lambda c, _: (jnp.tanh(c @ m), None), x, None, length=3)[0].sum())(
                m
            ),
            (X[0], M),
        ),
        "calls": (lambda x: jax.jit(lambda y: jax.jit(jnp.sin)(y) + y)(x) + jax.nn.silu(x), (X,)),
    }


CASES = {**elementwise(), **arrays(), **indexing(), **control()}


#: What is lowered otherwise for the CPU.
ON_CPU = ("erf_inv", "places", "cumulative", "sort", "top_k", "normal", "scatter", "convolution", "vmap of while")


@pytest.mark.parametrize("name", CASES)
def test_a_function_comes_back(name: str) -> None:
    fn, args = CASES[name]
    round_trip(fn, *args, tolerance=1e-5)


@pytest.mark.parametrize("name", ON_CPU)
def test_a_function_lowered_for_the_cpu_comes_back(name: str) -> None:
    fn, args = CASES[name]
    round_trip(fn, *args, platform="cpu", tolerance=1e-5)


def test_scalars_are_scalars_again() -> None:
    program = round_trip(CASES["scalars"][0], X, tolerance=1e-6)
    assert [e.primitive for _, _, e in equations(program) if isinstance(e, Op)] == [
        *("mul", "add", "div", "slice", "reshape", "mul", "sub"),
    ]
