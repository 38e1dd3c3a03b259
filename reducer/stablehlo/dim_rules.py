"""What each operation wants of the sizes of its operands and results."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from reducer.stablehlo.atoms import Atoms
from reducer.stablehlo.model import Operation, attribute
from reducer.stablehlo.types import is_splat


@dataclass(frozen=True, slots=True)
class Shapes:
    """The atoms of the dimensions of an operation's operands and results."""

    atoms: Atoms
    operands: tuple[tuple[int, ...], ...]
    results: tuple[tuple[int, ...], ...]

    def pin_all(self) -> None:
        """The rule of those without one."""
        for shape in (*self.operands, *self.results):
            self.atoms.pin(*shape)

    def size(self, atom: int) -> int:
        """The present size of a dimension."""
        return self.atoms.product(atom, {})

    def whole_or_pinned(self, inner: tuple[int, ...], outer: tuple[int, ...]) -> None:
        """A window of one shape in another: whole dimensions stay whole, others keep their sizes.

        A window of size 1 leaves the other dimension free.
        """
        for a, b in zip(inner, outer, strict=True):
            if self.size(a) == self.size(b):
                self.atoms.equal((a,), (b,))
            elif self.size(a) != 1:
                self.atoms.pin(a, b)


Rule = Callable[[Operation, Shapes], None]


def ints(text: str | None) -> list[int]:
    """The numbers of an ``array<i64: ...>``."""
    return [int(number) for number in re.findall(r"-?\d+", (text or "").partition(":")[2])]


def _lists(operation: Operation, name: str) -> dict[str, list[int]]:
    """The lists of numbers in an attribute such as ``#stablehlo.dot<...>``; a single number is a list of one."""
    text = attribute(operation.attributes, name) or ""
    found = {}
    for match in re.finditer(r"(\w+) = (\[[\d, ]*\]|\d+)", text):
        found[match[1]] = [int(number) for number in re.findall(r"\d+", match[2])]
    return found


def _elementwise(_: Operation, shapes: Shapes) -> None:
    first = shapes.results[0]
    for shape in (*shapes.operands, *shapes.results):
        if len(shape) == len(first):
            shapes.atoms.same(first, shape)
        else:
            shapes.atoms.pin(*shape)


def _one_by_one(_: Operation, shapes: Shapes) -> None:
    for operand, result in zip(shapes.operands, shapes.results, strict=True):
        shapes.atoms.same(operand, result)


def _custom_call(operation: Operation, shapes: Shapes) -> None:
    if attribute(operation.attributes, "call_target_name") == '"annotate_device_placement"':
        _one_by_one(operation, shapes)
    else:
        shapes.pin_all()


def _free(_: Operation, __: Shapes) -> None:
    pass


def _constant(operation: Operation, shapes: Shapes) -> None:
    if not is_splat(attribute(operation.attributes, "value") or ""):
        shapes.pin_all()


def _broadcast(operation: Operation, shapes: Shapes) -> None:
    result = shapes.results[0]
    for atom, at in zip(shapes.operands[0], ints(attribute(operation.attributes, "broadcast_dimensions")), strict=True):
        if shapes.size(atom) == shapes.size(result[at]):
            shapes.atoms.equal((atom,), (result[at],))


def _transpose(operation: Operation, shapes: Shapes) -> None:
    order = ints(attribute(operation.attributes, "permutation"))
    shapes.atoms.same((shapes.operands[0][at] for at in order), shapes.results[0])


def _reshape(_: Operation, shapes: Shapes) -> None:
    shapes.atoms.equal(shapes.operands[0], shapes.results[0])


