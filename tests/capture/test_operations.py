"""Functions over every kind of operation a model uses: captured, written as text, and captured and run again."""

# ruff: noqa: ARG005  (one signature per group of functions: not each uses all of it)
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from reducer.errors import ProgramError
from reducer.lowering.capture import captured
from tests.capture.roundtrip import round_trip

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
Y = np.linspace(0.1, 2, 32, dtype=np.float32).reshape(4, 8)
I = np.array([0, 2, 1], np.int32)  # noqa: E741
A = np.eye(3, dtype=np.float32) * 3 + np.arange(9, dtype=np.float32).reshape(3, 3) / 9
IMAGE = np.linspace(-1, 1, 2 * 6 * 6 * 4, dtype=np.float32).reshape(2, 6, 6, 4)
KERNEL = np.linspace(-1, 1, 3 * 3 * 4 * 5, dtype=np.float32).reshape(3, 3, 4, 5)
NHWC = ("NHWC", "HWIO", "NHWC")

Case = tuple[Callable[..., Any], Sequence[Any]]


def causal(x: Any, kernel: Any) -> Any:
    """A convolution of each channel over time, as mixers of sequences have it."""
    numbers = ("NWC", "WIO", "NWC")
    return lax.conv_general_dilated(x, kernel, (1,), [(2, 0)], feature_group_count=4, dimension_numbers=numbers)


