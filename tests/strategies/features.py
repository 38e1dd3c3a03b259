"""What a program has, as words: the shapes and dimensions of failures seen in the wild."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from reducer.ir.equations import (
    BARRIER,
    Block,
    Call,
    Checkpoint,
    Cond,
    CustomVjp,
    Equation,
    Name,
    Op,
    Program,
    Scan,
    ShardingConstraint,
    ShardMap,
    Transfer,
    While,
)
from reducer.ir.policies import OffloadDots, OffloadNames, Plain, Policy, offloads
from reducer.ir.types import Type
from reducer.ir.walk import arg_type, args_of, children, types_of


@dataclass
class Features:
    """Collects words while walking down; `above` are the equations around the current block."""

    words: set[str] = field(default_factory=set)

    def visit(self, block: Block, above: tuple[Equation, ...]) -> None:
        types = types_of(block)
        made = {var.id: eqn for eqn in block.eqns for var in eqn.outs}
        for eqn in block.eqns:
            args = tuple(arg_type(a, types) for a in args_of(eqn))
            self.words |= set(_equation(eqn, args, above))
            if isinstance(eqn, Name):
                self.words |= set(_name(eqn, block, made, above))
            for name, child in children(eqn):
                inner = (*above, eqn)
                self.visit(child, inner)
                if name == "fwd" and _offloaded(above) & set(_names(child)):
                    self.words.add("offload: custom_vjp residual")


def features(program: Program) -> frozenset[str]:
    """All words about a program."""
    found = Features()
    found.visit(program.block, ())
    return frozenset(found.words | set(_whole(program)))


def scans(above: tuple[Equation, ...]) -> list[Scan]:
    return [eqn for eqn in above if isinstance(eqn, Scan)]


def _names(block: Block) -> list[str]:
    return [eqn.name for eqn in block.eqns if isinstance(eqn, Name)]


def _offloaded(above: tuple[Equation, ...]) -> set[str]:
    policies = [eqn.policy for eqn in above if isinstance(eqn, Checkpoint)]
    return {name for policy in policies if isinstance(policy, OffloadNames) for name in policy.offloaded}


def _policies(above: tuple[Equation, ...]) -> list[Policy | None]:
    return [eqn.policy for eqn in above if isinstance(eqn, Checkpoint)]


def depth_of(block: Block) -> int:
    """Scans inside one another, at most."""
    inner = [(isinstance(eqn, Scan) + depth_of(child)) for eqn in block.eqns for _, child in children(eqn)]
    return max(inner, default=0)


def _equation(eqn: Equation, args: tuple[Type, ...], above: tuple[Equation, ...]) -> Iterator[str]:
    match eqn:
        case Scan():
            yield from _scan(eqn, args, above)
        case Checkpoint():
            yield from _checkpoint(eqn, above)
        case Transfer(memory=memory):
            yield f"transfer to {memory} at depth {len(scans(above))}"
        case While():
            yield "while"
        case Cond():
            yield "cond"
        case Call():
            yield "jit"
        case CustomVjp():
            yield "custom_vjp"
        case ShardMap():
            yield f"shard_map {'inside' if scans(above) else 'outside'} a scan"
        case ShardingConstraint():
            yield "sharding constraint"
        case Op(primitive="psum"):
            yield "collective"
        case Op(primitive="dynamic_slice" | "dynamic_update_slice") if args[0].on_host:
            index = next(t for t in args[1:] if not t.shape)
            yield f"{eqn.primitive} of a host array, index on the {index.memory}"
        case Op(primitive="convert_element_type") if args[0].on_host:
            yield "cast before the move"
        case Op(primitive="dot_general"):
            (_, ((batch, _))) = eqn.attr("dimension_numbers")
            for policy in _policies(above):
                plain = isinstance(policy, OffloadDots) or policy == Plain("dots_with_no_batch_dims_saveable")
                if plain and batch:
                    yield "dots policy, batched dot"
                if isinstance(policy, OffloadDots) and not batch:
                    yield "offload: dot"


def _scan(eqn: Scan, args: tuple[Type, ...], above: tuple[Equation, ...]) -> Iterator[str]:
    outer = len(scans(above))
    yield f"scan depth {outer + 1}"
    barrier = "with" if eqn.metadata == BARRIER else "without"
    yield f"length {eqn.length} {barrier} barrier at depth {outer + 1}"
    if eqn.reverse:
        yield "reverse"
    if eqn.unroll > 1:
        yield "unroll full" if eqn.unroll == eqn.length else "unroll partial"
    n, m = len(eqn.consts), len(eqn.consts) + len(eqn.carry)
    if any(t.on_host for t in args[:n]):
        yield "host const"
    if any(t.on_host for t in args[n:m]):
        yield "host carry"
    if len(eqn.carry) > 1:
        yield "several carries"
    if any(t.on_host for t in args[m:]):
        yield f"host xs at depth {outer + 1}"
    ys = [var.type for var in eqn.outs[len(eqn.carry) :]]
    if any(t.on_host for t in ys):
        yield f"host ys at depth {outer + 1}"
    if any(t.on_host and t.in_memory("device") in ys for t in ys):
        yield "two stacked outputs of one shape, one on the host"


def _checkpoint(eqn: Checkpoint, above: tuple[Equation, ...]) -> Iterator[str]:
    yield f"prevent_cse {eqn.prevent_cse}"
    outer, inner = len(scans(above)), depth_of(eqn.body)
    if outer:
        yield "checkpoint in scan"
    if inner:
        yield "scan in checkpoint"
    if any(isinstance(e, Checkpoint) for e in above):
        yield "checkpoint in checkpoint"
    if isinstance(eqn.policy, Plain):
        yield eqn.policy.name
    yield f"policy {type(eqn.policy).__name__}"
    if not offloads(eqn.policy):
        return
    if outer + inner > 1:
        yield "offload policy on " + ("the inner body" if not inner else "a block" if outer else "the whole nest")
    around = [policy for policy in _policies(above) if offloads(policy)]
    if around and outer:
        yield "offload policies on two levels"
    if any(policy != eqn.policy for policy in around):
        yield "different offload policies on two levels"
    names = set(_names_inside(eqn.body))
    if isinstance(eqn.policy, OffloadNames) and not set(eqn.policy.offloaded) & names:
        yield "offloaded name is nowhere"
    if isinstance(eqn.policy, OffloadNames) and eqn.policy.saved:
        yield "one name offloaded, another saved"


def _names_inside(block: Block) -> Iterator[str]:
    yield from _names(block)
    for eqn in block.eqns:
        for _, child in children(eqn):
            yield from _names_inside(child)


def _name(eqn: Name, block: Block, made: dict[int, Equation], above: tuple[Equation, ...]) -> Iterator[str]:
    if eqn.name not in _offloaded(above):
        return
    (out,) = eqn.outs
    type_ = out.type
    yield f"offload: rank {type_.rank}"
    yield f"offload: {type_.dtype}"
    yield f"offload: {'interior value' if eqn.arg in made else 'region input'}"
    if out.id in block.results and not any(out.id in args_of(e) for e in block.eqns):
        yield "offload: output only"
    if str(type_) == "bf16[256]" and len(scans(above)) == 1:
        yield "bf16[256] offloaded in a plain scan"
    if type_.shape and type_.shape[-1] % 128:
        yield "offload: not a multiple of 128 lanes"
    if 1 in type_.shape:
        yield "offload: a size of 1"


def _whole(program: Program) -> Iterator[str]:
    params, results = program.block.params, program.block.results
    types = types_of(program.block)
    yield "gradient" if program.gradient else "no gradient"
    if program.gradient:
        yield f"with_value {program.gradient.with_value}"
        if any(params[n].type.on_host for n in program.gradient.argnums):
            yield "gradient of a host input"
    if any(v.type.on_host for v in params):
        yield "host input"
    if any(arg_type(r, types).on_host for r in results):
        yield "host result"
    for var, entry in zip(params, program.inputs, strict=False):
        if entry.donated:
            yield "donated host input" if var.type.on_host else "donated input"
        if entry.spec and any(entry.spec):
            yield "sharded input"
    if program.mesh:
        yield f"mesh of {program.mesh.size}"
        yield f"{len(program.mesh.axes)} mesh axes"
