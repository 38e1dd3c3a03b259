"""The normal form of programs: what remains when everything that cannot matter is taken out.

`normalise` does, everywhere in the program:

- Scalars get their canonical text; a conversion of a scalar becomes the scalar; a conversion to the dtype a value
  already has becomes the value. Tracing never records either of the two, so neither may count as an equation.
- Attributes and metadata are sorted; partition specs lose trailing and empty entries.
- A value that enters a region twice in the same role enters it once.
- Dead code goes: equations no result of which is used, results of regions that are not used, their parameters and
  arguments that are not used. A carry lives if its result is used, or if the body (or the condition of a while loop)
  needs it for something that lives; it goes with its initial value, parameter, and both results.
- Variables are numbered in order of binding.

It keeps the order of equations, every input and result of the program, nested calls, carries a loop returns unchanged,
and whatever else is redundant but alive: that may be the very thing the compiler stumbles over. A custom derivative
rule is dead or alive as a whole, since its blocks must agree with each other; inside each block dead code goes.

With a gradient the objective sums inexact results, all of which are kept; nothing else feeds it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from reducer.ir.dead_code import without_dead_code
from reducer.ir.equations import (
    Arg,
    Block,
    Call,
    Checkpoint,
    Cond,
    Entry,
    Equation,
    Fill,
    Lit,
    Op,
    Program,
    Scan,
    ShardingConstraint,
    ShardMap,
    Spec,
    While,
)
from reducer.ir.scalars import canonical_scalar, convert_scalar
from reducer.ir.types import Type
from reducer.ir.walk import args_of, children, substitute, with_args, with_children

_replace = msgspec.structs.replace


def normalise(program: Program) -> Program:
    """The normal form of a well-formed program; the form itself is left as it is.

    Raises:
        ProgramError: a scalar's text is no scalar (`check` refuses such a program).
    """
    axes = tuple(name for name, _ in program.mesh.axes) if program.mesh else ()
    block = _simplify(program.block, axes)
    block = without_dead_code(block)
    inputs = tuple(Entry(None if e.spec is None else _spec(e.spec), e.donated) for e in program.inputs)
    specs = tuple(None if s is None else _spec(s) for s in program.result_specs)
    return _replace(
        program,
        block=block,
        inputs=inputs if any(e != Entry() for e in inputs) else (),
        result_specs=specs if any(s is not None for s in specs) else (),
    )


def _simplify(block: Block, axes: tuple[str, ...]) -> Block:
    types = {var.id: var.type for var in block.params}
    renamed: dict[int, Arg] = {}
    eqns: list[Equation] = []

    def sub(arg: Arg) -> Arg:
        if isinstance(arg, Lit):
            return Lit(arg.dtype, canonical_scalar(arg.value, arg.dtype))
        return renamed.get(arg, arg)

    for eqn in block.eqns:
        types.update((var.id, var.type) for var in eqn.outs)
        eqn = with_args(eqn, tuple(map(sub, args_of(eqn))))
        value = _folded(eqn, types)
        if value is not None:
            renamed[eqn.outs[0].id] = value
            continue
        eqn = _merged(_tidy(eqn, axes))
        inner = {field: _simplify(child, axes) for field, child in children(eqn)}
        eqns.append(with_children(eqn, inner))
    return Block(block.params, tuple(eqns), tuple(map(sub, block.results)))


def _folded(eqn: Equation, types: Mapping[int, Type]) -> Arg | None:
    """What a conversion that tracing would not record stands for."""
    if not isinstance(eqn, Op) or eqn.primitive != "convert_element_type" or len(eqn.args) != 1:
        return None
    (arg,), (out,) = eqn.args, eqn.outs
    if isinstance(arg, Lit):
        return arg if arg.dtype == out.type.dtype else convert_scalar(arg, out.type.dtype)
    return arg if types[arg] == out.type else None


def _tidy(eqn: Equation, axes: tuple[str, ...]) -> Equation:
    """The equation with everything that is a set or a mapping in one order, and specs in their short form."""
    if len(eqn.metadata) > 1:
        eqn = _replace(eqn, metadata=tuple(sorted(eqn.metadata)))
    match eqn:
        case Op(attributes=attributes) if len(attributes) > 1:
            return _replace(eqn, attributes=tuple(sorted(attributes, key=lambda kv: kv[0])))
        case Fill(value=value, outs=(out,)):
            return _replace(eqn, value=canonical_scalar(value, out.type.dtype))
        case ShardingConstraint(spec=spec):
            return _replace(eqn, spec=_spec(spec))
        case ShardMap(in_specs=ins, out_specs=outs, manual=manual):
            manual = () if set(manual) == set(axes) else tuple(sorted(manual))
            return _replace(eqn, in_specs=tuple(map(_spec, ins)), out_specs=tuple(map(_spec, outs)), manual=manual)
        case _:
            return eqn


def _spec(spec: Spec) -> Spec:
    def short(axes: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        return (axes[0] if len(axes) == 1 else axes or None) if isinstance(axes, tuple) else axes

    out = [short(axes) for axes in spec]
    while out and out[-1] is None:
        out.pop()
    return tuple(out)


def _merged(eqn: Equation) -> Equation:
    """The region with every value entering once per role; carries are different values once the loop runs."""
    match eqn:
        case Scan(consts=consts, carry=carry, xs=xs):
            m = len(consts) + len(carry)
            first = {**_first(consts, 0), **_first(xs, m)}
            if not first:
                return eqn
            return _replace(eqn, consts=_without(consts, first), xs=_without(xs, first, m), body=_join(eqn.body, first))
        case While(cond_consts=cc, body_consts=bc):
            in_cond, in_body = _first(cc, 0), _first(bc, 0)
            if not in_cond and not in_body:
                return eqn
            cond, body = _join(eqn.cond, in_cond), _join(eqn.body, in_body)
            return _replace(
                eqn, cond_consts=_without(cc, in_cond), body_consts=_without(bc, in_body), cond=cond, body=body
            )
        case Cond(args=args) | Checkpoint(args=args) | Call(args=args):
            first = _first(args, 0)
            if not first:
                return eqn
            joined = {field: _join(child, first) for field, child in children(eqn)}
            return with_children(_replace(eqn, args=_without(args, first)), joined)
        case ShardMap(args=args, in_specs=specs):
            first = _first(tuple(zip(args, specs, strict=True)), 0)
            if not first:
                return eqn
            kept = tuple(s for i, s in enumerate(specs) if i not in first)
            return _replace(eqn, args=_without(args, first), in_specs=kept, body=_join(eqn.body, first))
        case _:
            return eqn


def _first(args: tuple[object, ...], offset: int) -> dict[int, int]:
    """Position of every repeated argument -> position of its first occurrence, counted from `offset`."""
    seen: dict[object, int] = {}
    return {i: seen[a] for i, a in enumerate(args, offset) if seen.setdefault(a, i) != i}


def _without(args: tuple[Arg, ...], first: Mapping[int, int], offset: int = 0) -> tuple[Arg, ...]:
    return tuple(a for i, a in enumerate(args, offset) if i not in first)


def _join(block: Block, first: Mapping[int, int]) -> Block:
    params = block.params
    joined = substitute(block, {params[i].id: params[k].id for i, k in first.items()})
    return Block(tuple(p for i, p in enumerate(params) if i not in first), joined.eqns, joined.results)


__all__ = ["normalise"]
