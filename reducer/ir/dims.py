"""The dimensions of a program: sizes that have to change everywhere they flow.

`dimensions` gives the classes of linked axes (see `links`), `resized` gives a class another size wherever it flows,
`without_axis` removes a class of size 1 altogether. Neither has to be perfect: `check` has the last word, and the
compiler the very last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from reducer.errors import ProgramError
from reducer.ir.axes import drop_axes, resize_op
from reducer.ir.equations import (
    Arg,
    Block,
    Entry,
    Equation,
    Op,
    Program,
    Scan,
    ShardingConstraint,
    ShardMap,
    Spec,
    Var,
)
from reducer.ir.links import Node, links_of
from reducer.ir.types import Type
from reducer.ir.walk import Path, args_of, children, fresh, inlined, path_text, with_args, with_children


@dataclass(frozen=True, slots=True)
class Dimension:
    """One class: its nodes in order of occurrence, its size, and whether something keeps it from changing."""

    nodes: tuple[Node, ...]
    size: int
    pinned: bool

    @property
    def is_length(self) -> bool:
        """True if it is the length of a scan."""
        return any(var < 0 for _, var, _ in self.nodes)

    def __str__(self) -> str:
        """Where it occurs first: ``the length of eqns[0]``, or ``axis 1 of %0 of block``."""
        scan = next((node for node in self.nodes if node[1] < 0), None)
        if scan is not None:
            return f"the length of {path_text((*scan[0], (-1 - scan[1], ''))).removesuffix('.')}"
        path, var, axis = self.nodes[0]
        return f"axis {axis} of %{var} of {path_text(path)}"


def dimensions(program: Program) -> tuple[Dimension, ...]:
    """All classes of a well-typed program, in order of first occurrence."""
    links = links_of(program)
    groups: dict[Node, list[Node]] = {}
    for node in links.parent:
        groups.setdefault(links.find(node), []).append(node)
    pinned = {links.find(node) for node in links.pins}
    return tuple(Dimension(tuple(nodes), links.size[root], root in pinned) for root, nodes in groups.items())


def _retyped(
    program: Program,
    change: Callable[[Path, Var], Type],
    fix: Callable[[Path, int, Equation], Equation],
) -> Program:
    def visit(path: Path, block: Block) -> Block:
        eqns = []
        for i, eqn in enumerate(block.eqns):
            inner = {field: visit((*path, (i, field)), child) for field, child in children(eqn)}
            eqn = fix(path, i, eqn)
            outs = tuple(Var(v.id, change(path, v)) for v in eqn.outs)
            eqns.append(msgspec.structs.replace(with_children(eqn, inner), outs=outs))
        return Block(tuple(Var(v.id, change(path, v)) for v in block.params), tuple(eqns), block.results)

    return msgspec.structs.replace(program, block=visit((), program.block))


def resized(program: Program, sizes: Iterable[tuple[Dimension, int]]) -> Program:
    """The program with other sizes for these dimensions, wherever they flow.

    Raises:
        ProgramError: a size that stands in an attribute cannot follow.
    """
    new: dict[Node, int] = {node: n for dimension, n in sizes for node in dimension.nodes}

    def change(path: Path, var: Var) -> Type:
        shape = tuple(new.get((path, var.id, k), n) for k, n in enumerate(var.type.shape))
        return var.type if shape == var.type.shape else var.type.with_shape(shape)

    def fix(path: Path, i: int, eqn: Equation) -> Equation:
        match eqn:
            case Scan(length=length, unroll=unroll):
                n = new.get((path, -1 - i, 0), length)
                return msgspec.structs.replace(eqn, length=n, unroll=min(unroll, max(n, 1)))
            case Op():
                return resize_op(eqn, lambda arg, k, n: new.get((path, arg, k), n) if isinstance(arg, int) else n)
            case _:
                return eqn

    return _retyped(program, change, fix)


def without_axis(program: Program, dimension: Dimension) -> Program:
    """The program without this dimension of size 1, wherever it flows. A scan whose length it is becomes its body.

    Raises:
        ProgramError: an operation needs the axis.
    """
    if dimension.size != 1:
        raise ProgramError("only a dimension of size 1 can be dropped")
    gone: dict[tuple[Path, int], set[int]] = {}
    for path, var, axis in dimension.nodes:
        gone.setdefault((path, var), set()).add(axis)

    def shorter(path: Path, var: int, axes: Spec) -> Spec:
        drop = gone.get((path, var), set())
        return tuple(a for k, a in enumerate(axes) if k not in drop)

    def change(path: Path, var: Var) -> Type:
        drop = gone.get((path, var.id))
        if not drop:
            return var.type
        return var.type.with_shape(tuple(n for k, n in enumerate(var.type.shape) if k not in drop))

    def fix(path: Path, _: int, eqn: Equation) -> Equation:
        match eqn:
            case Op():
                ins = [gone.get((path, a), set()) if isinstance(a, int) else set() for a in eqn.args]
                outs = [gone.get((path, v.id), set()) for v in eqn.outs]
                return drop_axes(eqn, ins, outs) if any(ins) or any(outs) else eqn
            case ShardingConstraint(spec=spec, arg=arg) if isinstance(arg, int):
                return msgspec.structs.replace(eqn, spec=shorter(path, arg, spec))
            case ShardMap(args=args):
                return msgspec.structs.replace(
                    eqn,
                    in_specs=tuple(
                        shorter(path, a, s) if isinstance(a, int) else s
                        for a, s in zip(args, eqn.in_specs, strict=True)
                    ),
                    out_specs=tuple(shorter(path, v.id, s) for v, s in zip(eqn.outs, eqn.out_specs, strict=True)),
                )
            case _:
                return eqn

    done = _retyped(program, change, fix)
    scans: dict[Path, set[int]] = {}
    for path, var, _ in dimension.nodes:
        if var < 0:
            scans.setdefault(path, set()).add(-1 - var)
    if scans:
        done = msgspec.structs.replace(done, block=_inline(done.block, (), scans))
    return _with_specs(program, done, gone)


def _with_specs(program: Program, done: Program, gone: Mapping[tuple[Path, int], set[int]]) -> Program:
    def short(var: Arg, spec: Spec | None) -> Spec | None:
        drop = gone.get(((), var), set()) if isinstance(var, int) else set()
        return None if spec is None else tuple(a for k, a in enumerate(spec) if k not in drop)

    params, results = program.block.params, program.block.results
    inputs = tuple(Entry(short(v.id, e.spec), e.donated) for v, e in zip(params, program.inputs, strict=False))
    specs = tuple(short(r, s) for r, s in zip(results, program.result_specs, strict=False))
    return msgspec.structs.replace(done, inputs=inputs, result_specs=specs)


def _inline(block: Block, path: Path, scans: Mapping[Path, set[int]]) -> Block:
    """Scans of length 1 whose xs and ys have lost their leading axis, replaced by their bodies."""
    ids = fresh(block)
    renamed: dict[int, Arg] = {}

    def sub(arg: Arg) -> Arg:
        return renamed.get(arg, arg) if isinstance(arg, int) else arg

    eqns: list[Equation] = []
    for i, eqn in enumerate(block.eqns):
        inner = {field: _inline(child, (*path, (i, field)), scans) for field, child in children(eqn)}
        eqn = with_args(with_children(eqn, inner), tuple(map(sub, args_of(eqn))))
        if isinstance(eqn, Scan) and i in scans.get(path, ()):
            body, results = inlined(eqn.body, args_of(eqn), ids)
            eqns.extend(body)
            renamed.update(zip((v.id for v in eqn.outs), results, strict=True))
        else:
            eqns.append(eqn)
    return Block(block.params, tuple(eqns), tuple(map(sub, block.results)))


__all__ = ["Dimension", "Node", "dimensions", "resized", "without_axis"]