def each(*functions: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: [f(*args) for f in functions]


ELEMENTWISE: dict[str, Case] = {
    "trigonometric": (
        each(jnp.sin, jnp.cos, jnp.tan, jnp.arcsin, jnp.arccos, jnp.arctan, jnp.sinh, jnp.cosh, jnp.tanh, jnp.arcsinh),
        [Y / 3],
    ),
    "exponential": (
        each(jnp.exp, jnp.exp2, jnp.log, jnp.log1p, jnp.expm1, jnp.sqrt, lax.rsqrt, jnp.cbrt, lax.logistic),
        [Y],
    ),
    "special": (each(lax.erf, lax.erfc, lax.erf_inv, lax.lgamma, lax.digamma, jnp.arctanh), [Y / 3]),
    "rounding": (
        each(jnp.floor, jnp.ceil, jnp.round, jnp.abs, jnp.sign, jnp.isnan, jnp.isinf, jnp.isfinite, jnp.signbit),
        [X],
    ),
    "powers": (each(lambda v: v**3, jnp.square, lambda v: -v, lambda v: v**2.5, lambda v: 1 / v, lambda v: 2**v), [Y]),
    "arithmetic": (
        each(jnp.add, jnp.subtract, jnp.multiply, jnp.divide, jnp.maximum, jnp.remainder, jnp.floor_divide, jnp.fmod),
        [X, Y],
    ),
    "binary": (
        each(lambda x, y: jnp.power(y, x), jnp.arctan2, jnp.nextafter, jnp.logaddexp, jnp.hypot, jnp.greater),
        [X, Y],
    ),
    "scalars": (each(lambda x: 1 - x, lambda x: x == 0, lambda x: jnp.minimum(x, 0.0), lambda x: 2 / x * 0.5), [Y]),
    "integers": (
        each(
            lambda i: i // 2,
            lambda i: i % 2,
            lambda i: -i << 1,
            lambda i: i >> 1 & 1 | 2,
            lambda i: ~i ^ 3,
            lax.population_count,
            lax.clz,
            jnp.abs,
            lambda i: lax.shift_right_logical(i, 1),
            lambda i: (i > 1) & ~(i < 3),
            lambda i: i.astype(jnp.uint8),
        ),
        [I],
    ),
    "narrow-floats": (
        each(
            lambda h: h @ h.T,
            lambda h: h.sum(0),
            lambda h: (h * 2).mean(),
            jnp.tanh,
            lambda h: jnp.dot(h, h.T, preferred_element_type=jnp.float32),
            lambda h: h.astype(jnp.float8_e4m3fn).astype(jnp.float32),
            lambda h: h.astype(jnp.float16) * 0.1,
            jax.nn.softmax,
        ),
        [X.astype(jnp.bfloat16)],
    ),
    "choosing": (
        each(
            lambda x, y: jnp.where(x > 0, x, y),
            lambda x, y: jnp.where(x > 0, 1.0, 0.0),
            lambda x, y: jnp.clip(x, -0.5, 0.5) + y,
            lambda x, y: lax.clamp(0.0, x, 1.0) - y,
            lambda x, y: lax.select_n(jnp.int32(1), x, y, x),
            lambda x, y: jnp.select([x > 0, y > 0], [x, y]),
            lambda x, y: jnp.nan_to_num(x / (y - y)),
        ),
        [X, Y],
    ),
    "other": (
        each(
            lax.optimization_barrier,
            lax.stop_gradient,
            jnp.copy,
            lambda x: lax.bitcast_convert_type(x, jnp.int32),
            lambda x: lax.reduce_precision(x, 8, 7),
            jax.jit(lambda x: x * 2),
            lambda x: jnp.polyval(jnp.array([1.0, 2.0, 3.0]), x) if jax.__version__ < "0.12" else x,
            lambda x: jnp.linspace(0, 1, 5) + x.sum(),
        ),
        [X],
    ),
    "complex": (each(lambda x: jnp.real(lax.complex(x, x) * 1j), lambda x: jnp.abs(jnp.exp(1j * x))), [X]),
    "fourier": (each(jnp.fft.rfft, lambda x: jnp.abs(jnp.fft.fft(x))), [X]),
}

SHAPES: dict[str, Case] = {
    "layout": (
        each(
            lambda x: x.T,
            lambda x: x.reshape(2, 16),
            lambda x: x[None],
            jnp.ravel,
            lambda x: jnp.squeeze(x[:1]),
            lambda x: jnp.expand_dims(x, 1),
            lambda x: jnp.broadcast_to(x[:, :1], (4, 8)),
            lambda x: jnp.flip(x, 1),
        ),
        [X],
    ),
    "cutting": (
        each(
            lambda x: x[1:3, ::2],
            lambda x: jnp.split(x, 2, 1),
            lambda x: jnp.split(x, [1, 3]),
            lambda x: lax.split(x, (4,), axis=0),
            lambda x: jnp.unstack(x),
            lambda x: jnp.unstack(x[:1]),
            lambda x: jnp.diagonal(x[:, :4]),
        ),
        [X],
    ),
    "joining": (
        each(
            lambda x: jnp.concatenate([x, x], 1),
            lambda x: jnp.stack([x, x], 1),
            lambda x: jnp.tile(x, (2, 1)),
            lambda x: jnp.repeat(x, 2, 0),
            lambda x: jnp.pad(x, ((1, 0), (0, 2))),
            lambda x: lax.pad(x, 0.0, ((1, -1, 1), (0, 0, 0))),
            lambda x: jnp.roll(x, 1, 0),
            lambda x: jnp.meshgrid(x[0], x[1]),
        ),
        [X],
    ),
    "making": (each(jnp.tril, lambda x: jnp.eye(4) + jnp.arange(4.0), lambda x: jnp.full((2,), 3.0)), [X]),
    "reductions": (
        each(
            jnp.sum,
            lambda x: x.max(1),
            jnp.min,
            jnp.prod,
            lambda x: x.mean(-1, keepdims=True),
            jnp.var,
            lambda x: jnp.argmax(x, 1),
            jnp.argmin,
            lambda x: jnp.all(x > 0),
            lambda x: jnp.any(x > 0, 0),
            lambda x: jax.nn.logsumexp(x, 1),
            jnp.linalg.norm,
        ),
        [X],
    ),
    "cumulative": (
        each(
            lambda x: jnp.cumsum(x, 1),
            lambda x: jnp.cumprod(x, 0),
            lax.cummax,
            lambda x: lax.cummin(x, axis=1, reverse=True),
            lambda x: lax.cumlogsumexp(x, axis=1),
        ),
        [X],
    ),
    "products": (
        each(
            lambda x, y: x @ y.T,
            lambda x, y: jnp.einsum("bij,bjk->bik", x.reshape(2, 2, 8), y.reshape(2, 8, 2)),
            lambda x, y: jnp.einsum("bqhd,bkhd->bhqk", x.reshape(2, 2, 2, 4), y.reshape(2, 2, 2, 4)),
            lambda x, y: jnp.dot(x, y[0]),
            jnp.vdot,
            lambda x, y: jnp.matmul(x, y.T, precision="highest"),
            lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((), ())), precision=(lax.Precision.HIGH,) * 2),
            lambda x, y: jnp.tensordot(x, y, axes=2),
            lambda x, y: lax.ragged_dot(x, jnp.ones((2, 8, 5)), jnp.array([1, 3], jnp.int32)),
        ),
        [X, Y],
    ),
    "reading": (
        each(
            lambda x, i: x[i],
            lambda x, i: x[i[0]],
            lambda x, i: x[i, i],
            lambda x, i: jnp.take(x, i, axis=1),
            lambda x, i: jnp.take(x, i, axis=0, mode="clip"),
            lambda x, i: x.at[i].get(mode="fill", fill_value=0),
            lambda x, i: jnp.take_along_axis(x, i[None, :] * jnp.ones((4, 1), jnp.int32), 1),
            lambda x, i: lax.dynamic_slice(x, (i[0], 0), (2, 3)),
            lambda x, i: lax.dynamic_index_in_dim(x, i[0], 0),
            lambda x, i: jax.nn.one_hot(i, 5),
        ),
        [X, I],
    ),
    "writing": (
        each(
            lambda x, i: x.at[i].set(1.0),
            lambda x, i: x.at[i].add(2.0),
            lambda x, i: x.at[0].mul(3.0),
            lambda x, i: x.at[i, i].max(0.0),
            lambda x, i: x.at[i].min(0.0),
            lambda x, i: x.at[1:3].set(0.0),
            lambda x, i: x.at[i].add(-1.0, mode="drop"),
            lambda x, i: lax.dynamic_update_slice(x, x[:2], (i[0], i[1])),
        ),
        [X, I],
    ),
    "sorting": (
        each(
            jnp.sort,
            lambda x: jnp.argsort(x, 0),
            lambda x: lax.top_k(x, 3),
            lambda x: lax.sort((x, -x), num_keys=1),
            lambda x: jnp.sort(x, descending=True),
            lambda x: lax.approx_max_k(x, 2),
            lambda x: jnp.quantile(x, 0.3),
        ),
        [X],
    ),
    "convolutions": (
        each(
            lambda a, k: lax.conv_general_dilated(a, k, (1, 1), "SAME", dimension_numbers=NHWC),
            lambda a, k: lax.conv_general_dilated(
                a, k[:, :, :1, :4], (2, 2), "VALID", feature_group_count=4, dimension_numbers=NHWC
            ),
            lambda a, k: lax.conv_transpose(a, k, (2, 2), "SAME"),
            jax.grad(lambda a, k: (causal(a[0], k[0, :, :1, :4]) ** 2).sum(), 1),
            jax.grad(
                lambda a, k: (lax.conv_general_dilated(a, k, (1, 1), "SAME", dimension_numbers=NHWC) ** 2).sum(), 1
            ),
        ),
        [IMAGE, KERNEL],
    ),
    "windows": (
        each(
            lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
            lambda a: lax.reduce_window(a, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "SAME"),
        ),
        [IMAGE],
    ),
    "attention": (
        each(
            lambda x, y: jax.nn.dot_product_attention(*(a[None, :, None] for a in (x, y, y)), is_causal=True),
            lambda x, y: jnp.log2(jnp.abs(x) + y),
        ),
        [X, Y],
    ),
    "linear-algebra": (
        each(
            lambda a: jax.scipy.linalg.solve_triangular(a, a[:, 0], lower=True),
            jnp.linalg.qr,
            lambda a: jnp.linalg.eigh(a + a.T),
            jnp.linalg.inv,
            jnp.linalg.det,
        ),
        [A],
    ),
}

