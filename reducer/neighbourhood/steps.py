"""The single steps of the neighbourhood, one generator per sort; the package says what the kinds mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from reducer.errors import ProgramError
from reducer.ir.dims import dimensions, resized, without_axis
from reducer.ir.edit import (
    delete_all,
    replace_value,
    rewrite,
    with_equation,
    zero_text,
)
from reducer.ir.equations import (
    Arg,
    Block,
    Call,
    Checkpoint,
    Cond,
    Entry,
    Equation,
    Fill,
    Grad,
    Lit,
    Mesh,
    Name,
    Op,
    Program,
    Scan,
    ShardMap,
    While,
)
from reducer.ir.hoist import movable, moved_after, moved_before
from reducer.ir.policies import Both, OffloadDots, OffloadNames, Plain, Policy, SaveNames, names_of
from reducer.ir.text import policy_text
from reducer.ir.types import DTYPES
from reducer.ir.unwrap import freeze_carry, main_fields, unwrap
from reducer.ir.walk import (
    Path,
    arg_type,
    args_of,
    bindings,
    blocks,
    children,
    equations,
    path_text,
    types_of,
    with_args,
)
from reducer.ir.whole import (
    drop_inputs,
    isolate_value,
    keep_results,
    slice_to_constant,
    with_dtype,
    with_names,
    with_result,
)

_replace: Callable[..., Any] = msgspec.structs.replace
#: kind, what is done to what, and how to build it. Building may raise `ProgramError`: then there is no such program.
Step = tuple[str, str, Callable[[], Program]]


def steps(program: Program) -> Iterator[Step]:
    """All steps, unfiltered, each as a function that takes it."""
    yield from _on_equations(program)
    yield from _on_values(program)
    yield from _on_ports(program)
    yield from _on_sizes(program)
    yield from _on_policies(program)
    yield from _on_details(program)
    yield from _on_mesh(program)


def _place(path: Path, i: int) -> str:
    return path_text((*path, (i, ""))).removesuffix(".")


def _set(program: Program, path: Path, i: int, eqn: Equation, **fields: object) -> Callable[[], Program]:
    return lambda: with_equation(program, path, i, _replace(eqn, **fields))


def _on_equations(program: Program) -> Iterator[Step]:
    for path, i, eqn in equations(program):
        if not isinstance(eqn, Fill):
            yield "delete", _place(path, i), partial(delete_all, program, {path: {i}})
        for field in main_fields(eqn):
            edit = partial(_unwrapped, i=i, field=field)
            yield "unwrap", f"{_place(path, i)}.{field}", partial(rewrite, program, {path: edit})
        place = next(p.block for p in blocks(program) if p.path == path)
        for j in movable(place, i):
            for where, move in (("after", moved_after), ("before", moved_before)):
                edit = partial(move, i=i, j=j)
                yield "hoist", f"{_place(path, i)}.body.eqns[{j}] {where} it", partial(rewrite, program, {path: edit})
        if isinstance(eqn, Cond) and len(eqn.branches) > 1:
            for k in range(len(eqn.branches)):
                rest = eqn.branches[:k] + eqn.branches[k + 1 :]
                yield "branch", f"{_place(path, i)}.branches[{k}]", _set(program, path, i, eqn, branches=rest)
        if isinstance(eqn, Scan | While):
            for k in range(len(eqn.carry)):
                freeze = partial(freeze_carry, i=i, k=k)
                yield "carry", f"{_place(path, i)}.carry[{k}]", partial(rewrite, program, {path: freeze})


def _unwrapped(block: Block, i: int, field: str) -> Block:
    return unwrap(block, {i: field})


def _on_values(program: Program) -> Iterator[Step]:
    for path, block in ((p.path, p.block) for p in blocks(program)):
        types = types_of(block)
        order = list(types)
        for at, var in enumerate(order):
            n = len(block.params)
            earlier = (o for o in order[: n if at < n else at] if o != var and types[o] == types[var])
            for other in (None, *earlier):
                edit = partial(replace_value, old=var, new=other)
                by = "zeros" if other is None else f"%{other}"
                yield "replace", f"%{var} of {path_text(path)} by {by}", partial(rewrite, program, {path: edit})
        yield from _on_arguments(program, path, block)


def _on_arguments(program: Program, path: Path, block: Block) -> Iterator[Step]:
    types = types_of(block)
    bound = [var.id for var in block.params]
    for i, eqn in enumerate(block.eqns):
        args = args_of(eqn)
        for k, arg in enumerate(args):
            scalar = isinstance(arg, Lit) and arg_type(arg, types).inexact and children(eqn)
            others: list[Arg] = [v for v in bound if types[v] == arg_type(arg, types)] if scalar else []
            if isinstance(eqn, Op):
                # A result that becomes one of the arguments: what `delete` does with the first of them only.
                for var in eqn.outs:
                    if arg_type(arg, types) == var.type:
                        bypass = partial(replace_value, old=var.id, new=arg)
                        what = f"%{var.id} of {path_text(path)} by an argument"
                        yield "replace", what, partial(rewrite, program, {path: bypass})
            for other in others:
                new = with_args(eqn, (*args[:k], other, *args[k + 1 :]))
                yield "argument", f"{_place(path, i)}, {k} by %{other}", partial(with_equation, program, path, i, new)
        bound += [var.id for var in eqn.outs]


def _on_ports(program: Program) -> Iterator[Step]:
    n = len(program.block.results)
    for k in range(n if n > 1 else 0):
        yield "result", f"result {k}", partial(keep_results, program, [j for j in range(n) if j != k])
    for k in range(n):
        for var in bindings(program.block):
            if var.id not in program.block.results:
                yield "result", f"result {k} by %{var.id}", partial(with_result, program, k, var.id)
    for k in range(len(program.block.params)):
        yield "input", f"input {k}", partial(drop_inputs, program, {k})
    for i, eqn in enumerate(program.block.eqns):
        for k in range(len(eqn.xs) if isinstance(eqn, Scan) else 0):
            yield "x-to-constant", f"{_place((), i)}.xs[{k}]", partial(slice_to_constant, program, i, k)
    for place in blocks(program):
        for eqn in place.block.eqns:
            for var in eqn.outs:
                if var.type.on_host:
                    alone = partial(isolate_value, program, place.path, var.id)
                    yield "alone", f"%{var.id} of {path_text(place.path)}", alone
    grad = program.gradient
    if grad is None:
        return
    yield "gradient", "none", lambda: _replace(program, gradient=None)
    for n in grad.argnums:
        rest = tuple(m for m in grad.argnums if m != n)
        if rest:
            fewer = Grad(rest, grad.with_value)
            yield "gradient", f"not with respect to input {n}", partial(_replace, program, gradient=fewer)
    if grad.with_value:
        bare = Grad(grad.argnums, with_value=False)
        yield "gradient", "without the value", partial(_replace, program, gradient=bare)


def _on_sizes(program: Program) -> Iterator[Step]:
    for d in dimensions(program):
        kind = "length" if d.is_length else "dimension"
        sizes = {1, d.size // 2, d.size - 1}
        if not d.is_length:
            sizes |= {(d.size - 1) // 8 * 8, (d.size - 1) // 128 * 128}
        if not d.pinned:
            for n in sorted(s for s in sizes if 1 <= s < d.size):
                yield kind, f"{d} to {n}", partial(resized, program, [(d, n)])
        if d.size == 1:
            yield "axis", str(d), partial(without_axis, program, d)
    present = {v.type.dtype for p in blocks(program) for v in bindings(p.block)}
    for dtype in sorted(present - {"float32", "int32"}):
        target = {"f": "float32", "i": "int32"}.get(DTYPES[dtype][2])
        if target is not None:
            yield "dtype", f"{dtype} to {target}", partial(with_dtype, program, frozenset({dtype}), target)


def _on_policies(program: Program) -> Iterator[Step]:
    names: dict[str, None] = {}
    for path, i, eqn in equations(program):
        if isinstance(eqn, Name):
            names[eqn.name] = None
        if not isinstance(eqn, Checkpoint) or eqn.policy is None:
            continue
        names.update(dict.fromkeys(names_of(eqn.policy)))
        for kind, policy in _policies(eqn.policy):
            yield kind, f"{_place(path, i)}: {policy_text(policy)}", _set(program, path, i, eqn, policy=policy)
    ordered = list(names)
    for at, later in enumerate(ordered):
        for earlier in ordered[:at]:
            yield "name", f"{later!r} to {earlier!r}", partial(with_names, program, {later: earlier})


def _policies(policy: Policy) -> Iterator[tuple[str, Policy | None]]:
    yield "policy", None
    for name in ("nothing_saveable", "everything_saveable"):
        yield "policy", Plain(name)
    yield from _narrower(policy)


def _narrower(policy: Policy) -> Iterator[tuple[str, Policy]]:
    match policy:
        case Both(first=first, second=second):
            yield "policy", first
            yield "policy", second
            yield from ((kind, Both(one, second)) for kind, one in _narrower(first))
            yield from ((kind, Both(first, one)) for kind, one in _narrower(second))
            return
        case OffloadNames(offloaded=offloaded, saved=saved):
            yield "policy", SaveNames(offloaded + saved)
        case _:
            pass
    if isinstance(policy, OffloadNames | OffloadDots):
        yield "policy", _replace(policy, src="device", dst="pinned_host")
    for field in ("offloaded", "saved", "names"):
        held = getattr(policy, field, ())
        for k in range(len(held)):
            yield "policy-name", _replace(policy, **{field: held[:k] + held[k + 1 :]})


#: Attributes JAX has a default for.
_OPTIONAL = ("precision", "preferred_element_type", "mode", "unique_indices", "indices_are_sorted", "reverse")
_DEFAULTS: tuple[tuple[type, str, object], ...] = (
    (Scan, "reverse", False),
    (Scan, "unroll", 1),
    (Checkpoint, "prevent_cse", True),
    (Checkpoint, "differentiated", False),
    (ShardMap, "check_vma", False),
    (Call, "name", "inner"),
)


def _on_details(program: Program) -> Iterator[Step]:
    for path, i, eqn in equations(program):
        place = _place(path, i)
        for k in range(len(eqn.metadata)):
            rest = eqn.metadata[:k] + eqn.metadata[k + 1 :]
            yield "metadata", f"{place}: {eqn.metadata[k][0]}", _set(program, path, i, eqn, metadata=rest)
        for class_, field, default in _DEFAULTS:
            if isinstance(eqn, class_) and getattr(eqn, field) != default:
                yield "flag", f"{place}: {field}", _set(program, path, i, eqn, **{field: default})
        if isinstance(eqn, Op):
            for k, (name, _) in enumerate(eqn.attributes):
                if name in _OPTIONAL:
                    attributes = eqn.attributes[:k] + eqn.attributes[k + 1 :]
                    yield "attribute", f"{place}: {name}", _set(program, path, i, eqn, attributes=attributes)
    for place_ in blocks(program):
        yield from _on_scalars(program, place_.path, place_.block)


def _on_scalars(program: Program, path: Path, block: Block) -> Iterator[Step]:
    types = types_of(block)
    for i, eqn in enumerate(block.eqns):
        args, place = args_of(eqn), _place(path, i)
        out = eqn.outs[0].type if len(eqn.outs) == 1 and not isinstance(eqn, Fill) else None
        if out is not None and DTYPES[out.dtype][2] == "f" and not out.on_host:
            for arg in dict.fromkeys(a for a in args if arg_type(a, types) == out):
                metadata = eqn.metadata if isinstance(eqn, Op) else ()
                sin = Op(outs=eqn.outs, primitive="sin", args=(arg,), metadata=metadata)
                yield "operation", place, partial(with_equation, program, path, i, sin)
        if isinstance(eqn, Fill):
            for value in _scalars(eqn.outs[0].type.dtype):
                yield "scalar", f"{place} to {value}", _set(program, path, i, eqn, value=value)
        for k, arg in enumerate(args):
            divisor = isinstance(eqn, Op) and eqn.primitive in ("div", "rem") and k == 1
            dtype = arg.dtype if isinstance(arg, Lit) else ""
            for value in _scalars(dtype)[int(divisor) :] if dtype else ():
                new = with_args(eqn, (*args[:k], Lit(dtype, value), *args[k + 1 :]))
                yield "scalar", f"{place}, {k} to {value}", partial(with_equation, program, path, i, new)


def _scalars(dtype: str) -> tuple[str, ...]:
    try:
        zero = zero_text(dtype)
    except ProgramError:
        return ()
    return (zero, {"0.0": "1.0", "0": "1", "False": "True"}.get(zero, zero))


def _on_mesh(program: Program) -> Iterator[Step]:
    for k, entry in enumerate(program.inputs):
        for new in (Entry(None, entry.donated), Entry((), entry.donated), Entry(entry.spec, donated=False)):
            inputs = (*program.inputs[:k], new, *program.inputs[k + 1 :])
            yield "entry", f"input {k}", partial(_replace, program, inputs=inputs)
    for k in range(len(program.result_specs)):
        specs = (*program.result_specs[:k], None, *program.result_specs[k + 1 :])
        yield "entry", f"result {k}", partial(_replace, program, result_specs=specs)
    mesh = program.mesh
    if mesh is None:
        return
    yield "mesh", "none", lambda: _replace(program, mesh=None)
    for k, (name, n) in enumerate(mesh.axes):
        if len(mesh.axes) > 1:
            yield "mesh", f"without {name}", partial(_replace, program, mesh=Mesh(mesh.axes[:k] + mesh.axes[k + 1 :]))
        for smaller in sorted({1, n // 2} & set(range(1, n))):
            axes = (*mesh.axes[:k], (name, smaller), *mesh.axes[k + 1 :])
            yield "mesh", f"{name} to {smaller}", partial(_replace, program, mesh=Mesh(axes))
