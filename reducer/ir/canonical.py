"""The final form of a program: two finds of one bug should end as the same bytes.

On top of the normal form:

- results, carries and ys come in the order of their colours (`colours`); equations in the order in which evaluating
  the results one after the other, arguments from left to right, first needs them; inputs, constants, xs and arguments
  of regions in the order of their first use;
- names of `checkpoint_name` become ``h``, ``h1``, ``h2``, ... by first use, and policies mention them in that order;
  names of nested calls become the default.

What stays as it is: arguments of operations (also of commutative ones), of custom rules, branches of a cond, mesh
axes. A compiler may care about any of the orders changed here, so whoever reports a canonical program has to compile
that one, not the one it was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from reducer.ir.colours import Colours, Scope, policy_names
from reducer.ir.equations import (
    Arg,
    Block,
    Call,
    Checkpoint,
    Cond,
    Equation,
    Grad,
    Name,
    Program,
    Scan,
    ShardMap,
    While,
)
from reducer.ir.normal import normalise
from reducer.ir.policies import map_names, rename
from reducer.ir.ports import inside, is_region, outside, ports_of
from reducer.ir.walk import args_of, children, map_block, with_children

_replace = msgspec.structs.replace
_T = TypeVar("_T")


def canonical(program: Program) -> Program:
    """The canonical form of a well-formed program, which is a normal form too; the form itself is left as it is.

    Raises:
        ProgramError: as `normalise`.
    """
    program = normalise(program)
    colours = Colours(program)
    key = colours.colour
    results = sorted(range(len(colours.results)), key=lambda k: key[colours.results[k]])
    block = _ordered(colours, colours.top, results)
    first = _first_uses(block)
    params = block.params
    # An input that is not used comes last; those are told apart by their colour.
    unused = len(first)
    inputs = sorted(range(len(params)), key=lambda k: (first.get(params[k].id, unused), key[colours.inputs[k]]))
    block = _replace(block, params=_pick(params, inputs))
    grad = program.gradient
    if grad is not None:
        grad = Grad(tuple(i for i, k in enumerate(inputs) if k in grad.argnums), grad.with_value)
    block = _renamed(block, colours)
    return normalise(
        _replace(
            program,
            block=block,
            gradient=grad,
            inputs=_pick(program.inputs, inputs) if program.inputs else (),
            result_specs=_pick(program.result_specs, results) if program.result_specs else (),
        )
    )


def _pick(items: Sequence[_T], positions: Iterable[int]) -> tuple[_T, ...]:
    return tuple(items[k] for k in positions)


def _first_uses(block: Block) -> dict[int, int]:
    """Rank of each variable of a block by its first use."""
    first: dict[int, int] = {}
    for args in (*map(args_of, block.eqns), block.results):
        for arg in args:
            if isinstance(arg, int):
                first.setdefault(arg, len(first))
    return first


def _ordered(colours: Colours, scope: Scope, results: Sequence[int]) -> Block:
    """The block with its results in that order, its equations as they are needed, and what is inside ordered too."""
    block = scope.block
    eqns = [
        _region(colours, scope, i) if is_region(eqn) else _inner(colours, scope, i) for i, eqn in enumerate(block.eqns)
    ]
    wanted = _pick(block.results, results)
    return Block(block.params, tuple(_as_needed(eqns, wanted)), wanted)


def _inner(colours: Colours, scope: Scope, i: int) -> Equation:
    kids = scope.kids.get(i, {})
    blocks = {field: _ordered(colours, kid, range(len(kid.block.results))) for field, kid in kids.items()}
    return with_children(scope.block.eqns[i], blocks)


def _as_needed(eqns: Sequence[Equation], results: Iterable[Arg]) -> Iterator[Equation]:
    """Depth first from the results; without recursion, because chains are long."""
    binder = {var.id: i for i, eqn in enumerate(eqns) for var in eqn.outs}
    done: set[int] = set()

    def pending(args: Iterator[Arg]) -> int | None:
        """The equation that binds the next argument, skipping parameters, scalars and what is done."""
        return next(
            (i for a in args if isinstance(a, int) and (i := binder.get(a)) is not None and i not in done), None
        )

    roots = iter(results)
    while (root := pending(roots)) is not None:
        stack = [(root, iter(args_of(eqns[root])))]
        while stack:
            i, args = stack[-1]
            ahead = pending(args)
            if ahead is not None:
                stack.append((ahead, iter(args_of(eqns[ahead]))))
                continue
            stack.pop()
            done.add(i)
            yield eqns[i]


def _region(colours: Colours, scope: Scope, i: int) -> Equation:
    """A region with its ports in canonical order, and its blocks likewise."""
    eqn = scope.block.eqns[i]
    ports, kids, key = scope.ports[i], scope.kids[i], colours.colour
    by_role: dict[str, list[int]] = {}
    for role, k, _ in ports_of(eqn):
        by_role.setdefault(role, []).append(k)
    order = {role: sorted(ks, key=lambda k, role=role: key[ports[role, k]]) for role, ks in by_role.items()}  # type: ignore[misc]
    carry = order.get("carry", [])
    n_carry = len(carry)
    out_order = [*carry, *(n_carry + k for k in order.get("ys", [])), *order.get("outs", [])]
    blocks: dict[str, Block] = {}
    for field, kid in kids.items():
        blocks[field] = _ordered(colours, kid, [0] if field == "cond" else out_order)
    # Arguments that are not carried: by first use in the blocks, now that these have their order.
    used: dict[tuple[str, int], int] = {}
    where = {(field, var): (role, k) for role, k, field, var in inside(eqn)}
    for field, block in blocks.items():
        for var in _first_uses(block):
            if (field, var) in where:
                used.setdefault(where[field, var], len(used))
    for role in ("consts", "xs", "args", "cond_consts", "body_consts"):
        if role in order:
            order[role].sort(key=lambda k, role=role: used.get((role, k), len(used)))  # type: ignore[misc]
    return _permuted(eqn, order, out_order, blocks)


def _permuted(eqn: Equation, order: dict[str, list[int]], outs: list[int], blocks: dict[str, Block]) -> Equation:
    """The region with its ports in that order and these blocks, whose results already are."""
    entering = {role: [arg for r, _, arg in outside(eqn) if r == role] for role in order}
    args = {role: _pick(entering[role], ks) for role, ks in order.items() if role not in ("ys", "outs")}

    def params(field: str, *roles: str) -> Block:
        inner = {(r, k): var for r, k, f, var in inside(eqn) if f == field}
        variables = {var.id: var for var in blocks[field].params}
        return _replace(blocks[field], params=tuple(variables[inner[r, k]] for r in roles for k in order.get(r, ())))

    bound = _pick(eqn.outs, outs)
    match eqn:
        case Scan():
            return _replace(eqn, outs=bound, **args, body=params("body", "consts", "carry", "xs"))
        case While():
            cond, body = params("cond", "cond_consts", "carry"), params("body", "body_consts", "carry")
            return _replace(eqn, outs=bound, **args, cond=cond, body=body)
        case Checkpoint() | Call() | Cond():
            return with_children(_replace(eqn, outs=bound, **args), {f: params(f, "args") for f in blocks})
        case ShardMap(in_specs=ins, out_specs=specs):
            new = _replace(
                eqn, outs=bound, in_specs=_pick(ins, order.get("args", ())), out_specs=_pick(specs, outs), **args
            )
            return with_children(new, {f: params(f, "args") for f in blocks})
        case _:
            raise AssertionError(f"not a region: {eqn}")


def _renamed(block: Block, colours: Colours) -> Block:
    """The block with canonical names in it."""
    names: dict[str, str] = {}

    def meet(name: str) -> None:
        names.setdefault(name, f"h{len(names) or ''}")

    def named(block: Block) -> None:
        for eqn in block.eqns:
            for _, child in children(eqn):
                named(child)
            if isinstance(eqn, Name):
                meet(eqn.name)

    def mentioned(block: Block) -> None:
        for eqn in block.eqns:
            if isinstance(eqn, Checkpoint):
                for _, name in sorted(policy_names(eqn.policy), key=lambda rn: colours.colour[colours.names[rn[1]]]):
                    meet(name)
            for _, child in children(eqn):
                mentioned(child)

    named(block)
    mentioned(block)
    rank = {new: i for i, new in enumerate(names.values())}

    def edit(block: Block) -> Block:
        return _replace(block, eqns=tuple(_with_names(eqn, names, rank.__getitem__) for eqn in block.eqns))

    return map_block(block, edit)


def _with_names(eqn: Equation, names: dict[str, str], rank: Callable[[str], int]) -> Equation:
    match eqn:
        case Name(name=name):
            return _replace(eqn, name=names[name])
        case Call():
            return _replace(eqn, name="inner")
        case Checkpoint(policy=policy) if policy is not None:
            ordered = map_names(rename(policy, names), lambda found: tuple(sorted(found, key=rank)))
            return _replace(eqn, policy=ordered)
        case _:
            return eqn


__all__ = ["canonical"]
