"""Gathers, scatters, convolutions, sorting, solvers, random bits: operations with structured attributes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from reducer.errors import ProgramError
from reducer.ir.equations import Arg, ConvDims, Enum, GatherDims, ScatterDims
from reducer.raising import attributes
from reducer.raising.arrays import body_operation, precision
from reducer.raising.attributes import flag, integer, integers, member, pairs, text_of
from reducer.raising.convert import Raiser, handles, metadata, out_of, outs_of
from reducer.raising.frame import Frame, reshaped
from reducer.stablehlo.model import Block, Operation, Value, all_operations, attribute

_SCATTERS: Final = {
    "second": "scatter",
    "add": "scatter-add",
    "multiply": "scatter-mul",
    "minimum": "scatter-min",
    "maximum": "scatter-max",
}
_CONV: Final = re.compile(r"#stablehlo\.conv<\[(.*?)\]x\[(.*?)\]->\[(.*?)\]>")


def _indices(frame: Frame, indices: Arg, vector: int) -> Arg:
    """The indices with their components along the last axis, which is where JAX has them.

    Raises:
        ProgramError: the components are along another axis.
    """
    type_ = frame.type(indices)
    if vector == type_.rank:
        return reshaped(frame, indices, type_.with_shape((*type_.shape, 1)))
    if vector != type_.rank - 1:
        raise ProgramError(f"index_vector_dim is {vector} for {type_}")
    return indices


@handles("stablehlo.gather")
def _gather(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    x, indices = raiser.args(frame, operation)
    out = out_of(operation)
    found = attributes.fields(text_of(operation, "dimension_numbers"))
    names = "offset_dims collapsed_slice_dims start_index_map operand_batching_dims start_indices_batching_dims"
    dims = GatherDims(*(found.get(name, ()) for name in names.split()))
    indices = _indices(frame, indices, found.get("index_vector_dim", 0))
    sizes = integers(operation, "slice_sizes")
    offsets = iter([out.shape[i] for i in dims.offset_dims])
    one = {*dims.collapsed_slice_dims, *dims.operand_batching_dims}
    derived = tuple(1 if i in one else next(offsets) for i in range(frame.type(x).rank))
    return (
        frame.op(
            "gather",
            (x, indices),
            out,
            metadata(operation),
            dimension_numbers=dims,
            slice_sizes=None if sizes == derived else sizes,
            indices_are_sorted=flag(operation, "indices_are_sorted") or None,
            # Indices out of range are clamped, which is what the compiler does with them.
            mode=Enum("GatherScatterMode.CLIP"),
        ),
    )


@handles("stablehlo.scatter")
def _scatter(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    primitive = _SCATTERS.get(body_operation(operation.regions[0]) or "")
    args = raiser.args(frame, operation)
    if primitive is None or len(args) != 3:
        raise ProgramError("a scatter of several values, or with another body than one operation")
    found = attributes.fields(text_of(operation, "scatter_dimension_numbers"))
    dims = ScatterDims(
        update_window_dims=found.get("update_window_dims", ()),
        inserted_window_dims=found.get("inserted_window_dims", ()),
        scatter_dims_to_operand_dims=found.get("scatter_dims_to_operand_dims", ()),
        operand_batching_dims=found.get("input_batching_dims", ()),
        scatter_indices_batching_dims=found.get("scatter_indices_batching_dims", ()),
    )
    return (
        frame.op(
            primitive,
            (args[0], _indices(frame, args[1], found.get("index_vector_dim", 0)), args[2]),
            out_of(operation),
            metadata(operation),
            dimension_numbers=dims,
            indices_are_sorted=flag(operation, "indices_are_sorted") or None,
            unique_indices=flag(operation, "unique_indices") or None,
            # Updates out of range are dropped, which is what the compiler does with them.
            mode=Enum("GatherScatterMode.FILL_OR_DROP"),
        ),
    )


@handles("stablehlo.convolution")
def _convolution(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    x, w = raiser.args(frame, operation)
    text = text_of(operation, "dimension_numbers")
    match = _CONV.fullmatch(text)
    if match is None:
        raise attributes.unreadable("dimension_numbers", text)
    lhs, rhs, out = (part.split(", ") for part in match.groups())
    spatial = len(lhs) - 2
    dims = ConvDims(_layout(lhs, "b", "f"), _layout(rhs, "o", "i"), _layout(out, "b", "f"))
    one = (1,) * spatial
    turned = [dims.rhs_spec[2 + k] for k, n in enumerate(integers(operation, "window_reversal", (0,) * spatial)) if n]
    if turned:
        w = frame.op("rev", (w,), frame.type(w), dimensions=tuple(turned))
    groups, batches = (integer(operation, f"{name}_group_count", 1) for name in ("feature", "batch"))
    return (
        frame.op(
            "conv_general_dilated",
            (x, w),
            out_of(operation),
            metadata(operation),
            dimension_numbers=dims,
            window_strides=integers(operation, "window_strides", one),
            padding=pairs(operation, "padding", spatial),
            lhs_dilation=integers(operation, "lhs_dilation", one),
            rhs_dilation=integers(operation, "rhs_dilation", one),
            feature_group_count=None if groups == 1 else groups,
            batch_group_count=None if batches == 1 else batches,
            precision=precision(operation),
        ),
    )


def _layout(words: Sequence[str], first: str, second: str) -> tuple[int, ...]:
    """Where the two named dimensions are, then the spatial ones in order."""
    spatial = sorted((int(word), at) for at, word in enumerate(words) if word.isdigit())
    return (words.index(first), words.index(second), *(at for _, at in spatial))


@handles("stablehlo.sort")
def _sort(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    axis = integer(operation, "dimension", -1) % max(frame.type(raiser.args(frame, operation)[0]).rank, 1)
    return frame.ops(
        "sort",
        raiser.args(frame, operation),
        outs_of(operation),
        metadata(operation),
        dimension=axis,
        is_stable=flag(operation, "is_stable"),
        num_keys=_keys(operation.regions[0]),
    )


def _keys(region: Block) -> int:
    """How many operands a comparator looks at.

    Raises:
        ProgramError: it does not sort in ascending order by the first ones.
    """
    used: set[Value] = {value for o in all_operations(region) for value in o.operands}
    pairs_ = [set(region.params[k : k + 2]) for k in range(0, len(region.params), 2)]
    keys = sum(bool(pair & used) for pair in pairs_)
    orders = {
        member(text_of(o, "comparison_direction")) for o in all_operations(region) if o.name == "stablehlo.compare"
    }
    last = [o for o in region.operations if o.name == "stablehlo.compare"][-1:]
    ascending = "LT" in orders and not orders & {"GT", "GE", "LE"} and last
    if not ascending or not all(pair <= used for pair in pairs_[:keys]):
        raise ProgramError("a comparator that is not the ascending order of the first operands")
    return keys


@handles("chlo.top_k")
def _top_k(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    return frame.ops("top_k", raiser.args(frame, operation), outs_of(operation), metadata(operation))


@handles("stablehlo.triangular_solve")
def _triangular_solve(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    transposed = member(text_of(operation, "transpose_a"))
    return (
        frame.op(
            "triangular_solve",
            raiser.args(frame, operation),
            out_of(operation),
            metadata(operation),
            left_side=flag(operation, "left_side") or None,
            lower=flag(operation, "lower") or None,
            unit_diagonal=flag(operation, "unit_diagonal") or None,
            transpose_a=True if transposed != "NO_TRANSPOSE" else None,
            conjugate_a=True if transposed == "ADJOINT" else None,
        ),
    )


@handles("stablehlo.cholesky")
def _cholesky(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    if not flag(operation, "lower"):
        raise ProgramError("of an upper triangle")
    return (frame.op("cholesky", raiser.args(frame, operation), out_of(operation), metadata(operation)),)


@handles("stablehlo.fft")
def _fft(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    kind = member(text_of(operation, "fft_type"))
    lengths = integers(operation, "fft_length")
    how = Enum(f"FftType.{kind}")
    args = raiser.args(frame, operation)
    return (frame.op("fft", args, out_of(operation), metadata(operation), fft_type=how, fft_lengths=lengths),)


@handles("stablehlo.rng_bit_generator")
def _rng_bit_generator(raiser: Raiser, frame: Frame, operation: Operation) -> Sequence[Arg]:
    if member(attribute(operation.attributes, "rng_algorithm") or "#stablehlo<rng_algorithm DEFAULT>") != "DEFAULT":
        raise ProgramError("a generator that is not the default one")
    return frame.ops("rng_bit_generator", raiser.args(frame, operation), outs_of(operation), metadata(operation))
