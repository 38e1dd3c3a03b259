"""Is a program well-formed and well-typed? Needed before anything trusts one: a case file may come from anywhere.

Invariants, in the order they are checked:

1. Sizes are bounded (`LIMITS`), strings are strings, and what becomes an identifier in a script looks like one.
2. Program: the mesh has distinct axes of positive size; `inputs` and `result_specs` are empty or as long as the
   inputs and results; specs name mesh axes, each once, and divide the dimensions they shard; `argnums` are sorted,
   distinct positions of inexact inputs, and a gradient has an inexact result on the device to sum.
3. Block: every number is bound once, before its uses, and a block sees its own variables only.
4. Arguments, block parameters, block results and results of every equation agree in number and type:

   ============  ==============================================  ==============================================
   equation      parameters of its blocks                        results of its blocks
   ============  ==============================================  ==============================================
   scan          consts, carry, one slice of each x              carry (types unchanged), one slice of each y
   while         cond: cond_consts, carry                        bool scalar
   \\            body: body_consts, carry                        carry (types unchanged)
   cond          args, in every branch; the index is int32       the results, in every branch
   checkpoint,   args                                            the results
   call
   custom_vjp    primal, fwd: args                               the results; fwd: then residuals
   \\            bwd: residuals, then cotangents                 one cotangent per inexact argument
   custom_jvp    primal: args; jvp: args, then tangents          the results; jvp: then their tangents
   shard_map     args divided among the manual axes              the results, divided likewise
   ============  ==============================================  ==============================================

   Integer, bool and key values have no tangents and no cotangents: custom rules neither take nor give any for them.
5. `Name` and `ShardingConstraint` keep the type, `Transfer` changes its memory only, `Fill` is an array on the
   device whose value is one of its dtype, and `Op` follows the type rule of its primitive where `rules` has one.
6. Array arguments of one `Op` lie in one memory space, and so do its results; JAX refuses anything else
   (an optimization barrier, which computes nothing, takes each value where it is).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import Final

from reducer.errors import ProgramError
from reducer.ir.check_equations import (
    LIMITS,
    check_custom_jvp,
    check_custom_vjp,
    check_op,
    check_policy,
    check_scan,
    check_while,
    local_type,
    need,
    need_text,
    param_types,
    same,
)
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
    Lit,
    Name,
    Op,
    Program,
    Scan,
    ShardingConstraint,
    ShardMap,
    Transfer,
    Var,
    While,
)
from reducer.ir.scalars import parse_scalar
from reducer.ir.text import equation_text
from reducer.ir.types import Type
from reducer.ir.walk import Path, args_of, path_text, types_of
from reducer.words import counted

_INDEX: Final = Type("int32")


def check(program: Program) -> None:
    """Check every invariant of this module's docstring.

    Raises:
        ProgramError: the first one that fails. `where` is the path of the equation (``block.eqns[2]``,
            ``eqns[2].body.eqns[0]``), and the message shows it between its neighbours.
    """
    mesh = _mesh(program)
    checker = _Checker(mesh)
    checker.block(program.block, ())
    _entries(program, mesh)


def _mesh(program: Program) -> dict[str, int]:
    if program.mesh is None:
        return {}
    mesh = dict(program.mesh.axes)
    with _at("mesh"):
        need(len(mesh) == len(program.mesh.axes), "a mesh axis is given twice")
        for name, size in mesh.items():
            need_text(name)
            need(bool(name) and size >= 1, f"not an axis: {name!r} of size {size}")
        need(prod(mesh.values()) <= LIMITS["devices"], f"{prod(mesh.values())} devices are too many")
    return mesh


def _entries(program: Program, mesh: dict[str, int]) -> None:
    """Check what surrounds the block, which is known to be well-formed by now."""
    params = tuple(var.type for var in program.block.params)
    types = types_of(program.block)
    results = tuple(_type(r, types) for r in program.block.results)
    for field, given, wanted in (("inputs", program.inputs, params), ("result_specs", program.result_specs, results)):
        with _at(field):
            need(len(given) in (0, len(wanted)), f"{len(given)} given for {counted(len(wanted), 'values')}")
    specs = [(f"inputs[{i}]", e.spec, t) for i, (e, t) in enumerate(zip(program.inputs, params, strict=False))]
    specs += [(f"result_specs[{i}]", s, t) for i, (s, t) in enumerate(zip(program.result_specs, results, strict=False))]
    for where, spec, type_ in specs:
        if spec is not None:
            with _at(where):
                local_type(type_, spec, mesh, tuple(mesh))
    if program.gradient is None:
        return
    with _at("gradient"):
        argnums = program.gradient.argnums
        need(tuple(sorted(set(argnums))) == argnums != (), f"argnums {argnums} are not rising positions of inputs")
        for n in argnums:
            need(0 <= n < len(params), f"argnum {n}, but there are {counted(len(params), 'inputs')}")
            need(params[n].inexact, f"input {n} is {params[n]}, which has no gradient")
        need(any(t.inexact and not t.on_host for t in results), "no inexact result on the device to sum up")


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Give a `ProgramError` raised inside a place if it has none."""
    try:
        yield
    except ProgramError as error:
        if error.where:
            raise
        raise ProgramError(error.message, where=where, hint=error.hint) from None


def _type(arg: Arg, types: Mapping[int, Type]) -> Type:
    if isinstance(arg, Lit):
        parse_scalar(arg.value, arg.dtype)
        return Type(arg.dtype)
    if arg not in types:
        raise ProgramError(f"%{arg} is not bound here", hint="a block sees its parameters and earlier results only")
    return types[arg]