def _reduce(operation: Operation, shapes: Shapes) -> None:
    gone = set(ints(attribute(operation.attributes, "dimensions")))
    arrays = shapes.operands[: len(shapes.operands) // 2]
    for array, result in zip(arrays, shapes.results, strict=True):
        shapes.atoms.same((atom for i, atom in enumerate(array) if i not in gone), result)
        shapes.atoms.same(array, arrays[0])


def _dot(operation: Operation, shapes: Shapes) -> None:
    numbers = _lists(operation, "dot_dimension_numbers")
    lhs, rhs = shapes.operands
    left, right = numbers.get("lhs_batching_dimensions", []), numbers.get("rhs_batching_dimensions", [])
    inner_left, inner_right = (
        numbers.get("lhs_contracting_dimensions", []),
        numbers.get("rhs_contracting_dimensions", []),
    )
    shapes.atoms.same((lhs[i] for i in (*left, *inner_left)), (rhs[i] for i in (*right, *inner_right)))
    result = [lhs[i] for i in left]
    result += [atom for i, atom in enumerate(lhs) if i not in left and i not in inner_left]
    result += [atom for i, atom in enumerate(rhs) if i not in right and i not in inner_right]
    shapes.atoms.same(result, shapes.results[0])


def _slice(operation: Operation, shapes: Shapes) -> None:
    strides = ints(attribute(operation.attributes, "strides"))
    for inner, outer, stride in zip(shapes.results[0], shapes.operands[0], strides, strict=True):
        if stride == 1 and shapes.size(inner) == shapes.size(outer):
            shapes.atoms.equal((inner,), (outer,))
        else:
            shapes.atoms.pin(inner, outer)


def _dynamic_slice(_: Operation, shapes: Shapes) -> None:
    shapes.whole_or_pinned(shapes.results[0], shapes.operands[0])


def _dynamic_update_slice(_: Operation, shapes: Shapes) -> None:
    shapes.atoms.same(shapes.operands[0], shapes.results[0])
    shapes.whole_or_pinned(shapes.operands[1], shapes.operands[0])


def _pad(operation: Operation, shapes: Shapes) -> None:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    paddings = [ints(attribute(operation.attributes, name)) for name in names]
    for a, b, *padding in zip(shapes.operands[0], shapes.results[0], *paddings, strict=True):
        if any(padding):
            shapes.atoms.pin(a, b)
        else:
            shapes.atoms.equal((a,), (b,))


def _concatenate(operation: Operation, shapes: Shapes) -> None:
    joined = int((attribute(operation.attributes, "dimension") or "0").split()[0])
    for shape in shapes.operands:
        for i, (a, b) in enumerate(zip(shape, shapes.results[0], strict=True)):
            if i == joined and len(shapes.operands) > 1:
                shapes.atoms.pin(a, b)
            else:
                shapes.atoms.equal((a,), (b,))


def _gather(operation: Operation, shapes: Shapes) -> None:
    numbers = _lists(operation, "dimension_numbers")
    operand, indices = shapes.operands
    result = shapes.results[0]
    offsets, gone = numbers.get("offset_dims", []), numbers.get("collapsed_slice_dims", [])
    batching = numbers.get("operand_batching_dims", [])
    _batches(shapes, indices, [atom for i, atom in enumerate(result) if i not in offsets], numbers)
    window = [atom for i, atom in enumerate(operand) if i not in gone and i not in batching]
    shapes.whole_or_pinned(tuple(result[i] for i in offsets), tuple(window))
    for i, j in zip(batching, numbers.get("start_indices_batching_dims", []), strict=True):
        shapes.atoms.equal((operand[i],), (indices[j],))


def _scatter(operation: Operation, shapes: Shapes) -> None:
    numbers = _lists(operation, "scatter_dimension_numbers")
    count = len(shapes.results)
    indices = shapes.operands[count]
    window, gone = numbers.get("update_window_dims", []), numbers.get("inserted_window_dims", [])
    batching = numbers.get("input_batching_dims", [])
    for operand, update, result in zip(
        shapes.operands[:count], shapes.operands[count + 1 :], shapes.results, strict=True
    ):
        shapes.atoms.same(operand, result)
        _batches(shapes, indices, [atom for i, atom in enumerate(update) if i not in window], numbers)
        into = [atom for i, atom in enumerate(operand) if i not in gone and i not in batching]
        shapes.whole_or_pinned(tuple(update[i] for i in window), tuple(into))
        for i, j in zip(batching, numbers.get("scatter_indices_batching_dims", []), strict=True):
            shapes.atoms.equal((operand[i],), (indices[j],))


def _batches(shapes: Shapes, indices: tuple[int, ...], batches: list[int], numbers: dict[str, list[int]]) -> None:
    vector = numbers.get("index_vector_dim", [0])[0]
    shapes.atoms.same([atom for i, atom in enumerate(indices) if i != vector], batches)
    if vector < len(indices):
        shapes.atoms.pin(indices[vector])


def _convolution(operation: Operation, shapes: Shapes) -> None:
    match = re.search(
        r"\[([^\]]*)\]x\[([^\]]*)\]->\[([^\]]*)\]", attribute(operation.attributes, "dimension_numbers") or ""
    )
    groups = [
        (attribute(operation.attributes, name) or "1").split()[0]
        for name in ("feature_group_count", "batch_group_count")
    ]
    if match is None:
        shapes.pin_all()
        return
    lhs, rhs, out = (
        dict(zip(match[i + 1].replace(" ", "").split(","), shape, strict=True))
        for i, shape in enumerate((*shapes.operands, shapes.results[0]))
    )
    features, batches = groups[0] == "1", groups[1] == "1"
    windows = [atom for shape in (lhs, rhs, out) for name, atom in shape.items() if name.isdigit()]
    shapes.atoms.pin(*windows)
    shapes.atoms.equal((rhs["o"],), (out["f"],))
    for free, one, other in ((batches, lhs["b"], out["b"]), (features, lhs["f"], rhs["i"])):
        if free:
            shapes.atoms.equal((one,), (other,))
        else:
            shapes.atoms.pin(one, other)
    if not (features and batches):
        shapes.atoms.pin(rhs["o"], out["f"])


def _top_k(_: Operation, shapes: Shapes) -> None:
    operand = shapes.operands[0]
    for result in shapes.results:
        shapes.atoms.same(operand[:-1], result[:-1])
        shapes.atoms.pin(operand[-1], result[-1])


def _triangular_solve(operation: Operation, shapes: Shapes) -> None:
    a, b = shapes.operands
    shapes.atoms.same(b, shapes.results[0])
    shapes.atoms.same(a[:-2], b[:-2])
    left = attribute(operation.attributes, "left_side") == "true"
    shapes.atoms.same(a[-2:], (b[-2 if left else -1],) * 2)


def _reduce_window(operation: Operation, shapes: Shapes) -> None:
    windows = ints(attribute(operation.attributes, "window_dimensions"))
    count = len(shapes.results)
    for operand, result in zip(shapes.operands[:count], shapes.results, strict=True):
        for a, b, window in zip(operand, result, windows, strict=True):
            if window == 1 and shapes.size(a) == shapes.size(b):
                shapes.atoms.equal((a,), (b,))
            else:
                shapes.atoms.pin(a, b)


_ELEMENTWISE = (
    "abs add and atan2 cbrt ceil clamp compare complex convert cosine count_leading_zeros divide exponential",
    "exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum multiply negate not or",
    "popcnt power real reduce_precision remainder reverse round_nearest_afz round_nearest_even rsqrt select shift_left",
    "sort shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh xor",
)
_CHLO = (
    "acos acosh asin asinh atan atanh cosh digamma erf erf_inv erfc lgamma square sinh tan is_inf is_pos_inf",
    "is_neg_inf next_after zeta polygamma",
)

#: By operation; those without one pin.
RULES: dict[str, Rule] = {
    **{f"stablehlo.{name}": _elementwise for names in _ELEMENTWISE for name in names.split()},
    **{f"chlo.{name}": _elementwise for names in _CHLO for name in names.split()},
    "sdy.sharding_constraint": _elementwise,
    "stablehlo.optimization_barrier": _one_by_one,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.return": _free,
    "func.return": _free,
    "sdy.return": _free,
    "stablehlo.iota": _free,
    "stablehlo.constant": _constant,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.transpose": _transpose,
    "stablehlo.reshape": _reshape,
    "stablehlo.reduce": _reduce,
    "stablehlo.dot_general": _dot,
    "stablehlo.slice": _slice,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.pad": _pad,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.gather": _gather,
    "stablehlo.scatter": _scatter,
    "stablehlo.convolution": _convolution,
    "stablehlo.triangular_solve": _triangular_solve,
    "stablehlo.reduce_window": _reduce_window,
    "chlo.top_k": _top_k,
}
