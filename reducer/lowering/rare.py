"""Writers of the rest: primitives for which `reducer.ir.rules` has no type rule.

A program may hold them (capture writes them down, nothing reduces their dimensions), so they can be written too.
"""

from __future__ import annotations

from typing import Final

from reducer.errors import ProgramError
from reducer.lowering import texts
from reducer.lowering.texts import MUL, Expr, attribute, call
from reducer.lowering.writers import Use, Writer, arguments, function, registrar

WRITERS: Final[dict[str, Writer]] = {}
register = registrar(WRITERS)

for _name in ("bessel_i0e", "bessel_i1e", "real", "imag"):
    WRITERS[_name] = function(f"lax.{_name}", 1)
for _name in ("igamma", "igammac", "igamma_grad_a", "zeta", "polygamma", "complex"):
    WRITERS[_name] = function(f"lax.{_name}", 2)
WRITERS["regularized_incomplete_beta"] = function("lax.betainc", 3)
WRITERS["conj"] = function("lax.conj", 1)
WRITERS["cholesky"] = function("lax.linalg.cholesky", 1, symmetrize_input="False")
WRITERS["random_clone"] = function("jax.random.clone", 1)
WRITERS["random_fold_in"] = function("jax.random.fold_in", 2)
WRITERS["random_unwrap"] = function("jax.random.key_data", 1)


@register("one_minus_square")
def _one_minus_square(use: Use) -> Expr:
    # Some versions have a primitive for 1 - x*x; written so, it has the primitive's numbers to the last bit.
    (x,) = arguments(use, 1)
    return Expr(f"(1 - {x.atom}) * (1 + {x.atom})", MUL)


