"""The one order of programs: what "smaller" means, everywhere.

`order_key` is a tuple of natural numbers followed by the canonical bytes, compared from the left. Natural numbers are
well-founded, tuples of a fixed length of them are too, and of one length and key there are finitely many byte
strings: so every chain of ever smaller programs ends, and a reducer that only accepts smaller ones terminates.
Two programs have the same key only if they are equal up to `meta`: the order is total.

What comes earlier outweighs everything after it, so each component is paid for by later ones only:

==  =============  ===================================================================================================
 1  size           equations, nested ones included, `Fill` not counted: deleting, unwrapping, cutting a value
 2  gradient       none, then by the number of argnums, then whether the value is asked for too
 3  flags          off their default: reverse, unroll, prevent_cse, differentiated, check_vma
 4  metadata       entries of XLA metadata: the barrier removed, here or there
 5  depth          the sum of the nesting depths of all equations: moving one out of a region
 6  ports          parameters and results of every block, one for the block, and the results of regions: dropping a
                   carry, x, y, constant, input, result, residual or branch, merging two arguments, a carry or x
                   turned into a constant; paid by 7
 7  fills          constants: so an input or carry replaced by zeros is smaller, and zeros replaced by a value also
 8  slices         xs and ys of scans: an x turned into a constant
 9  policies       their complexity: none, plain, by names and the number of names, combined
10  names          distinct names in the program: merging two
11  devices        of the mesh, then 12 the number of its axes
13  specs          dimensions sharded, constraints and entries, and 14 inputs donated or given a spec
15  trips          the sum of the lengths of scans
16  elements       of all variables bound anywhere: a dimension lowered
17  dimensions     the sum of all dimensions plus one each: an axis dropped
18  dtypes         float32 costs nothing, bfloat16 little, the rest more
19  memory         values in host memory
20  operations     `sin` costs nothing, `add` little, `mul` more, all others most
21  attributes     of operations
22  scalars        0 costs nothing, 1 little, the others by their length
23  length         of the canonical bytes (a shorter or lower number, name or constant), then 24 the bytes themselves
==  =============  ===================================================================================================

Flags and metadata come early because the one thing a reader stumbles over is a setting nobody would have made: a
program without it is worth a deeper nesting. Lengths come before elements because both fall together when a loop is
shortened; dtypes after elements because a conversion that becomes useless takes its equation with it anyway. A step
that raises an earlier component for a later one (unrolling a loop into slices that are equations, say) is not a
simplification by this order, and a reducer may only take it as the first half of a step that ends smaller.

Keys compare like with like in normal form only: renumbering variables changes the bytes.
"""

from __future__ import annotations

from typing import Final

import msgspec

from reducer.ir.codec import encode_program
from reducer.ir.equations import (
    Arg,
    Block,
    Call,
    Checkpoint,
    Fill,
    Lit,
    Name,
    Op,
    Program,
    Scan,
    ShardingConstraint,
    ShardMap,
    Spec,
    Var,
)
from reducer.ir.policies import Both, OffloadDots, OffloadNames, Policy, SaveAllBut, SaveNames, SaveNamesBut, names_of
from reducer.ir.walk import args_of, children

#: Cost of a dtype; one that is not listed costs `_OTHER`.
_DTYPES: Final = {"float32": 0, "int32": 1, "bool": 1, "bfloat16": 2, "float16": 3, "uint32": 3}
_OTHER: Final = 4
#: Cost of an operation: a short nonlinear function, then the two ways to combine values, then everything else.
_OPERATIONS: Final = {"sin": 0, "add": 1, "mul": 2}
_OTHER_OPERATION: Final = 3
_ZEROS: Final = frozenset({"0.0", "0", "False", "0j"})
_ONES: Final = frozenset({"1.0", "1", "True", "1j"})

OrderKey = tuple[int | bytes, ...]


def size(program: Program) -> int:
    """Equations of the program, those of nested blocks included, `Fill` not counted.

    Every block counts: each branch of a cond, and each rule of a custom derivative.
    """
    return _size(program.block)


def _size(block: Block) -> int:
    total = 0
    for eqn in block.eqns:
        if not isinstance(eqn, Fill):
            total += 1
            for _, child in children(eqn):
                total += _size(child)
    return total