CONTROL: dict[str, Case] = {
    "conditionals": (
        each(
            lambda x, i: lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: v + 1, x),
            lambda x, i: lax.switch(i[1], [lambda v: v, lambda v: v + 1, lambda v: v * 3], x),
            lambda x, i: lax.cond(i[0] > 0, lambda: 1.0, lambda: 2.0),
            lambda x, i: lax.platform_dependent(x, cpu=lambda v: v * 1, default=lambda v: v * 1),
        ),
        [X, I],
    ),
    "loops": (
        each(
            lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2 + x), (0, x)),
            lambda x: lax.fori_loop(0, 5, lambda k, c: c + k, x),
            lambda x: lax.fori_loop(0, 4, lambda k, c: c.at[k].set(k * 1.0), x),
            lambda x: lax.map(lambda r: r * 2, x),
            lambda x: lax.associative_scan(jnp.add, x),
        ),
        [X],
    ),
    "scans": (
        each(
            lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x),
            lambda x: lax.scan(lambda c, r: (c + r, None), x[0], x, reverse=True),
            lambda x: lax.scan(lambda c, _: (c * 2, c), x[0], None, length=3),
            lambda x: lax.scan(lambda c, r: (c + r * x[1], c), x[0], x, unroll=2),
            jax.grad(lambda x: lax.scan(lambda c, r: (jnp.tanh(c * r), c * r), x[0], x)[1].sum()),
        ),
        [X],
    ),
    "batched": (
        jax.vmap(
            each(
                lambda r: r / jnp.sum(r),
                lambda r: r[jnp.argmax(r)],
                lambda r: lax.cond(r[0] > 0, lambda: r, lambda: -r),
                lambda r: lax.while_loop(lambda c: c.sum() < 1e3, lambda c: c * 2 + 1, r),
            )
        ),
        [Y],
    ),
    "gradients": (
        jax.grad(
            lambda x: sum(
                f(x).sum()
                for f in (
                    jax.nn.gelu,
                    jax.nn.silu,
                    jax.nn.softmax,
                    jnp.tanh,
                    jnp.abs,
                    lambda v: v**3,
                    lambda v: jnp.max(v, 1),
                    jnp.sort,
                    lambda v: jnp.cumsum(v, 0),
                    lambda v: v[jnp.array([0, 0])],
                    jax.nn.logsumexp,
                    lambda v: jnp.prod(v, 0),
                    lambda v: jnp.linalg.norm(v, axis=1),
                    lambda v: lax.top_k(v, 2)[0],
                    lambda v: jnp.clip(v, 0.2, 0.6),
                    lambda v: v.astype(jnp.bfloat16).astype(jnp.float32),
                    lambda v: lax.dynamic_slice(v, (1, 1), (2, 2)),
                    lambda v: lax.dynamic_update_slice(v, v[:2, :2] * 2, (1, 1)),
                    lambda v: jnp.pad(v, 1),
                    lambda v: v[::2],
                    lambda v: v.at[0].add(v[1]),
                    lambda v: jnp.take_along_axis(v, jnp.ones((4, 1), jnp.int32), 1),
                )
            )
        ),
        [Y],
    ),
    "activations": (
        each(
            jax.nn.relu,
            jax.nn.gelu,
            jax.nn.silu,
            jax.nn.log_softmax,
            jax.nn.softplus,
            jax.nn.elu,
            jax.nn.leaky_relu,
            jax.nn.glu,
            jax.nn.standardize,
            jax.nn.hard_swish,
            jax.nn.selu,
        ),
        [X],
    ),
}

