"""What each primitive does with the axes of its operands: which are linked, and how its attributes follow a change.

Three tables in one place, because they have to agree: `op_links` says which axes are one dimension (or pins them),
`resize_op` rewrites sizes that stand in attributes, `drop_axes` rewrites axis numbers when axes of size 1 go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from reducer.errors import ProgramError
from reducer.ir.elementwise_rules import ELEMENTWISE
from reducer.ir.equations import Arg, Op

N = TypeVar("N")

_SAME: Final = frozenset(
    {"cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "rev", "sort", "optimization_barrier"}
)
_REDUCE: Final = frozenset(
    {"reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_xor"}
    | {"argmax", "argmin", "squeeze"}
)

_Link = Callable[[N, N], None]
_Pin = Callable[[N], None]


def op_links(
    op: Op, ins: Sequence[Sequence[N]], outs: Sequence[Sequence[N]], size: Mapping[N, int], link: _Link[N], pin: _Pin[N]
) -> None:
    """Link the axes of a primitive that is not elementwise, and pin the ones nothing is known about."""
    match op.primitive:
        case name if name in _SAME:
            _zip(ins, outs, link)
        case name if name in _REDUCE:
            gone = op.attr("axes") if name != "squeeze" else op.attr("dimensions")
            kept = [n for k, n in enumerate(ins[0]) if k not in (gone or ())]
            _zip([kept], outs, link)
            if name == "squeeze":
                _pin_all([[n for k, n in enumerate(ins[0]) if k in (gone or ())]], pin)
        case "iota" | "random_bits":
            pass
        case "broadcast_in_dim":
            for node, k in zip(ins[0], op.attr("broadcast_dimensions", ()), strict=True):
                if size[node] == size[outs[0][k]]:
                    link(node, outs[0][k])
        case "transpose":
            for node, k in zip(outs[0], op.attr("permutation", ()), strict=True):
                link(node, ins[0][k])
        case "reshape":
            _reshape(ins[0], outs[0], size, link, pin)
        case "dot_general":
            (lc, rc), (lb, rb) = op.attr("dimension_numbers")
            lhs, rhs = ins
            for i, j in (*zip(lc, rc, strict=True), *zip(lb, rb, strict=True)):
                link(lhs[i], rhs[j])
            free = [lhs[i] for i in lb] + [n for k, n in enumerate(lhs) if k not in (*lb, *lc)]
            free += [n for k, n in enumerate(rhs) if k not in (*rb, *rc)]
            _zip([free], outs, link)
        case "concatenate" | "split":
            axis = op.attr("dimension" if op.primitive == "concatenate" else "axis", 0)
            for side in (*ins, *outs):
                pin(side[axis])
                whole = outs[0] if op.primitive == "concatenate" else ins[0]
                for k, node in enumerate(side):
                    if k != axis:
                        link(node, whole[k])
        case "slice":
            starts, strides = op.attr("start_indices", ()), op.attr("strides")
            for k, (a, b) in enumerate(zip(ins[0], outs[0], strict=True)):
                full = starts[k] == 0 and (not strides or strides[k] == 1) and size[a] == size[b]
                if full:
                    link(a, b)
                else:
                    pin(a)
                    pin(b)
        case "dynamic_slice":
            # A smaller slice of the same axis is a dimension of its own; check keeps it below the operand's.
            for a, b in zip(ins[0], outs[0], strict=True):
                if size[a] == size[b]:
                    link(a, b)
        case "dynamic_update_slice":
            _zip(ins[:1], outs, link)
            for a, b in zip(ins[0], ins[1], strict=True):
                if size[a] == size[b]:
                    link(a, b)
        case "pad":
            for k, (a, b) in enumerate(zip(ins[0], outs[0], strict=True)):
                if tuple(op.attr("padding_config")[k]) == (0, 0, 0):
                    link(a, b)
                else:
                    pin(a)
                    pin(b)
        case "top_k":
            for out in outs:
                for a, b in zip(ins[0][:-1], out[:-1], strict=True):
                    link(a, b)
            link(outs[0][-1], outs[1][-1])
            if size[ins[0][-1]] == size[outs[0][-1]]:
                link(ins[0][-1], outs[0][-1])
        case _:
            _pin_all((*ins, *outs), pin)


def _zip(left: Sequence[Sequence[N]], right: Sequence[Sequence[N]], link: _Link[N]) -> None:
    for a, b in zip(left, right, strict=False):
        for x, y in zip(a, b, strict=False):
            link(x, y)


def _pin_all(groups: Sequence[Sequence[N]], pin: _Pin[N]) -> None:
    for group in groups:
        for node in group:
            pin(node)


def _reshape(left: Sequence[N], right: Sequence[N], size: Mapping[N, int], link: _Link[N], pin: _Pin[N]) -> None:
    """Walk both shapes in groups of equal products: one axis to one axis is a link, anything else is pinned.

    Axes of size 1 come and go in a reshape, so they are neither linked nor pinned.
    """
    a = [n for n in left if size[n] != 1]
    b = [n for n in right if size[n] != 1]
    i = j = 0
    while i < len(a) and j < len(b):
        first_i, first_j = i, j
        p, q = size[a[i]], size[b[j]]
        i, j = i + 1, j + 1
        while p != q and (i < len(a) or j < len(b)):
            if (p < q or j == len(b)) and i < len(a):
                p, i = p * size[a[i]], i + 1
            else:
                q, j = q * size[b[j]], j + 1
        if i - first_i == j - first_j == 1:
            link(a[first_i], b[first_j])
        else:
            _pin_all((a[first_i:i], b[first_j:j]), pin)
    _pin_all((a[i:], b[j:]), pin)


def resize_op(op: Op, size: Callable[[Arg, int, int], int]) -> Op:
    """The operation with sizes in its attributes adjusted: `size(operand, axis, old)` gives the new one."""
    if op.primitive != "slice":
        return op
    limits = tuple(op.attr("limit_indices", ()))
    starts = op.attr("start_indices", ())
    new = tuple(size(op.args[0], k, n) if starts[k] == 0 else n for k, n in enumerate(limits))
    return op if new == limits else _with(op, limit_indices=new)


def _with(op: Op, **changes: Any) -> Op:
    attributes = tuple((k, changes.get(k, v)) for k, v in op.attributes)
    return msgspec.structs.replace(op, attributes=attributes)


def _renumber(axes: Sequence[int], gone: set[int]) -> tuple[int, ...]:
    """Axis numbers after the axes `gone` were removed; the removed ones themselves go."""
    return tuple(a - sum(g < a for g in gone) for a in axes if a not in gone)


def _identity(op: Op) -> Op:
    # Not an equation tracing would record under another name: the pass that simplifies operations removes it.
    return Op(outs=op.outs, primitive="copy", args=op.args[:1], metadata=op.metadata)


def drop_axes(op: Op, ins: Sequence[set[int]], outs: Sequence[set[int]]) -> Op:
    """The operation after these axes (all of size 1) were removed from its operands and results.

    Raises:
        ProgramError: the operation is about one of the axes.
    """
    name = op.primitive
    if name in ELEMENTWISE or name in ("optimization_barrier", "reshape", "random_bits"):
        return op
    gone = ins[0] if ins else set()
    match name:
        case "broadcast_in_dim":
            dims = [d for k, d in enumerate(op.attr("broadcast_dimensions", ())) if k not in gone]
            if set(dims) & outs[0]:
                raise ProgramError("an axis that stays is broadcast to one that goes")
            return _with(op, broadcast_dimensions=_renumber(dims, outs[0]))
        case "transpose":
            return _with(op, permutation=_renumber(op.attr("permutation", ()), gone))
        case "squeeze":
            return _with(op, dimensions=_renumber(op.attr("dimensions", ()), gone))
        case _ if name in _REDUCE:
            left = _renumber(op.attr("axes", ()), gone)
            if not left and name not in ("argmax", "argmin"):
                return _identity(op)
            if len(left) < len(op.attr("axes", ())) and name in ("argmax", "argmin"):
                raise ProgramError(f"{name} is about the axis")
            return _with(op, axes=left)
        case "dot_general":
            (lc, rc), (lb, rb) = op.attr("dimension_numbers")
            a, b = ins[0], ins[1]
            numbers = (_renumber(lc, a), _renumber(rc, b)), (_renumber(lb, a), _renumber(rb, b))
            return _with(op, dimension_numbers=numbers)
        case "cumsum" | "cumprod" | "cummax" | "cummin" | "cumlogsumexp" | "concatenate" | "split" | "sort" | "iota":
            key = {"split": "axis", "concatenate": "dimension", "sort": "dimension", "iota": "dimension"}
            attribute = key.get(name, "axis")
            axis, drop = op.attr(attribute, 0), gone if op.args else outs[0]
            if axis not in drop:
                return _with(op, **{attribute: _renumber((axis,), drop)[0]})
            if name.startswith("cum"):
                return _identity(op)
            raise ProgramError(f"{name} is about the axis")
        case "rev":
            turned = _renumber(op.attr("dimensions", ()), gone)
            return _with(op, dimensions=turned) if turned else _identity(op)
        case "slice":
            picked = {
                key: tuple(v for k, v in enumerate(op.attr(key)) if k not in gone)
                for key in ("start_indices", "limit_indices", "strides")
                if op.attr(key) is not None
            }
            return _with(op, **picked)
        case "pad":
            return _with(op, padding_config=tuple(c for k, c in enumerate(op.attr("padding_config")) if k not in gone))
        case "dynamic_slice" | "dynamic_update_slice":
            n = 1 if name == "dynamic_slice" else 2
            starts = tuple(a for k, a in enumerate(op.args[n:]) if k not in gone)
            return msgspec.structs.replace(op, args=op.args[:n] + starts)
        case "top_k":
            if op.outs[0].type.rank - 1 in ins[0] | outs[0]:
                raise ProgramError("top_k is about the axis")
            return op
        case _:
            raise ProgramError(f"nothing is known about the axes of {name}")


__all__ = ["drop_axes", "op_links", "resize_op"]
