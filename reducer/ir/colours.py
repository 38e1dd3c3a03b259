"""Colours: a number for every value, equation, port and name of a program that does not depend on their order.

Two programs that differ in the order of independent equations, inputs, results, or arguments of regions get the same
colours in corresponding places, so sorting by colour brings them to one order (`canonical`). This is colour
refinement (Weisfeiler and Leman, 1968) on the graph of the program: a colour starts as what a thing is by itself and
is refined by the colours of its neighbours until no class splits any more. Ports that stay equal are set apart one by
one, in the order they are in.

A *port* is one argument or result of a region in all its guises: the value outside, the parameter or result inside of
each block. Ports of one role are not ordered; arguments of operations and of custom rules are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

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
    Lit,
    Name,
    Op,
    Program,
    Scan,
    ShardingConstraint,
    ShardMap,
    Transfer,
    While,
)
from reducer.ir.policies import Both, OffloadNames, Policy, SaveAllBut, SaveNames, SaveNamesBut, map_names
from reducer.ir.ports import inside, is_region, outside, ports_of, results_of, returned
from reducer.ir.types import Type
from reducer.ir.walk import args_of, children

#: Role and number within its role, of one port of an equation.
Port = tuple[str, int]
#: Visits of nodes after which the rest is left as it is: about a second. A program of thousands of equations that are
#: much alike then keeps some of the order it came in; a reduced one never gets here.
_VISITS: Final = 300_000


class Scope:
    """One block: the node of each variable, and for each equation its ports and the scopes of its blocks."""

    __slots__ = ("block", "kids", "nodes", "ports")

    def __init__(self, block: Block) -> None:
        self.block = block
        self.nodes: dict[int, int] = {}
        self.ports: dict[int, dict[Port, int]] = {}
        self.kids: dict[int, dict[str, Scope]] = {}


class Graph:
    """The graph of a program: nodes with labels, labelled edges both ways. Labels are what a subclass cares about."""

    def __init__(self, program: Program) -> None:
        self.labels: list[str] = []
        self.edges: list[list[tuple[str, int]]] = []
        self.names: dict[str, int] = {}
        self.ports: list[int] = []
        self.top = self._scope(program.block)
        self.inputs: list[int] = []
        self.results: list[int] = []
        self._surroundings(program)

    def value_label(self, type_: Type) -> object:
        """What a variable is by itself."""
        return str(type_)

    def scalar_label(self, lit: Lit) -> object:
        """What a scalar is."""
        return lit

    def equation_label(self, eqn: Equation) -> object:
        """What an equation is by itself: everything but values, blocks, and names."""
        return equation_label(eqn)

    def port_label(self, own: object) -> object:
        """What a port, an input or a result is by itself: its spec, its entry, or nothing."""
        return own

    def _node(self, *label: object) -> int:
        self.labels.append(repr(label))
        self.edges.append([])
        return len(self.labels) - 1

    def _edge(self, source: int, label: str, target: int) -> None:
        self.edges[source].append((label, target))
        self.edges[target].append((f"<{label}", source))

    def _attach(self, port: int, label: str, scope: Scope, arg: Arg) -> None:
        """Join a port and a value; a scalar has no node and becomes part of what the port is."""
        if isinstance(arg, Lit):
            self.labels[port] += repr((label, self.scalar_label(arg)))
        else:
            self._edge(port, label, scope.nodes[arg])

    def _name(self, name: str) -> int:
        if name not in self.names:
            self.names[name] = self._node("name")
        return self.names[name]

    def _surroundings(self, program: Program) -> None:
        wanted = program.gradient.argnums if program.gradient else ()
        for i, var in enumerate(program.block.params):
            entry = program.inputs[i] if program.inputs else Entry()
            self.inputs.append(self._node("input", self.port_label(entry), i in wanted))
            self._edge(self.inputs[i], "is", self.top.nodes[var.id])
        for i, result in enumerate(program.block.results):
            spec = program.result_specs[i] if program.result_specs else None
            self.results.append(self._node("result", self.port_label(spec)))
            self._attach(self.results[i], "is", self.top, result)

    def _scope(self, block: Block, parent: int = -1, field: str = "") -> Scope:
        scope = Scope(block)
        for var in block.params:
            scope.nodes[var.id] = self._node("value", self.value_label(var.type))
        for i, eqn in enumerate(block.eqns):
            node = self._node(self.equation_label(eqn))
            if parent >= 0:
                self._edge(node, f"in {field}", parent)
            for var in eqn.outs:
                scope.nodes[var.id] = self._node("value", self.value_label(var.type))
            self._refer_names(node, eqn)
            nested = children(eqn)
            if nested:
                scope.kids[i] = {name: self._scope(child, node, name) for name, child in nested}
            if is_region(eqn):
                self._region(scope, i, node)
            else:
                self._ordered(scope, i, node)
        return scope

    def _refer_names(self, node: int, eqn: Equation) -> None:
        if isinstance(eqn, Name):
            self._edge(node, "calls", self._name(eqn.name))
        elif isinstance(eqn, Checkpoint):
            for role, name in policy_names(eqn.policy):
                self._edge(node, role, self._name(name))

    def _ordered(self, scope: Scope, i: int, node: int) -> None:
        eqn = scope.block.eqns[i]
        for k, arg in enumerate(args_of(eqn)):
            self._attach(node, f"argument {k}", scope, arg)
        for k, var in enumerate(eqn.outs):
            self._edge(node, f"result {k}", scope.nodes[var.id])
        for field, kid in scope.kids.get(i, {}).items():
            for k, var in enumerate(kid.block.params):
                self._edge(node, f"{field} parameter {k}", kid.nodes[var.id])
            for k, result in enumerate(kid.block.results):
                self._attach(node, f"{field} result {k}", kid, result)

    def _region(self, scope: Scope, i: int, node: int) -> None:
        eqn = scope.block.eqns[i]
        ports = scope.ports[i] = {}
        for role, k, own in ports_of(eqn):
            ports[role, k] = self._node(role, self.port_label(own))
            self._edge(node, role, ports[role, k])
            self.ports.append(ports[role, k])
        if isinstance(eqn, Cond):
            self._attach(node, "index", scope, eqn.index)
        if isinstance(eqn, While):
            self._attach(node, "test", scope.kids[i]["cond"], eqn.cond.results[0])
        for role, k, arg in outside(eqn):
            self._attach(ports[role, k], "outside", scope, arg)
        for role, k, field, arg in inside(eqn):
            self._attach(ports[role, k], f"inside {field}", scope.kids[i][field], arg)
        for role, k, out in results_of(eqn):
            self._edge(ports[role, k], "after", scope.nodes[out])
        for role, k, field, arg in returned(eqn):
            self._attach(ports[role, k], f"returned {field}", scope.kids[i][field], arg)


class Colours(Graph):
    """The coloured graph of a program. `colour[n]` belongs to node n; `top` is the scope of the outermost block.

    A colour is the number of nodes of smaller colours, so splitting one class leaves the colours of all others, and
    only classes next to a changed node need another look.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        kinds = {label: i for i, label in enumerate(sorted({label for out in self.edges for label, _ in out}))}
        self._neighbours = [[(kinds[label], n) for label, n in out] for out in self.edges]
        self.colour = [0] * len(self.labels)
        self._classes = {0: list(range(len(self.labels)))}
        self._visits = 0
        self._split(0, self.labels)
        self._refine(range(len(self.labels)))
        self._break_ties()

    def _split(self, colour: int, signatures: Sequence[Any]) -> list[int]:
        """Split one class by the signatures of its nodes, in that order; returns nodes whose colour changed."""
        nodes = self._classes[colour]
        groups: dict[Any, list[int]] = {}
        for node, signature in zip(nodes, signatures, strict=True):
            groups.setdefault(signature, []).append(node)
        if len(groups) <= 1:
            return []
        changed = []
        for signature in sorted(groups):
            group = groups[signature]
            self._classes[colour] = group
            if self.colour[group[0]] != colour:
                changed += group
                for node in group:
                    self.colour[node] = colour
            colour += len(group)
        return changed

    def _refine(self, changed: Iterable[int]) -> None:
        """Split classes next to changed nodes until nothing changes. All of one round see the same colours."""
        while changed and self._visits < _VISITS:
            touched = {self.colour[n] for node in changed for _, n in self._neighbours[node]}
            splits = []
            for colour in touched:
                nodes = self._classes[colour]
                if len(nodes) > 1:
                    self._visits += len(nodes)
                    splits.append((colour, [self._around(node) for node in nodes]))
            changed = [node for colour, signatures in splits for node in self._split(colour, signatures)]

    def _around(self, node: int) -> tuple[tuple[int, int], ...]:
        return tuple(sorted([(kind, self.colour[n]) for kind, n in self._neighbours[node]]))

    def _break_ties(self) -> None:
        """Set one of each class of like ports apart, so that ports tied to it elsewhere follow it.

        Like ports are nearly always interchangeable, and then it does not matter which one comes first; but the same
        one has to come first everywhere.
        """
        pending = sorted([*self.inputs, *self.results, *self.ports])
        while self._visits < _VISITS:
            pending = [node for node in pending if len(self._classes[self.colour[node]]) > 1]
            if not pending:
                break
            colour = min(self.colour[node] for node in pending)
            nodes = self._classes[colour]
            chosen = next(node for node in pending if self.colour[node] == colour)
            self._visits += len(nodes)
            self._split(colour, [node != chosen for node in nodes])
            self._refine([chosen])