ALL = ELEMENTWISE | SHAPES | CONTROL


@pytest.mark.parametrize("name", ALL)
def test_round_trip(name: str) -> None:
    fn, args = ALL[name]
    round_trip(fn, *map(jnp.asarray, args), rules="inline")


@pytest.mark.parametrize("implementation", ["threefry2x32", "unsafe_rbg", "rbg"])
def test_random_numbers(implementation: str) -> None:
    functions = each(
        lambda k: jax.random.normal(k, (3,)),
        jax.random.split,
        lambda k: jax.random.uniform(jax.random.fold_in(k, 7), (2,)),
        lambda k: jax.random.bernoulli(k, 0.5, (4,)),
        lambda k: jax.random.randint(k, (3,), 0, 9),
        lambda k: jax.random.permutation(k, 5),
        lambda k: jax.random.categorical(k, jnp.zeros((3, 4))),
        jax.random.key_data,
        lambda k: jax.random.bits(k, (3,), "uint8"),
        lambda k: jax.random.gumbel(k, (2,)),
    )
    key = jax.random.key(0, impl=implementation)
    round_trip(functions, key, rules="inline", module=implementation == "threefry2x32")


def test_raw_random_keys() -> None:
    round_trip(each(lambda k: jax.random.normal(k, (3,)), jax.random.split), jax.random.PRNGKey(1), rules="inline")


def test_total_order_is_written_with_bit_patterns() -> None:
    """The one comparison no public function writes; nan and signed zeros sort as in JAX."""
    edges = jnp.array([-jnp.inf, -1.0, -0.0, 0.0, 1.0, jnp.nan])
    round_trip(lambda x, y: jnp.searchsorted(x, y), edges, edges[::-1], rules="inline", module=False)


def test_cholesky_comes_with_its_mask() -> None:
    """No public function binds the primitive alone: its text zeroes the upper triangle once more."""
    round_trip(lambda a: jnp.linalg.cholesky(a @ a.T), jnp.asarray(A), rules="inline", module=False, stable=False)


def test_constant_arrays() -> None:
    table = np.arange(24, dtype=np.float32).reshape(8, 3)

    def fn(x: Any) -> Any:
        def step(c: Any, r: Any) -> Any:
            return c + r @ table, lax.cond(r.sum() > 0, lambda: r * np.arange(8.0, dtype=np.float32), lambda: r)

        return lax.scan(step, jnp.zeros(3), x), x + np.full((8,), 2.0, np.float32)

    program = round_trip(fn, jnp.asarray(X), module=False)
    assert [str(v.type) for v in program.block.params] == ["f32[4,8]", "f32[8,3]", "f32[8]"]


def test_printing_is_left_out() -> None:
    def fn(x: Any) -> Any:
        jax.debug.print("x = {}", x)
        return x * 2

    assert len(round_trip(fn, jnp.asarray(X), module=False, run=False).block.eqns) == 1


def test_an_update_by_a_function_is_not_taken_for_a_plain_one() -> None:
    with pytest.raises(ProgramError, match=r"not expressible: scatter .* it updates by a computation of its own"):
        captured(lambda x: x.at[jnp.array([1, 2])].apply(jnp.tanh), jnp.asarray(X))
