"""Parameters of first-order primitives -> attributes of an `Op`.

An attribute keeps what the result's type does not already say, and only if it is not what JAX does anyway. Both are
tables, because a parameter that is silently dropped changes a program: one that stands in neither must be None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from reducer.errors import ProgramError
from reducer.ir.equations import Attr, ConvDims, Enum, GatherDims, ScatterDims
from reducer.ir.scalars import canonical_scalar
from reducer.ir.types import Type

_SCATTER: Final = "dimension_numbers mode indices_are_sorted unique_indices"
_WINDOW: Final = "window_dimensions window_strides padding base_dilation window_dilation"
_GROUPS: Final = "axis_name axis_index_groups"

#: primitive -> parameters that are kept, in jaxpr spelling. A primitive that is not here keeps nothing.
KEPT: Final[dict[str, str]] = {
    **dict.fromkeys(
        ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_xor"], "axes"
    ),
    **dict.fromkeys(["argmax", "argmin"], "axes"),
    **dict.fromkeys(["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"], "axis reverse"),
    **dict.fromkeys(["scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max"], _SCATTER),
    **dict.fromkeys(["reduce_window_sum", "reduce_window_max", "reduce_window_min"], _WINDOW),
    **dict.fromkeys(["psum", "psum2", "psum_invariant", "pmax", "pmin"], "axes axis_index_groups"),
    "integer_pow": "y",
    "round": "rounding_method",
    "reduce_precision": "exponent_bits mantissa_bits",
    "broadcast_in_dim": "broadcast_dimensions",
    "transpose": "permutation",
    "squeeze": "dimensions",
    "rev": "dimensions",
    "dot_general": "dimension_numbers precision",
    "ragged_dot_general": "ragged_dot_dimension_numbers precision",
    "concatenate": "dimension",
    "stack": "axis",
    "unstack": "axis",
    "split": "axis",
    "slice": "start_indices limit_indices strides",
    "iota": "dimension",
    "pad": "padding_config",
    "sort": "dimension is_stable num_keys",
    "top_k": "axis",
    "approx_top_k": "reduction_dimension recall_target is_max_k",
    "gather": "dimension_numbers slice_sizes mode fill_value indices_are_sorted unique_indices",
    "conv_general_dilated": (
        "dimension_numbers window_strides padding lhs_dilation rhs_dilation feature_group_count batch_group_count "
        "precision"
    ),
    "select_and_gather_add": f"select_prim {_WINDOW}",
    "triangular_solve": "left_side lower transpose_a conjugate_a unit_diagonal",
    "qr": "full_matrices",
    "eigh": "lower sort_eigenvalues",
    "fft": "fft_type fft_lengths",
    "rng_bit_generator": "algorithm",
    "ppermute": "axis_name perm",
    "all_to_all": f"{_GROUPS} split_axis concat_axis tiled",
    "all_gather": f"{_GROUPS} all_gather_dimension tiled",
    "reduce_scatter": f"{_GROUPS} scatter_dimension tiled",
    "axis_index": "axis_name",
    "pvary": "axes",
    "pcast": "axes to",
}

#: Parameters that repeat the result's type, or that come back by themselves: `update_jaxpr` is the addition of a
#: scatter-add, `impl` the key type of the result, `axis_size` the mesh's; `use_magma` and `algorithm` choose
#: libraries on GPUs.
_DERIVED: Final = frozenset(
    (
        *("shape", "new_sizes", "new_dtype", "weak_type", "dtype", "index_dtype", "sizes", "k", "bit_width"),
        *("input_dtype", "preferred_element_type", "sharding", "out_sharding", "update_jaxpr", "update_consts"),
        *("impl", "axis_size", "use_magma", "algorithm", "memory_space"),
    )
)
_DERIVED_OF: Final = frozenset((("dynamic_slice", "slice_sizes"), ("tile", "reps")))
#: What JAX does if nothing is said, by parameter name; left out of the attributes.
_DEFAULTS: Final[dict[str, tuple[object, ...]]] = {
    **dict.fromkeys(
        ["reverse", "indices_are_sorted", "unique_indices", "tiled", "transpose_a", "conjugate_a"], (False,)
    ),
    **dict.fromkeys(["left_side", "unit_diagonal", "symmetrize_input", "pivoting"], (False,)),
    "feature_group_count": (1,),
    "batch_group_count": (1,),
    "aggregate_to_topk": (True,),
    "reduction_input_size_override": (-1,),
}
#: The same, for a parameter whose default differs from primitive to primitive.
_DEFAULTS_OF: Final[dict[tuple[str, str], tuple[object, ...]]] = {
    ("top_k", "is_stable"): (True,),
    ("triangular_solve", "lower"): (False,),
}
_ENUMS: Final = frozenset(
    ("Precision", "GatherScatterMode", "FftType", "RoundingMethod", "DotAlgorithmPreset", "RandomAlgorithm")
)


def attributes(
    primitive: str, params: Mapping[str, Any], args: Sequence[Type], outs: Sequence[Type]
) -> tuple[tuple[str, Attr], ...]:
    """The attributes of an equation, sorted by name.

    Raises:
        ProgramError: a parameter has a value that is no attribute, or one that may not be dropped.
    """
    kept = KEPT.get(primitive, "").split()
    out: dict[str, Attr] = {}
    for name, value in params.items():
        default = _DEFAULTS_OF.get((primitive, name), _DEFAULTS.get(name, ()))
        derived = (name in _DERIVED and name not in kept) or (primitive, name) in _DERIVED_OF
        if derived or value is None or value in default:
            continue
        if name not in kept:
            raise ProgramError(f"parameter {name}={value!r:.80} has no place in the IR")
        attribute = value_of(name, value)
        if attribute is not None:
            out[name] = attribute
    special = _SPECIAL.get(primitive)
    if special is not None:
        special(out, args, outs)
    return tuple(sorted(out.items()))


def _gather(found: dict[str, Attr], args: Sequence[Type], outs: Sequence[Type]) -> None:
    # The sizes of the slices follow from the result, unless a collapsed one is 0; and nan is what fills floats anyway.
    dims = found["dimension_numbers"]
    assert isinstance(dims, GatherDims)
    offsets = iter([outs[0].shape[i] for i in dims.offset_dims])
    one = {*dims.collapsed_slice_dims, *dims.operand_batching_dims}
    derived = tuple(1 if i in one else next(offsets) for i in range(args[0].rank))
    if found.get("slice_sizes") == derived:
        del found["slice_sizes"]
    fills = found.get("mode") == Enum("GatherScatterMode.FILL_OR_DROP")
    value = found.pop("fill_value", None)
    if value is not None and fills:
        text = canonical_scalar(repr(float(str(value))) if outs[0].inexact else str(value), outs[0].dtype)
        if text != "nan":
            found["fill_value"] = text


def _top_k(found: dict[str, Attr], args: Sequence[Type], _: Sequence[Type]) -> None:
    if found.get("axis") == args[0].rank - 1:
        del found["axis"]


def _integer_fields(kind: Any, value: Any) -> Attr:
    found: Attr = kind(**{f: tuple(map(int, getattr(value, f))) for f in kind.__struct_fields__})
    return found


_SPECIAL: Final = {"gather": _gather, "top_k": _top_k}
_DIMS: Final = {
    "GatherDimensionNumbers": GatherDims,
    "ScatterDimensionNumbers": ScatterDims,
    "ConvDimensionNumbers": ConvDims,
}


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
    if kind in _DIMS:
        return _integer_fields(_DIMS[kind], value)
    if kind == "RaggedDotDimensionNumbers":
        fields = (value.dot_dimension_numbers, value.lhs_ragged_dimensions, value.rhs_group_dimensions)
        return value_of(name, fields)
    if name == "precision" and isinstance(value, tuple) and len(set(value)) == 1:
        return value_of(name, value[0])
    if name in ("fill_value", "recall_target"):
        return repr(value.item() if hasattr(value, "item") else value)
    if isinstance(value, tuple | list):
        return tuple(value_of(name, item) for item in value)
    if hasattr(value, "__index__"):  # int, and NumPy's integers in shapes and paddings
        return int(value)
    raise ProgramError(f"parameter {name}={value!r:.80} has no place in the IR")