def order_key(program: Program) -> OrderKey:
    """The key that orders programs; see the module's docstring for its components."""
    t = _Tally()
    t.block(program.block, 1)
    grad = program.gradient
    for entry in program.inputs:
        t.entries += entry.donated + (entry.spec is not None)
        t.specs += _spec(entry.spec)
    for spec in program.result_specs:
        t.entries += spec is not None
        t.specs += _spec(spec)
    data = encode_program(msgspec.structs.replace(program, meta=()) if program.meta else program)
    return (
        t.size,
        0 if grad is None else 2 * len(grad.argnums) + grad.with_value + 1,
        t.flags,
        t.metadata,
        t.depth,
        t.ports,
        t.fills,
        t.slices,
        t.policies,
        len(t.names),
        program.mesh.size if program.mesh else 0,
        len(program.mesh.axes) if program.mesh else 0,
        t.specs,
        t.entries,
        t.trips,
        t.elements,
        t.dimensions,
        t.dtypes,
        t.memory,
        t.operations,
        t.attributes,
        t.scalars,
        len(data),
        data,
    )


def _spec(spec: Spec | None) -> int:
    return sum(len(a) if isinstance(a, tuple) else a is not None for a in spec or ())


def policy_cost(policy: Policy | None) -> int:
    """How complex a policy is: none, then plain ones, then by names; an offloaded name costs more than a saved one."""
    match policy:
        case None:
            return 0
        case SaveNames(names=names) | SaveAllBut(names=names) | SaveNamesBut(names=names):
            return 2 + len(names)
        case OffloadDots(src=src, dst=dst):
            return 3 + _unusual(src, dst)
        case OffloadNames(offloaded=offloaded, saved=saved, src=src, dst=dst):
            return 3 + 2 * len(offloaded) + len(saved) + _unusual(src, dst)
        case Both(first=first, second=second):
            return 1 + policy_cost(first) + policy_cost(second)
        case _:
            return 1


def _unusual(src: str, dst: str) -> int:
    return (src != "device") + (dst != "pinned_host")


class _Tally:
    """Counts of one walk over a program."""

    __slots__ = (
        "attributes", "depth", "dimensions", "dtypes", "elements", "entries", "fills", "flags", "memory", "metadata",
        "names", "operations", "policies", "ports", "scalars", "size", "slices", "specs", "trips",
    )  # fmt: skip

    def __init__(self) -> None:
        self.size = self.depth = self.ports = self.fills = self.slices = self.policies = self.flags = 0
        self.metadata = self.specs = self.entries = self.trips = self.elements = self.dimensions = 0
        self.dtypes = self.memory = self.operations = self.attributes = self.scalars = 0
        self.names: set[str] = set()

    def block(self, block: Block, depth: int) -> None:
        self.ports += 1 + len(block.params) + len(block.results)
        self.variables(block.params)
        self.literals(block.results)
        for eqn in block.eqns:
            self.variables(eqn.outs)
            self.metadata += len(eqn.metadata)
            if type(eqn) is Fill:
                self.fills += 1
                self.scalars += _scalar(eqn.value)
                continue
            self.size += 1
            self.depth += depth
            self.literals(args_of(eqn))
            match eqn:
                case Op(primitive=primitive, attributes=attributes):
                    self.operations += _OPERATIONS.get(primitive, _OTHER_OPERATION)
                    self.attributes += len(attributes)
                    continue
                case Name(name=name):
                    self.names.add(name)
                case Scan(length=length, reverse=reverse, unroll=unroll):
                    self.trips += length
                    self.flags += reverse + unroll - 1
                    self.slices += len(eqn.xs) + len(eqn.outs) - len(eqn.carry)
                case Checkpoint(policy=policy):
                    self.flags += eqn.differentiated + (not eqn.prevent_cse)
                    if policy is not None:
                        self.policies += policy_cost(policy)
                        self.names.update(names_of(policy))
                case ShardMap(in_specs=ins, out_specs=outs):
                    self.flags += eqn.check_vma
                    self.specs += sum(map(_spec, ins + outs)) + len(eqn.manual)
                case ShardingConstraint(spec=spec):
                    self.specs += 1 + _spec(spec)
                case Call(name=name):
                    self.flags += name != "inner"
                case _:
                    pass
            for _, child in children(eqn):
                self.ports += len(eqn.outs)
                self.block(child, depth + 1)

    def variables(self, variables: tuple[Var, ...]) -> None:
        for var in variables:
            type_ = var.type
            elements = 1
            for n in type_.shape:
                elements *= n
                self.dimensions += n + 1
            self.elements += elements
            self.dtypes += _DTYPES.get(type_.dtype, _OTHER)
            self.memory += type_.memory == "host"

    def literals(self, args: tuple[Arg, ...]) -> None:
        for arg in args:
            if isinstance(arg, Lit):
                self.dtypes += _DTYPES.get(arg.dtype, _OTHER)
                self.scalars += _scalar(arg.value)


def _scalar(text: str) -> int:
    return 0 if text in _ZEROS else 1 if text in _ONES else 1 + len(text)


__all__ = ["OrderKey", "order_key", "policy_cost", "size"]
