"""Which axes of a program are one dimension: the links that equations make, and the axes that are pinned.

A *node* is one axis of one variable, or the length of one scan. Equations link nodes of equal size (an elementwise
operation its operands' axes with its result's, a scan its body's axes with those outside, its length with the leading
axes of its xs and ys); a union-find over these links gives the classes. A primitive without a rule *pins* its axes:
their classes keep their size, because nothing is known about what another size would mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from reducer.ir.axes import op_links
from reducer.ir.elementwise_rules import ELEMENTWISE
from reducer.ir.equations import (
    Arg,
    Block,
    Call,
    Checkpoint,
    Cond,
    CustomJvp,
    CustomVjp,
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
from reducer.ir.walk import Path, args_of, children, types_of

#: (path of the block, variable, axis), or (path of the block, -1 - number of the scan, 0) for a scan's length.
Node = tuple[Path, int, int]


class Links:
    """Union-find over nodes: `size` of each, and the pinned ones (`pins`)."""

    def __init__(self) -> None:
        self.parent: dict[Node, Node] = {}
        self.size: dict[Node, int] = {}
        self.pins: set[Node] = set()

    def add(self, node: Node, size: int) -> None:
        """A new node, a class of its own."""
        self.parent[node] = node
        self.size[node] = size

    def find(self, node: Node) -> Node:
        """The node that stands for the class of this one."""
        root = node
        while self.parent[root] != root:
            root = self.parent[root]
        while self.parent[node] != root:
            self.parent[node], node = root, self.parent[node]
        return root

    def link(self, a: Node, b: Node) -> None:
        """Make two classes one; nodes of different sizes are pinned instead."""
        if self.size[a] != self.size[b]:
            self.pins |= {a, b}
            return
        one, two = self.find(a), self.find(b)
        if one != two:
            self.parent[two] = one

    def pin(self, node: Node) -> None:
        """Keep the size of this node's class."""
        self.pins.add(node)


def links_of(program: Program) -> Links:
    """The links of a well-typed program; nodes are in order of first occurrence."""
    links = Links()
    _visit(program.block, (), links)
    for entry, var in zip(program.inputs, program.block.params, strict=False):
        _pin_sharded(entry.spec, [((), var.id, k) for k in range(var.type.rank)], links)
    types = types_of(program.block)
    for spec, result in zip(program.result_specs, program.block.results, strict=False):
        if isinstance(result, int):
            _pin_sharded(spec, [((), result, k) for k in range(types[result].rank)], links)
    return links


def _pin_sharded(spec: Spec | None, nodes: Sequence[Node], links: Links) -> None:
    for axes, node in zip(spec or (), nodes, strict=False):
        if axes:
            links.pin(node)


def _visit(block: Block, path: Path, links: Links) -> None:
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
    eqn: Equation, ins: list[list[Node]], outs: list[list[Node]], path: Path, i: int, links: Links
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