class _Checker:
    """Checks blocks; remembers the mesh and which of its axes the enclosing shard_maps made manual."""

    def __init__(self, mesh: dict[str, int]) -> None:
        self.mesh = mesh
        self.manual: tuple[str, ...] = ()

    def block(self, block: Block, path: Path) -> tuple[Type, ...]:
        """Check a block and what is in it; its result types."""
        here = path_text(path)
        if len(path) > LIMITS["nesting"]:
            raise ProgramError(f"nested deeper than {LIMITS['nesting']}", where=here)
        types: dict[int, Type] = {}
        with _at(f"{here}.params"):
            self.bind(block.params, types)
        for i, eqn in enumerate(block.eqns):
            try:
                self.equation(eqn, types, path, i)
                self.bind(eqn.outs, types)
            except ProgramError as error:
                if error.where:
                    raise
                raise _placed(error, block, f"{here}.eqns[{i}]", i) from None
        with _at(f"{here}.results"):
            return tuple(_type(r, types) for r in block.results)

    def bind(self, variables: tuple[Var, ...], types: dict[int, Type]) -> None:
        """Bring variables into scope."""
        for var in variables:
            need(var.id >= 0, f"%{var.id} is not a number of a variable")
            need(var.id not in types, f"%{var.id} is bound twice")
            need(var.type.rank <= LIMITS["rank"], f"{var.type} has too many dimensions")
            need(var.type.size <= LIMITS["elements"], f"{var.type} has too many elements")
            types[var.id] = var.type

    def equation(self, eqn: Equation, types: dict[int, Type], path: Path, i: int) -> None:
        """Check one equation whose arguments are in `types`."""
        for key, value in eqn.metadata:
            need_text(key, value)
        args = tuple(_type(a, types) for a in args_of(eqn))
        outs = tuple(v.type for v in eqn.outs)

        def body(field: str, block: Block) -> tuple[Type, ...]:
            return self.block(block, (*path, (i, field)))

        match eqn:
            case Op():
                check_op(eqn, args, outs)
            case Fill():
                need(len(outs) == 1 and not outs[0].on_host, "a fill makes one array on the device", "transfer it")
                parse_scalar(eqn.value, outs[0].dtype)
            case Name():
                need_text(eqn.name)
                same("results of name", outs, args)
            case Transfer():
                need(eqn.memory in ("device", "host"), f"no memory space: {eqn.memory!r}")
                same("results of a transfer", outs, (args[0].in_memory(eqn.memory),))
            case ShardingConstraint():
                free = tuple(a for a in self.mesh if a not in self.manual)
                # Unlike inputs, a constraint need not divide: the compiler pads.
                local_type(args[0], eqn.spec, dict.fromkeys(self.mesh, 1), free)
                same("results of a sharding constraint", outs, args)
            case Scan():
                check_scan(eqn, args, outs, body("body", eqn.body))
            case While():
                check_while(eqn, args, outs, body("cond", eqn.cond), body("body", eqn.body))
            case Cond():
                same("index of cond", args[:1], (_INDEX,))
                need(len(eqn.branches) > 0, "a cond has at least one branch")
                for k, branch in enumerate(eqn.branches):
                    same(f"parameters of branches[{k}]", param_types(branch), args[1:])
                    same(f"results of branches[{k}]", body(f"branches[{k}]", branch), outs)
            case Checkpoint() | Call():
                if isinstance(eqn, Checkpoint):
                    check_policy(eqn.policy)
                else:
                    need_text(eqn.name)
                same("parameters of the body", param_types(eqn.body), args)
                same("results of the body", body("body", eqn.body), outs)
            case CustomVjp():
                blocks = (body("primal", eqn.primal), body("fwd", eqn.fwd), body("bwd", eqn.bwd))
                check_custom_vjp(eqn, args, outs, *blocks)
            case CustomJvp():
                check_custom_jvp(eqn, args, outs, body("primal", eqn.primal), body("jvp", eqn.jvp))
            case ShardMap():
                self.shard_map(eqn, args, outs, (*path, (i, "body")))

    def shard_map(self, eqn: ShardMap, args: tuple[Type, ...], outs: tuple[Type, ...], path: Path) -> None:
        """Check a shard_map: its body has the shapes of one device's parts."""
        need(bool(self.mesh), "shard_map needs a mesh", "set the program's mesh")
        axes = eqn.manual or tuple(a for a in self.mesh if a not in self.manual)
        for axis in axes:
            need(axis in self.mesh, f"unknown mesh axis {axis!r}", f"here: {', '.join(self.mesh)}")
            need(axis not in self.manual, f"mesh axis {axis!r} is manual already")
        need(len(set(axes)) == len(axes), "a manual axis is named twice")
        need(len(eqn.in_specs) == len(args), f"{len(eqn.in_specs)} in_specs for {len(args)} arguments")
        need(len(eqn.out_specs) == len(outs), f"{len(eqn.out_specs)} out_specs for {len(outs)} results")
        local = [local_type(t, s, self.mesh, axes) for t, s in zip(args, eqn.in_specs, strict=True)]
        same("parameters of the body", param_types(eqn.body), local)
        outer, self.manual = self.manual, (*self.manual, *axes)
        results = self.block(eqn.body, path)
        self.manual = outer
        same(
            "results of the body",
            results,
            [local_type(t, s, self.mesh, axes) for t, s in zip(outs, eqn.out_specs, strict=True)],
        )


def _placed(error: ProgramError, block: Block, where: str, i: int) -> ProgramError:
    # The hint goes before the listing, where it is read; so the error carries none of its own.
    lines = [f"{error.message} ({error.hint})" if error.hint else error.message]
    near = range(max(i - 2, 0), min(i + 3, len(block.eqns)))
    lines += [f"  {'>' if k == i else ' '} {equation_text(block.eqns[k]):.300}" for k in near]
    return ProgramError("\n".join(lines), where=where)


__all__ = ["check"]
