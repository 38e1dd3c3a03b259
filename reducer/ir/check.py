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
6. Array arguments of one `Op` lie in one memory space, and so do its results; JAX refuses anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, Final

import msgspec

from reducer.errors import ProgramError
from reducer.ir import rules
from reducer.ir.equations import (
    Arg,
    Block,
    Call,
    Checkpoint,
    Cond,
    CustomJvp,
    CustomVjp,
    Enum,
    Equation,
    Fill,
    Lit,
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
from reducer.ir.policies import Both, OffloadDots, OffloadNames, Plain, Policy, names_of
from reducer.ir.scalars import parse_scalar
from reducer.ir.text import equation_text
from reducer.ir.types import Type
from reducer.ir.walk import Path, args_of, path_text

#: Nothing real is near these; a file that is was made to hurt.
LIMITS: Final = {
    "elements": 2**40, "rank": 32, "nesting": 64, "length": 2**31 - 1, "unroll": 4096, "devices": 2**16, "text": 4096,
}  # fmt: skip
_PRIMITIVE: Final = re.compile(r"[a-z][a-z0-9_-]*")
_ATTRIBUTE: Final = re.compile(r"[a-z_][a-z0-9_]*")
_ENUM: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*")
_MEMORY_KINDS: Final = ("device", "pinned_host", "unpinned_host")
_BOOL: Final = Type("bool")
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


def _need(condition: bool, message: str, hint: str = "") -> None:
    if not condition:
        raise ProgramError(message, hint=hint)


def _mesh(program: Program) -> dict[str, int]:
    if program.mesh is None:
        return {}
    mesh = dict(program.mesh.axes)
    where = "mesh"
    if len(mesh) != len(program.mesh.axes):
        raise ProgramError("a mesh axis is given twice", where=where)
    for name, size in program.mesh.axes:
        with_place(where, lambda name=name: _text(name))
        if not name or size < 1:
            raise ProgramError(f"not an axis: {name!r} of size {size}", where=where)
    if prod(mesh.values()) > LIMITS["devices"]:
        raise ProgramError(f"{prod(mesh.values())} devices are too many", where=where)
    return mesh


def _entries(program: Program, mesh: dict[str, int]) -> None:
    params, results = program.block.params, program.block.results
    types = {v.id: v.type for v in params} | {v.id: v.type for e in program.block.eqns for v in e.outs}
    outs = tuple(_type(r, types) for r in results)
    if len(program.inputs) not in (0, len(params)):
        raise ProgramError(f"{len(program.inputs)} entries for {len(params)} inputs", where="inputs")
    if len(program.result_specs) not in (0, len(results)):
        raise ProgramError(f"{len(program.result_specs)} specs for {len(results)} results", where="result_specs")
    entries = [(f"inputs[{i}]", e.spec, v.type) for i, (e, v) in enumerate(zip(program.inputs, params, strict=False))]
    entries += [(f"result_specs[{i}]", s, t) for i, (s, t) in enumerate(zip(program.result_specs, outs, strict=False))]
    for where, spec, type_ in entries:
        if spec is not None:
            with_place(where, lambda spec=spec, type_=type_: local_type(type_, spec, mesh, tuple(mesh)))
    grad = program.gradient
    if grad is None:
        return
    ok = bool(grad.argnums) and tuple(sorted(set(grad.argnums))) == grad.argnums
    if not ok or not all(0 <= n < len(params) for n in grad.argnums):
        raise ProgramError(f"argnums {grad.argnums} are not rising positions of inputs", where="gradient")
    for n in grad.argnums:
        if not params[n].type.inexact:
            raise ProgramError(f"input {n} is {params[n].type}, which has no gradient", where="gradient")
    if not any(t.inexact and not t.on_host for t in outs):
        raise ProgramError("no inexact result on the device to sum up", where="gradient")


def with_place(where: str, action: Any) -> None:
    """Run `action`; a `ProgramError` it raises without a place gets this one."""
    try:
        action()
    except ProgramError as error:
        if error.where:
            raise
        raise ProgramError(error.message, where=where, hint=error.hint) from None


def spec_axes(spec: Spec) -> tuple[tuple[str, ...], ...]:
    """The mesh axes of each dimension of a spec."""
    return tuple(() if a is None else (a,) if isinstance(a, str) else tuple(a) for a in spec)


def local_type(type_: Type, spec: Spec, mesh: Mapping[str, int], allowed: tuple[str, ...]) -> Type:
    """The type of one device's part of a value under a spec.

    Raises:
        ProgramError: the spec is longer than the rank, names an axis that is not `allowed` or names one twice, or a
            dimension does not divide.
    """
    axes = spec_axes(spec)
    _need(len(axes) <= type_.rank, f"a spec of {len(axes)} dimensions for {type_}")
    used = [a for group in axes for a in group]
    _need(len(set(used)) == len(used), f"spec {spec} uses a mesh axis twice")
    for axis in used:
        _need(axis in allowed, f"unknown mesh axis {axis!r}", f"here: {', '.join(allowed) or 'none'}")
    shape = list(type_.shape)
    for i, group in enumerate(axes):
        parts = prod(mesh[a] for a in group)
        _need(shape[i] % parts == 0, f"dimension {i} of {type_} does not divide into {parts} parts")
        shape[i] //= parts
    return type_.with_shape(tuple(shape))


def _type(arg: Arg, types: Mapping[int, Type]) -> Type:
    if isinstance(arg, Lit):
        parse_scalar(arg.value, arg.dtype)
        return Type(arg.dtype)
    if arg not in types:
        raise ProgramError(f"%{arg} is not bound here", hint="a block sees its parameters and earlier results only")
    return types[arg]


def _same(what: str, got: Iterable[Type], want: Iterable[Type]) -> None:
    got, want = tuple(got), tuple(want)
    if got != want:
        raise ProgramError(f"{what} are {' '.join(map(str, got)) or '()'}, not {' '.join(map(str, want)) or '()'}")


def _params(block: Block) -> tuple[Type, ...]:
    return tuple(v.type for v in block.params)


def _text(*texts: object) -> None:
    for text in texts:
        _need(isinstance(text, str) and len(text) <= LIMITS["text"], f"not a name: {text!r:.80}")


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
        with_place(f"{here}.params", lambda: self.bind(block.params, types))
        for i, eqn in enumerate(block.eqns):
            try:
                self.equation(eqn, types, path, i)
                self.bind(eqn.outs, types)
            except ProgramError as error:
                if error.where:
                    raise
                raise _placed(error, block, f"{here}.eqns[{i}]", i) from None
        out: list[Type] = []
        with_place(f"{here}.results", lambda: out.extend(_type(r, types) for r in block.results))
        return tuple(out)

    def bind(self, variables: tuple[Var, ...], types: dict[int, Type]) -> None:
        """Bring variables into scope."""
        for var in variables:
            _need(var.id >= 0, f"%{var.id} is not a number of a variable")
            _need(var.id not in types, f"%{var.id} is bound twice")
            _need(var.type.rank <= LIMITS["rank"], f"{var.type} has too many dimensions")
            _need(var.type.size <= LIMITS["elements"], f"{var.type} has too many elements")
            types[var.id] = var.type

    def equation(self, eqn: Equation, types: dict[int, Type], path: Path, i: int) -> None:
        """Check one equation whose arguments are in `types`."""
        for key, value in eqn.metadata:
            _text(key, value)
        args = tuple(_type(a, types) for a in args_of(eqn))
        outs = tuple(v.type for v in eqn.outs)

        def body(field: str, block: Block) -> tuple[Type, ...]:
            return self.block(block, (*path, (i, field)))

        match eqn:
            case Op():
                _op(eqn, args, outs)
            case Fill():
                _need(len(outs) == 1 and not outs[0].on_host, "a fill makes one array on the device", "transfer it")
                parse_scalar(eqn.value, outs[0].dtype)
            case Name():
                _text(eqn.name)
                _same("results of name", outs, args)
            case Transfer():
                _need(eqn.memory in ("device", "host"), f"no memory space: {eqn.memory!r}")
                _same("results of a transfer", outs, (args[0].in_memory(eqn.memory),))
            case ShardingConstraint():
                free = tuple(a for a in self.mesh if a not in self.manual)
                # Unlike inputs, a constraint need not divide: the compiler pads.
                local_type(args[0], eqn.spec, dict.fromkeys(self.mesh, 1), free)
                _same("results of a sharding constraint", outs, args)
            case Scan():
                _scan(eqn, args, outs, body("body", eqn.body))
            case While():
                _while(eqn, args, outs, body("cond", eqn.cond), body("body", eqn.body))
            case Cond():
                _same("index of cond", args[:1], (_INDEX,))
                _need(len(eqn.branches) > 0, "a cond has at least one branch")
                for k, branch in enumerate(eqn.branches):
                    _same(f"parameters of branches[{k}]", _params(branch), args[1:])
                    _same(f"results of branches[{k}]", body(f"branches[{k}]", branch), outs)
            case Checkpoint() | Call():
                if isinstance(eqn, Checkpoint):
                    _policy(eqn.policy)
                else:
                    _text(eqn.name)
                _same("parameters of the body", _params(eqn.body), args)
                _same("results of the body", body("body", eqn.body), outs)
            case CustomVjp():
                blocks = (body("primal", eqn.primal), body("fwd", eqn.fwd), body("bwd", eqn.bwd))
                _custom_vjp(eqn, args, outs, *blocks)
            case CustomJvp():
                _custom_jvp(eqn, args, outs, body("primal", eqn.primal), body("jvp", eqn.jvp))
            case ShardMap():
                self.shard_map(eqn, args, outs, (*path, (i, "body")))

    def shard_map(self, eqn: ShardMap, args: tuple[Type, ...], outs: tuple[Type, ...], path: Path) -> None:
        """Check a shard_map: its body has the shapes of one device's parts."""
        _need(bool(self.mesh), "shard_map needs a mesh", "set the program's mesh")
        axes = eqn.manual or tuple(a for a in self.mesh if a not in self.manual)
        for axis in axes:
            _need(axis in self.mesh, f"unknown mesh axis {axis!r}", f"here: {', '.join(self.mesh)}")
            _need(axis not in self.manual, f"mesh axis {axis!r} is manual already")
        _need(len(set(axes)) == len(axes), "a manual axis is named twice")
        _need(len(eqn.in_specs) == len(args), f"{len(eqn.in_specs)} in_specs for {len(args)} arguments")
        _need(len(eqn.out_specs) == len(outs), f"{len(eqn.out_specs)} out_specs for {len(outs)} results")
        local = [local_type(t, s, self.mesh, axes) for t, s in zip(args, eqn.in_specs, strict=True)]
        _same("parameters of the body", _params(eqn.body), local)
        outer, self.manual = self.manual, (*self.manual, *axes)
        results = self.block(eqn.body, path)
        self.manual = outer
        _same(
            "results of the body",
            results,
            [local_type(t, s, self.mesh, axes) for t, s in zip(outs, eqn.out_specs, strict=True)],
        )


def _placed(error: ProgramError, block: Block, where: str, i: int) -> ProgramError:
    # The hint goes before the listing, where it is read; so the error carries none of its own.
    lines = [f"{error.message} ({error.hint})" if error.hint else error.message]
    near = range(max(i - 2, 0), min(i + 3, len(block.eqns)))
    lines += [f"  {'>' if k == i else ' '} {equation_text(block.eqns[k])}" for k in near]
    return ProgramError("\n".join(lines), where=where)


def _op(eqn: Op, args: tuple[Type, ...], outs: tuple[Type, ...]) -> None:
    _text(eqn.primitive)
    _need(_PRIMITIVE.fullmatch(eqn.primitive) is not None, f"not a primitive's name: {eqn.primitive!r}")
    keys = [k for k, _ in eqn.attributes]
    _need(len(set(keys)) == len(keys), "an attribute is given twice")
    for key, value in eqn.attributes:
        _text(key)
        _need(_ATTRIBUTE.fullmatch(key) is not None, f"not an attribute's name: {key!r}")
        _attribute(value, 0)
    if eqn.primitive in rules.RULES:
        rules.check_op(eqn, args)
    else:
        rules.memory_of(args)
    _need(len({t.memory for t in outs}) <= 1, "results lie in different memory spaces")


def _attribute(value: object, depth: int) -> None:
    match value:
        case None | bool() | int():
            return
        case str():
            _text(value)
        case Enum(name=name):
            _need(_ENUM.fullmatch(name) is not None, f"not an enum member: {name!r}", "written Precision.HIGHEST")
        case tuple():
            _need(depth < 8, "an attribute is nested too deep")
            for item in value:
                _attribute(item, depth + 1)
        case msgspec.Struct():
            for field in value.__struct_fields__:
                numbers = getattr(value, field)
                _need(all(type(n) is int for n in numbers), f"{field} are integers, not {numbers}")
        case _:
            raise ProgramError(f"not an attribute value: {value!r}", hint="attributes hold integers, strings, tuples")


def _scan(eqn: Scan, args: tuple[Type, ...], outs: tuple[Type, ...], results: tuple[Type, ...]) -> None:
    _need(0 <= eqn.length <= LIMITS["length"], f"a scan of length {eqn.length}")
    _need(1 <= eqn.unroll <= LIMITS["unroll"], f"a scan unrolled by {eqn.unroll}")
    n, m = len(eqn.consts), len(eqn.consts) + len(eqn.carry)
    for x in args[m:]:
        fits = x.rank > 0 and x.shape[0] == eqn.length
        _need(fits, f"x {x} has no leading dimension of size {eqn.length}, the length of the scan")
    _same("parameters of the body", _params(eqn.body), args[:m] + tuple(x.element for x in args[m:]))
    carry = args[n:m]
    _same("carries the body returns", results[: len(carry)], carry)
    _same("results of scan", outs, carry + tuple(y.stacked(eqn.length) for y in results[len(carry) :]))


def _while(
    eqn: While, args: tuple[Type, ...], outs: tuple[Type, ...], test: tuple[Type, ...], results: tuple[Type, ...]
) -> None:
    n, m = len(eqn.cond_consts), len(eqn.cond_consts) + len(eqn.body_consts)
    carry = args[m:]
    _same("parameters of cond", _params(eqn.cond), args[:n] + carry)
    _same("results of cond", test, (_BOOL,))
    _same("parameters of the body", _params(eqn.body), args[n:m] + carry)
    _same("carries the body returns", results, carry)
    _same("results of while", outs, carry)


def _inexact(types: Iterable[Type]) -> tuple[Type, ...]:
    return tuple(t for t in types if t.inexact)


def _custom_vjp(
    eqn: CustomVjp,
    args: tuple[Type, ...],
    outs: tuple[Type, ...],
    primal: tuple[Type, ...],
    fwd: tuple[Type, ...],
    bwd: tuple[Type, ...],
) -> None:
    n = len(outs)
    _need(
        0 <= eqn.n_residuals == len(fwd) - n,
        f"fwd gives {len(fwd)} values: {n} results and {eqn.n_residuals} residuals",
    )
    _same("parameters of primal", _params(eqn.primal), args)
    _same("results of primal", primal, outs)
    _same("parameters of fwd", _params(eqn.fwd), args)
    _same("results of fwd", fwd[:n], outs)
    _same("parameters of bwd (residuals, then cotangents)", _params(eqn.bwd), fwd[n:] + _inexact(outs))
    _same("results of bwd (one cotangent per inexact argument)", bwd, _inexact(args))


def _custom_jvp(
    eqn: CustomJvp, args: tuple[Type, ...], outs: tuple[Type, ...], primal: tuple[Type, ...], jvp: tuple[Type, ...]
) -> None:
    _same("parameters of primal", _params(eqn.primal), args)
    _same("results of primal", primal, outs)
    _same("parameters of jvp (arguments, then tangents)", _params(eqn.jvp), args + _inexact(args))
    _same("results of jvp (results, then tangents)", jvp, outs + _inexact(outs))


def _policy(policy: Policy | None) -> None:
    _text(*names_of(policy))
    match policy:
        case OffloadNames(offloaded=offloaded, saved=saved):
            both = sorted(set(offloaded) & set(saved))
            _need(not both, f"names are both offloaded and saved: {', '.join(both)}")
        case Both(first=first, second=second):
            _policy(first)
            _policy(second)
        case Plain(name=name):
            _text(name)
        case _:
            pass
    if isinstance(policy, OffloadNames | OffloadDots):
        for kind in (policy.src, policy.dst):
            _need(kind in _MEMORY_KINDS, f"no memory kind: {kind!r}", f"known: {', '.join(_MEMORY_KINDS)}")


__all__ = ["LIMITS", "check", "local_type", "spec_axes"]
