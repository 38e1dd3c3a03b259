"""Larger programs made from a failing one, for reductions to undo: seeded, so that a test names a number."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec

from reducer.errors import ProgramError
from reducer.ir.check import check
from reducer.ir.dims import dimensions, resized
from reducer.ir.edit import rewrite
from reducer.ir.equations import Arg, Block, Call, Checkpoint, Equation, Grad, Name, Op, Program, Scan, Var
from reducer.ir.walk import Path, args_of, bindings, blocks, equations, fresh, substitute, types_of
from reducer.ir.whole import with_dtype, with_names

_replace = msgspec.structs.replace
Edit = Callable[[Program, Random], Program]


def decorate(program: Program, seed: int, edits: int = 6) -> Program:
    """The program after so many random edits that make it larger or stranger, most of which the failure survives."""
    random = Random(seed)
    done = 0
    for _ in range(20 * edits):
        edit = random.choice(EDITS)
        try:
            larger = edit(program, random)
            check(larger)
        except (ProgramError, IndexError):
            continue
        if larger != program:
            program, done = larger, done + 1
            if done == edits:
                break
    return program


def _random_block(program: Program, random: Random) -> tuple[Path, Block]:
    place = random.choice(list(blocks(program)))
    return place.path, place.block


def insert_operation(program: Program, random: Random) -> Program:
    """A function applied to some value, in the place of the value."""
    path, block = _random_block(program, random)
    return rewrite(program, {path: lambda _: _applied(block, random)})


def _applied(block: Block, random: Random) -> Block:
    var = random.choice([v for v in bindings(block) if v.type.inexact and not v.type.on_host])
    made = Var(next(fresh(block)), var.type)
    primitive = random.choice(["tanh", "exp", "logistic", "neg", "mul", "add"])
    args: tuple[Arg, ...] = (var.id,) * (2 if primitive in ("mul", "add") else 1)
    new = Op(outs=(made,), primitive=primitive, args=args)
    later = substitute(block, {var.id: made.id})
    at = next((i + 1 for i, eqn in enumerate(block.eqns) if var in eqn.outs), 0)
    return Block(block.params, (*block.eqns[:at], new, *later.eqns[at:]), later.results)


def name_a_value(program: Program, random: Random) -> Program:
    """A name that no policy offloads, on some value; one policy may save it."""
    path, block = _random_block(program, random)
    var = random.choice([v for v in bindings(block) if v.type.inexact and not v.type.on_host])
    made = Var(next(fresh(block)), var.type)
    at = next((i + 1 for i, eqn in enumerate(block.eqns) if var in eqn.outs), 0)
    later = substitute(block, {var.id: made.id})
    new = Name(outs=(made,), arg=var.id, name="other")
    edited = Block(block.params, (*block.eqns[:at], new, *later.eqns[at:]), later.results)
    return rewrite(program, {path: lambda _: edited})


def wrap_in_a_call(program: Program, random: Random) -> Program:
    """One equation moved into a nested jit."""
    path, i, eqn = random.choice(list(equations(program)))
    used = tuple(dict.fromkeys(a for a in args_of(eqn) if isinstance(a, int)))
    block = next(p.block for p in blocks(program) if p.path == path)
    types = types_of(block)
    body = Block(tuple(Var(a, types[a]) for a in used), (eqn,), tuple(v.id for v in eqn.outs))
    call = Call(outs=eqn.outs, args=used, body=body, name="layer")
    edited = Block(block.params, (*block.eqns[:i], call, *block.eqns[i + 1 :]), block.results)
    return rewrite(program, {path: lambda _: edited})


def add_a_carry(program: Program, random: Random) -> Program:
    """One more carry in some scan: it is computed on, added to another result, and read afterwards."""
    scans = [(p, i, e) for p, i, e in equations(program) if isinstance(e, Scan) and e.carry]
    path, i, scan = random.choice(scans)
    k = random.randrange(len(scan.carry))
    block = next(p.block for p in blocks(program) if p.path == path)
    n = len(scan.consts) + len(scan.carry)
    kind = scan.outs[k].type
    ids = fresh(scan.body)
    param, update = Var(next(ids), kind), Var(next(ids), kind)
    body = Block(
        (*scan.body.params[:n], param, *scan.body.params[n:]),
        (*scan.body.eqns, Op(outs=(update,), primitive="add", args=(param.id, scan.body.params[n - 1].id))),
        (*scan.body.results[: len(scan.carry)], update.id, *scan.body.results[len(scan.carry) :]),
    )
    outer = fresh(block)
    out, total = Var(next(outer), kind), Var(next(outer), kind)
    m = len(scan.carry)
    new = _replace(scan, carry=(*scan.carry, scan.carry[k]), body=body, outs=(*scan.outs[:m], out, *scan.outs[m:]))
    add: Equation = Op(outs=(total,), primitive="add", args=(scan.outs[k].id, out.id))
    later = substitute(block, {scan.outs[k].id: total.id})
    edited = Block(block.params, (*block.eqns[:i], new, add, *later.eqns[i + 1 :]), later.results)
    return rewrite(program, {path: lambda _: edited})


def add_a_layer(program: Program, random: Random) -> Program:
    """A plain loop, with or without a checkpoint, over some value, in the place of the value."""
    path, block = _random_block(program, random)
    var = random.choice([v for v in bindings(block) if v.type.inexact and not v.type.on_host])
    inner = Block((Var(0, var.type),), (Op(outs=(Var(1, var.type),), primitive="cos", args=(0,)),), (1,))
    if random.random() < 0.5:
        region: Equation = Checkpoint(outs=(Var(1, var.type),), args=(0,), body=inner)
        inner = Block((Var(0, var.type),), (region,), (1,))
    made = Var(next(fresh(block)), var.type)
    scan = Scan(outs=(made,), length=random.randint(2, 4), body=inner, carry=(var.id,))
    at = next((i + 1 for i, eqn in enumerate(block.eqns) if var in eqn.outs), 0)
    later = substitute(block, {var.id: made.id})
    edited = Block(block.params, (*block.eqns[:at], scan, *later.eqns[at:]), later.results)
    return rewrite(program, {path: lambda _: edited})


def stack_a_value(program: Program, random: Random) -> Program:
    """One value of a loop's body stacked, and its last element a result of the program's block or thrown away."""
    scans = [(p, i, e) for p, i, e in equations(program) if isinstance(e, Scan) and not p]
    path, i, scan = random.choice(scans)
    var = random.choice([v for v in bindings(scan.body) if v.type.inexact and not v.type.on_host])
    block = program.block
    out = Var(next(fresh(block)), var.type.stacked(scan.length))
    new = _replace(scan, body=_replace(scan.body, results=(*scan.body.results, var.id)), outs=(*scan.outs, out))
    eqns = (*block.eqns[:i], new, *block.eqns[i + 1 :])
    if program.result_specs:
        raise ProgramError("results have specs")
    return rewrite(program, {path: lambda _: Block(block.params, eqns, (*block.results, out.id))})


def resize(program: Program, random: Random) -> Program:
    """One dimension larger: twice, or one more."""
    free = [d for d in dimensions(program) if not d.pinned]
    d = random.choice(free)
    return resized(program, [(d, random.choice([2 * d.size, d.size + 1, d.size + 2]))])


def other_dtype(program: Program, random: Random) -> Program:
    """Everything of float32 in another dtype."""
    return with_dtype(program, frozenset({"float32"}), random.choice(["bfloat16", "bfloat16", "float16"]))


def more_gradient(program: Program, random: Random) -> Program:
    """With respect to every inexact input, with the value."""
    del random
    if program.gradient is None:
        raise ProgramError("not differentiated")
    inexact = tuple(n for n, v in enumerate(program.block.params) if v.type.inexact)
    return _replace(program, gradient=Grad(inexact, with_value=True))


def other_flags(program: Program, random: Random) -> Program:
    """A loop that runs backwards or is unrolled, a checkpoint that lets the compiler merge what is equal."""
    path, i, eqn = random.choice([e for e in equations(program) if isinstance(e[2], Scan | Checkpoint)])
    if isinstance(eqn, Scan):
        new: Equation = random.choice([_replace(eqn, reverse=not eqn.reverse), _replace(eqn, unroll=2)])
    else:
        new = _replace(eqn, prevent_cse=not eqn.prevent_cse)
    block = next(p.block for p in blocks(program) if p.path == path)
    return rewrite(
        program, {path: lambda _: Block(block.params, (*block.eqns[:i], new, *block.eqns[i + 1 :]), block.results)}
    )


def other_names(program: Program, random: Random) -> Program:
    """Other names."""
    names = {eqn.name for _, _, eqn in equations(program) if isinstance(eqn, Name)}
    return with_names(program, {name: f"{random.choice('abcxyz')}_{k}" for k, name in enumerate(sorted(names))})


def swap_arguments(program: Program, random: Random) -> Program:
    """Inputs in another order."""
    order = list(range(len(program.block.params)))
    random.shuffle(order)
    if program.inputs:
        raise ProgramError("inputs have entries")
    grad = program.gradient
    if grad is not None:
        grad = Grad(tuple(sorted(order.index(n) for n in grad.argnums)), grad.with_value)
    params = tuple(program.block.params[k] for k in order)
    return _replace(program, block=_replace(program.block, params=params), gradient=grad)


EDITS: tuple[Edit, ...] = (
    insert_operation,
    insert_operation,
    name_a_value,
    wrap_in_a_call,
    add_a_carry,
    add_a_layer,
    stack_a_value,
    resize,
    other_dtype,
    more_gradient,
    other_flags,
    other_names,
    swap_arguments,
)