@register("tile")
def _tile(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    reps = tuple(n // max(m, 1) for n, m in zip(use.out.shape, x.type.shape, strict=True))
    return call("lax.tile", x.typed, attribute(reps))


@register("empty")
def _empty(use: Use) -> Expr:
    return call("lax.empty", attribute(use.out.shape), texts.dtype(use.out.dtype))


@register("triangular_solve")
def _triangular_solve(use: Use) -> Expr:
    a, b = arguments(use, 2)
    names = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
    return call("lax.linalg.triangular_solve", a.typed, b.typed, **{name: use.attr(name) for name in names})


@register("fft")
def _fft(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    return call("lax.fft", x.typed, attribute(use.need("fft_type")), attribute(tuple(use.need("fft_lengths"))))


@register("stack")
def _stack(use: Use) -> Expr:
    return call("jnp.stack", f"[{', '.join(a.typed for a in use.args)}]", attribute(use.attributes.get("axis", 0)))


@register("unstack")
def _unstack(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    pieces = call("jnp.unstack", x.typed, axis=attribute(use.attributes.get("axis", 0)))
    return pieces if len(use.outs) > 1 else Expr(f"{pieces.text}[0]")


@register("ragged_dot_general")
def _ragged_dot(use: Use) -> Expr:
    operands = [a.typed for a in arguments(use, 3)]
    dims, ragged, groups = use.need("ragged_dot_dimension_numbers")
    numbers = f"lax.RaggedDotDimensionNumbers({attribute(dims)}, {attribute(ragged)}, {attribute(groups)})"
    kind, precision = texts.dtype(use.out.dtype), use.attr("precision")
    return call("lax.ragged_dot_general", *operands, numbers, precision=precision, preferred_element_type=kind)


@register("approx_top_k")
def _approx_top_k(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    axis = use.need("reduction_dimension")
    recall = texts.number(str(use.need("recall_target")), "float32").text
    name = "lax.approx_max_k" if use.need("is_max_k") else "lax.approx_min_k"
    k = attribute(use.out.shape[axis])
    return call(name, x.typed, k, reduction_dimension=attribute(axis), recall_target=recall)


WRITERS["lu"] = function("lax.linalg.lu", 1)


@register("qr")
def _qr(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    return call("lax.linalg.qr", x.typed, full_matrices=attribute(use.attributes.get("full_matrices", True)))


@register("eigh")
def _eigh(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    names = ("lower", "sort_eigenvalues")
    keywords = {name: attribute(use.attributes.get(name, True)) for name in names}
    return call("lax.linalg.eigh", x.typed, symmetrize_input="False", **keywords)


#: The reduction whose windowed form each primitive is, and where it starts.
_WINDOWED: Final = {"reduce_window_sum": "lax.add", "reduce_window_max": "lax.max", "reduce_window_min": "lax.min"}


@register(*_WINDOWED)
def _reduce_window(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    names = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")
    kind = texts.dtype(x.type.dtype)
    if use.primitive == "reduce_window_sum":
        start = "0"
    else:
        lowest = use.primitive == "reduce_window_max"
        number = ("-" if lowest else "") + "np.inf"
        start = number if x.type.inexact else f"jnp.iinfo({kind}).{'min' if lowest else 'max'}"
    keywords = {name: use.attr(name) for name in names}
    # JAX recognises the primitive by its function and its start, if that is a constant.
    return call("lax.reduce_window", x.typed, f"np.array({start}, {kind})", _WINDOWED[use.primitive], **keywords)


# -- random numbers -----------------------------------------------------------------------------------------------


def _implementation(use: Use) -> str:
    name = texts.KEY_IMPLEMENTATIONS.get(use.out.dtype)
    if name is None:
        raise ProgramError(f"{use.primitive} gives a PRNG key, not {use.out}")
    return attribute(name)


@register("random_bits")
def _random_bits(use: Use) -> Expr:
    (key,) = arguments(use, 1)
    if key.type.shape:
        raise ProgramError("random_bits of an array of keys cannot be written", hint="split it into scalar keys")
    return call("jax.random.bits", key.typed, attribute(use.out.shape), texts.dtype(use.out.dtype))


@register("random_seed")
def _random_seed(use: Use) -> Expr:
    (seed,) = arguments(use, 1)
    return call("jax.random.key", seed.typed, impl=_implementation(use))


@register("random_wrap")
def _random_wrap(use: Use) -> Expr:
    (data,) = arguments(use, 1)
    return call("jax.random.wrap_key_data", data.typed, impl=_implementation(use))


@register("random_split")
def _random_split(use: Use) -> Expr:
    (key,) = arguments(use, 1)
    return call("jax.random.split", key.typed, attribute(use.out.shape[key.type.rank :]))


@register("rng_bit_generator")
def _rng_bit_generator(use: Use) -> Expr:
    (key,) = arguments(use, 1)
    bits = use.outs[1]
    return call("lax.rng_bit_generator", key.typed, attribute(bits.shape), texts.dtype(bits.dtype))


# -- collectives, inside shard_map --------------------------------------------------------------------------------


def _groups(use: Use) -> dict[str, str | None]:
    return {"axis_index_groups": use.attr("axis_index_groups")}


@register("psum", "psum2", "psum_invariant", "pmax", "pmin")
def _all_reduce(use: Use) -> Expr:
    operands = [a.typed for a in use.args]
    name = "psum" if use.primitive.startswith("psum") else use.primitive
    axes = attribute(use.need("axes"))
    return call(f"lax.{name}", operands[0] if len(operands) == 1 else f"({', '.join(operands)})", axes, **_groups(use))


@register("ppermute")
def _ppermute(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    return call("lax.ppermute", x.typed, attribute(use.need("axis_name")), attribute(use.need("perm")))


@register("all_gather")
def _all_gather(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    axis, tiled = use.attr("all_gather_dimension"), use.attr("tiled")
    return call("lax.all_gather", x.typed, attribute(use.need("axis_name")), axis=axis, tiled=tiled, **_groups(use))


@register("reduce_scatter")
def _reduce_scatter(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    name, axis = attribute(use.need("axis_name")), use.attr("scatter_dimension")
    return call("lax.psum_scatter", x.typed, name, scatter_dimension=axis, tiled=use.attr("tiled"), **_groups(use))


@register("all_to_all")
def _all_to_all(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    name, split, concat = (attribute(use.need(n)) for n in ("axis_name", "split_axis", "concat_axis"))
    return call("lax.all_to_all", x.typed, name, split, concat, tiled=use.attr("tiled"), **_groups(use))


@register("axis_index")
def _axis_index(use: Use) -> Expr:
    return call("lax.axis_index", attribute(use.need("axis_name")))


@register("pvary", "pcast")
def _pcast(use: Use) -> Expr:
    (x,) = arguments(use, 1)
    axes, to = attribute(use.need("axes")), use.attributes.get("to", "varying")
    if to == "varying":
        return call("varying", x.typed, axes)  # JAX does some of it by itself, and refuses it a second time
    return call("lax.pcast", x.typed, axes, to=attribute(to))
