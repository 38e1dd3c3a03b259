"""Parameters of first-order primitives -> attributes of an `Op`.

An attribute keeps what the result's type does not already say. Which parameters those are is a table, because a
parameter that is silently dropped changes a program: a parameter named nowhere below must be None or False.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reducer.errors import ProgramError
from reducer.ir.equations import Attr, ConvDims, Enum, GatherDims, ScatterDims

_REDUCE: Final = "axes"
_CUMULATIVE: Final = "axis reverse"
_SCATTER: Final = "dimension_numbers mode indices_are_sorted unique_indices"

#: primitive -> parameters that are kept, in jaxpr spelling. A primitive that is not here keeps nothing.
KEPT: Final[dict[str, str]] = {
    **dict.fromkeys(("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"), _REDUCE),
    **dict.fromkeys(("reduce_and", "reduce_or", "reduce_xor", "argmax", "argmin"), _REDUCE),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), _CUMULATIVE),
    **dict.fromkeys(("scatter", "scatter-add", "scatter-mul", "scatter-min", "scatter-max"), _SCATTER),
    **dict.fromkeys(("scatter-sub", "scatter_sub"), _SCATTER),
    "integer_pow": "y",
    "round": "rounding_method",
    "reduce_precision": "exponent_bits mantissa_bits",
    "broadcast_in_dim": "broadcast_dimensions",
    "transpose": "permutation",
    "squeeze": "dimensions",
    "rev": "dimensions",
    "dot_general": "dimension_numbers precision",
    "concatenate": "dimension",
    "split": "axis",
    "slice": "start_indices limit_indices strides",
    "iota": "dimension",
    "pad": "padding_config",
    "sort": "dimension is_stable num_keys",
    "top_k": "axis is_stable",
    "gather": "dimension_numbers slice_sizes mode fill_value indices_are_sorted unique_indices",
    "conv_general_dilated": (
        "dimension_numbers window_strides padding lhs_dilation rhs_dilation feature_group_count batch_group_count "
        "precision"
    ),
    "reduce_window_sum": "window_dimensions window_strides padding base_dilation window_dilation",
    "reduce_window_max": "window_dimensions window_strides padding base_dilation window_dilation",
    "reduce_window_min": "window_dimensions window_strides padding base_dilation window_dilation",
    "select_and_scatter_add": "window_dimensions window_strides padding",
    "random_bits": "bit_width",
    "rng_bit_generator": "algorithm",
    "triangular_solve": "left_side lower transpose_a conjugate_a unit_diagonal",
    "qr": "pivoting full_matrices",
    "eigh": "lower sort_eigenvalues",
    "svd": "full_matrices compute_uv",
    "fft": "fft_type fft_lengths",
    "psum": "axes axis_index_groups",
    "psum2": "axes axis_index_groups",
    "psum_invariant": "axes axis_index_groups",
    "pmax": "axes axis_index_groups",
    "pmin": "axes axis_index_groups",
    "ppermute": "axis_name perm",
    "all_to_all": "axis_name split_axis concat_axis tiled axis_index_groups",
    "all_gather": "axis_name all_gather_dimension axis_index_groups axis_size tiled",
    "reduce_scatter": "axis_name scatter_dimension axis_index_groups axis_size tiled",
    "axis_index": "axis_name",
    "pvary": "axes",
    "pcast": "axes to",
}

#: Parameters that repeat the result's type, or that the text gives back by itself. `update_jaxpr` is the addition of a
#: scatter-add; `impl` is the key type of the result; `use_magma` and `algorithm` choose libraries on GPUs only.
_DERIVED: Final = frozenset(
    (
        *("shape", "new_sizes", "new_dtype", "weak_type", "dtype", "index_dtype", "sizes", "k", "input_dtype"),
        *("sharding", "out_sharding", "preferred_element_type", "update_jaxpr", "update_consts", "impl", "use_magma"),
    )
)
#: A derived name that is a real choice for these primitives.
_DEFAULTS: Final[dict[str, dict[str, tuple[object, ...]]]] = {
    "top_k": {"operand": ()},
    "lu": {},
    "cholesky": {"symmetrize_input": (False,)},
}
_ENUMS: Final = frozenset(("Precision", "GatherScatterMode", "FftType", "RoundingMethod", "DotAlgorithmPreset"))


def attributes(primitive: str, params: Mapping[str, Any]) -> tuple[tuple[str, Attr], ...]:
    """The attributes of an equation, sorted by name; those that are None are left out.

    Raises:
        ProgramError: a parameter has a value that is no attribute, or one that may not be dropped.
    """
    kept = KEPT.get(primitive, "").split()
    allowed = _DEFAULTS.get(primitive, {})
    out: dict[str, Attr] = {}
    for name, value in params.items():
        if name in kept:
            attribute = value_of(name, value)
            if attribute is not None:
                out[name] = attribute
        elif name not in _DERIVED and value not in (None, False, (), *allowed.get(name, ())):
            raise ProgramError(f"parameter {name}={value!r:.80} has no place in the IR")
    return tuple(sorted(out.items()))


def value_of(name: str, value: Any) -> Attr:
    """One parameter value as an attribute.

    Raises:
        ProgramError: not one of the closed set of attribute values.
    """
    kind = type(value).__name__
    if value is None or isinstance(value, bool | str):
        return value
    if kind in _ENUMS:
        return Enum(f"{kind}.{value.name}")
    if kind in ("GatherDimensionNumbers", "ScatterDimensionNumbers", "ConvDimensionNumbers"):
        return _dims(kind, value)
    if name == "precision" and isinstance(value, tuple) and len(set(value)) == 1:
        return value_of(name, value[0])
    if name == "fill_value":
        return repr(value.item() if hasattr(value, "item") else value)
    if isinstance(value, tuple | list):
        return tuple(value_of(name, item) for item in value)
    if hasattr(value, "__index__"):  # int, and NumPy's integers in shapes and paddings
        return int(value)
    raise ProgramError(f"parameter {name}={value!r:.80} has no place in the IR")


def _dims(kind: str, value: Any) -> Attr:
    classes = {
        "GatherDimensionNumbers": GatherDims,
        "ScatterDimensionNumbers": ScatterDims,
        "ConvDimensionNumbers": ConvDims,
    }
    target = classes[kind]
    return target(**{f: tuple(map(int, getattr(value, f))) for f in target.__struct_fields__})