def policy_names(policy: Policy | None, prefix: str = "") -> Iterable[tuple[str, str]]:
    """The names a policy mentions, each with the role it has there."""
    match policy:
        case OffloadNames(offloaded=offloaded, saved=saved):
            yield from ((f"{prefix}offloaded", n) for n in offloaded)
            yield from ((f"{prefix}saved", n) for n in saved)
        case SaveNames(names=names) | SaveAllBut(names=names) | SaveNamesBut(names=names):
            yield from ((f"{prefix}names", n) for n in names)
        case Both(first=first, second=second):
            yield from policy_names(first, f"{prefix}first ")
            yield from policy_names(second, f"{prefix}second ")
        case _:
            pass


def bare_policy(policy: Policy | None) -> Policy | None:
    """The policy without its names."""
    return None if policy is None else map_names(policy, lambda _: ())


def equation_label(eqn: Equation) -> tuple[object, ...]:
    """What an equation is by itself: everything but values, blocks, and names."""
    start = (type(eqn).__name__, eqn.metadata)
    match eqn:
        case Op(primitive=primitive, attributes=attributes):
            return (*start, primitive, attributes)
        case Fill(value=value):
            return (*start, value)
        case Scan(length=length, reverse=reverse, unroll=unroll):
            return (*start, length, reverse, unroll)
        case Checkpoint(policy=policy, prevent_cse=prevent_cse, differentiated=differentiated):
            return (*start, bare_policy(policy), prevent_cse, differentiated)
        case Transfer(memory=memory):
            return (*start, memory)
        case CustomVjp(n_residuals=n):
            return (*start, n)
        case ShardMap(manual=manual, check_vma=check_vma):
            return (*start, manual, check_vma)
        case ShardingConstraint(spec=spec):
            return (*start, spec)
        case Cond() | While() | Call() | CustomJvp() | Name():
            return start
