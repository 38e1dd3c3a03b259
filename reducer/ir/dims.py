"""Which dimensions of a program are one dimension: a size that has to change everywhere it flows.

A *node* is one axis of one variable, or the length of one scan. Equations link nodes of equal size (an elementwise
operation its operands' axes with its result's, a scan its body's axes with those outside, its length with the leading
axes of its xs and ys); a union-find over these links gives the classes. A primitive without a rule *pins* its axes:
their classes keep their size, because nothing is known about what another size would mean.

`resized` gives a class another size wherever it flows, `without_axis` removes a class of size 1 altogether. Neither
has to be perfect: `check` has the last word, and the compiler the very last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from reducer.errors import ProgramError
from reducer.ir.axes import drop_axes, op_links, resize_op
from reducer.ir.elementwise_rules import ELEMENTWISE
from reducer.ir.equations import (
    Arg,
    Block,
    Call,
    Checkpoint,
    Cond,
    CustomJvp,
    CustomVjp,
    Entry,
    Equation,
    Fill,
    Name,
    Op,
    Program,
    Scan,
    ShardingConstraint,
    ShardMap,
    Spec,
    Transfer,
    Var,
    While,
)
from reducer.ir.types import Type
from reducer.ir.walk import Path, args_of, children, fresh, inlined, types_of, with_args, with_children

#: (path of the block, variable, axis), or (path of the block, -1 - number of the scan, 0) for a scan's length.
Node = tuple[Path, int, int]


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


class _Links:
    """Union-find over nodes."""

    def __init__(self) -> None:
        self.parent: dict[Node, Node] = {}
        self.size: dict[Node, int] = {}
        self.pins: set[Node] = set()

    def add(self, node: Node, size: int) -> None:
        self.parent[node] = node
        self.size[node] = size

    def find(self, node: Node) -> Node:
        root = node
        while self.parent[root] != root:
            root = self.parent[root]
        while self.parent[node] != root:
            self.parent[node], node = root, self.parent[node]
        return root

    def link(self, a: Node, b: Node) -> None:
        if self.size[a] != self.size[b]:
            self.pins |= {a, b}
            return
        one, two = self.find(a), self.find(b)
        if one != two:
            self.parent[two] = one

    def pin(self, node: Node) -> None:
        self.pins.add(node)


def dimensions(program: Program) -> tuple[Dimension, ...]:
    """All classes of a well-typed program, in order of first occurrence."""
    links = _Links()
    _visit(program.block, (), links)
    for entry, var in zip(program.inputs, program.block.params, strict=False):
        _pin_sharded(entry.spec, [((), var.id, k) for k in range(var.type.rank)], links)
    types = types_of(program.block)
    for spec, result in zip(program.result_specs, program.block.results, strict=False):
        if isinstance(result, int):
            _pin_sharded(spec, [((), result, k) for k in range(types[result].rank)], links)
    groups: dict[Node, list[Node]] = {}
    for node in links.parent:
        groups.setdefault(links.find(node), []).append(node)
    pinned = {links.find(node) for node in links.pins}
    return tuple(Dimension(tuple(nodes), links.size[root], root in pinned) for root, nodes in groups.items())


def _pin_sharded(spec: Spec | None, nodes: Sequence[Node], links: _Links) -> None:
    for axes, node in zip(spec or (), nodes, strict=False):
        if axes:
            links.pin(node)


def _visit(block: Block, path: Path, links: _Links) -> None:
    types: dict[int, Type] = {}

    def bind(variables: Iterable[Var]) -> None:
        for var in variables:
            types[var.id] = var.type
            for k, n in enumerate(var.type.shape):
                links.add((path, var.id, k), n)

    def axes(arg: Arg) -> list[Node]:
        return [(path, arg, k) for k in range(types[arg].rank)] if isinstance(arg, int) else []

    bind(block.params)
    for i, eqn in enumerate(block.eqns):
        bind(eqn.outs)
        if isinstance(eqn, Scan):
            links.add((path, -1 - i, 0), eqn.length)
        for field, child in children(eqn):
            _visit(child, (*path, (i, field)), links)
        ins = [axes(a) for a in args_of(eqn)]
        outs = [axes(v.id) for v in eqn.outs]
        _link_equation(eqn, ins, outs, path, i, links)


def _link_equation(
    eqn: Equation, ins: list[list[Node]], outs: list[list[Node]], path: Path, i: int, links: _Links
) -> None:
    def ends(field: str, block: Block) -> tuple[list[list[Node]], list[list[Node]]]:
        place = (*path, (i, field))
        inner = types_of(block)
        params = [[(place, v.id, k) for k in range(v.type.rank)] for v in block.params]
        results = [[(place, r, k) for k in range(inner[r].rank)] if isinstance(r, int) else [] for r in block.results]
        return params, results

    def same(left: Iterable[list[Node]], right: Iterable[list[Node]]) -> None:
        for a, b in zip(left, right, strict=True):
            # A scalar literal has no axes; types agree otherwise.
            for x, y in zip(a, b, strict=False):
                links.link(x, y)

    match eqn:
        case Op():
            if eqn.primitive in ELEMENTWISE:
                for arg in ins:
                    for x, y in zip(arg, outs[0], strict=False):
                        if links.size[x] == links.size[y]:
                            links.link(x, y)
            else:
                op_links(eqn, ins, outs, links.size, links.link, links.pin)
        case Name() | Transfer():
            same(ins, outs)
        case ShardingConstraint(spec=spec):
            same(ins, outs)
            _pin_sharded(spec, outs[0], links)
        case Checkpoint(body=body) | Call(body=body):
            params, results = ends("body", body)
            same(ins, params)
            same(results, outs)
        case Scan(body=body):
            params, results = ends("body", body)
            n, m, c = len(eqn.consts), len(eqn.consts) + len(eqn.carry), len(eqn.carry)
            same(ins[:m], params[:m])
            same(results[:c], outs[:c])
            same(results[:c], params[n:m])
            length = (path, -1 - i, 0)
            for outer, inner in (*zip(ins[m:], params[m:], strict=True), *zip(outs[c:], results[c:], strict=True)):
                links.link(length, outer[0])
                same([outer[1:]], [inner])
        case While(cond=cond, body=body):
            n, m = len(eqn.cond_consts), len(eqn.cond_consts) + len(eqn.body_consts)
            params, _ = ends("cond", cond)
            same(ins[:n] + ins[m:], params)
            params, results = ends("body", body)
            same(ins[n:], params)
            same(results, params[m - n :])
            same(results, outs)
        case Cond(branches=branches):
            for k, branch in enumerate(branches):
                params, results = ends(f"branches[{k}]", branch)
                same(ins[1:], params)
                same(results, outs)
        case CustomVjp(primal=primal, fwd=fwd, bwd=bwd):
            _link_vjp(eqn, ins, outs, (ends("primal", primal), ends("fwd", fwd), ends("bwd", bwd)), same)
        case CustomJvp(primal=primal, jvp=jvp):
            params, results = ends("primal", primal)
            same(ins, params)
            same(results, outs)
            params, results = ends("jvp", jvp)
            same(ins, params[: len(ins)])
            same(results[: len(outs)], outs)
            inexact_in = [a for a, v in zip(ins, jvp.params, strict=False) if v.type.inexact]
            same(inexact_in, params[len(ins) :])
            inexact_out = [a for a, v in zip(outs, eqn.outs, strict=True) if v.type.inexact]
            same(inexact_out, results[len(outs) :])
        case ShardMap(body=body, in_specs=in_specs, out_specs=out_specs):
            params, results = ends("body", body)
            for outer, inner, spec in (
                *zip(ins, params, in_specs, strict=True),
                *zip(outs, results, out_specs, strict=True),
            ):
                for k, (x, y) in enumerate(zip(outer, inner, strict=False)):
                    if k < len(spec) and spec[k]:
                        links.pin(x)
                        links.pin(y)
                    else:
                        links.link(x, y)
        case Fill():
            pass


_Ends = tuple[list[list[Node]], list[list[Node]]]


def _link_vjp(
    eqn: CustomVjp,
    ins: list[list[Node]],
    outs: list[list[Node]],
    blocks: tuple[_Ends, _Ends, _Ends],
    same: Callable[[Iterable[list[Node]], Iterable[list[Node]]], None],
) -> None:
    (p_in, p_out), (f_in, f_out), (b_in, b_out) = blocks
    n = eqn.n_residuals
    same(ins, p_in)
    same(p_out, outs)
    same(ins, f_in)
    same(f_out[: len(outs)], outs)
    same(f_out[len(outs) :], b_in[:n])
    same([a for a, v in zip(outs, eqn.outs, strict=True) if v.type.inexact], b_in[n:])
    same([a for a, v in zip(ins, eqn.primal.params, strict=True) if v.type.inexact], b_out)


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
