"""What each kind of equation asks of its arguments, blocks and results; `check` walks the program and calls these.

Every function raises `ProgramError` without a place, which its caller knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import prod
from typing import Final

import msgspec

from reducer.errors import ProgramError
from reducer.ir import rules
from reducer.ir.equations import Block, CustomJvp, CustomVjp, Enum, Op, Scan, Spec, While
from reducer.ir.policies import Both, OffloadDots, OffloadNames, Plain, Policy, names_of
from reducer.ir.types import Type

#: Nothing real is near these; a file that is was made to hurt.
LIMITS: Final = {
    "elements": 2**40, "rank": 32, "nesting": 64, "length": 2**31 - 1, "unroll": 4096, "devices": 2**16, "text": 4096,
}  # fmt: skip
_PRIMITIVE: Final = re.compile(r"[a-z][a-z0-9_-]*")
_ATTRIBUTE: Final = re.compile(r"[a-z_][a-z0-9_]*")
_ENUM: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*")
_MEMORY_KINDS: Final = ("device", "pinned_host", "unpinned_host")
_BOOL: Final = Type("bool")


def need(condition: bool, message: str, hint: str = "") -> None:
    """Raise a `ProgramError` unless the condition holds."""
    if not condition:
        raise ProgramError(message, hint=hint)


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
    need(len(axes) <= type_.rank, f"a spec of {len(axes)} dimensions for {type_}")
    used = [a for group in axes for a in group]
    need(len(set(used)) == len(used), f"spec {spec} uses a mesh axis twice")
    for axis in used:
        need(axis in allowed, f"unknown mesh axis {axis!r}", f"here: {', '.join(allowed) or 'none'}")
    shape = list(type_.shape)
    for i, group in enumerate(axes):
        parts = prod(mesh[a] for a in group)
        need(shape[i] % parts == 0, f"dimension {i} of {type_} does not divide into {parts} parts")
        shape[i] //= parts
    return type_.with_shape(tuple(shape))


def same(what: str, got: Iterable[Type], want: Iterable[Type]) -> None:
    """Two lists of types have to agree."""
    got, want = tuple(got), tuple(want)
    if got != want:
        raise ProgramError(f"{what} are {' '.join(map(str, got)) or '()'}, not {' '.join(map(str, want)) or '()'}")


def param_types(block: Block) -> tuple[Type, ...]:
    """Types of the parameters of a block."""
    return tuple(v.type for v in block.params)


def need_text(*texts: object) -> None:
    """Names and metadata have to be strings of bounded length."""
    for text in texts:
        need(isinstance(text, str) and len(text) <= LIMITS["text"], f"not a name: {text!r:.80}")


def check_op(eqn: Op, args: tuple[Type, ...], outs: tuple[Type, ...]) -> None:
    """Names fit to stand in a script, attribute values of the closed set, and the type rule where there is one."""
    need_text(eqn.primitive)
    need(_PRIMITIVE.fullmatch(eqn.primitive) is not None, f"not a primitive's name: {eqn.primitive!r}")
    keys = [k for k, _ in eqn.attributes]
    need(len(set(keys)) == len(keys), "an attribute is given twice")
    for key, value in eqn.attributes:
        need_text(key)
        need(_ATTRIBUTE.fullmatch(key) is not None, f"not an attribute's name: {key!r}")
        _attribute(value, 0)
    if eqn.primitive in rules.RULES:
        try:
            rules.check_op(eqn, args)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            # Rules take attributes as a jaxpr has them; those of an untrusted file can have any form.
            raise ProgramError(f"attributes of {eqn.primitive} have the wrong form: {error}") from None
    else:
        rules.memory_of(args)
    one_space = eqn.primitive in rules.ANY_MEMORY or len({t.memory for t in outs}) <= 1
    need(one_space, "results lie in different memory spaces")


def _attribute(value: object, depth: int) -> None:
    match value:
        case None | bool() | int():
            return
        case str():
            need_text(value)
        case Enum(name=name):
            need(_ENUM.fullmatch(name) is not None, f"not an enum member: {name!r}", "written Precision.HIGHEST")
        case tuple():
            need(depth < 8, "an attribute is nested too deep")
            for item in value:
                _attribute(item, depth + 1)
        case msgspec.Struct():
            for field in value.__struct_fields__:
                numbers = getattr(value, field)
                need(all(type(n) is int for n in numbers), f"{field} are integers, not {numbers}")
        case _:
            raise ProgramError(f"not an attribute value: {value!r}", hint="attributes hold integers, strings, tuples")


def check_scan(eqn: Scan, args: tuple[Type, ...], outs: tuple[Type, ...], results: tuple[Type, ...]) -> None:
    """`results`: what the body returns."""
    need(0 <= eqn.length <= LIMITS["length"], f"a scan of length {eqn.length}")
    need(1 <= eqn.unroll <= LIMITS["unroll"], f"a scan unrolled by {eqn.unroll}")
    n, m = len(eqn.consts), len(eqn.consts) + len(eqn.carry)
    for x in args[m:]:
        fits = x.rank > 0 and x.shape[0] == eqn.length
        need(fits, f"x {x} has no leading dimension of size {eqn.length}, the length of the scan")
    same("parameters of the body", param_types(eqn.body), args[:m] + tuple(x.element for x in args[m:]))
    carry = args[n:m]
    same("carries the body returns", results[: len(carry)], carry)
    same("results of scan", outs, carry + tuple(y.stacked(eqn.length) for y in results[len(carry) :]))


def check_while(
    eqn: While, args: tuple[Type, ...], outs: tuple[Type, ...], test: tuple[Type, ...], results: tuple[Type, ...]
) -> None:
    """`test`: what the condition returns; `results`: what the body returns."""
    n, m = len(eqn.cond_consts), len(eqn.cond_consts) + len(eqn.body_consts)
    carry = args[m:]
    same("parameters of cond", param_types(eqn.cond), args[:n] + carry)
    same("results of cond", test, (_BOOL,))
    same("parameters of the body", param_types(eqn.body), args[n:m] + carry)
    same("carries the body returns", results, carry)
    same("results of while", outs, carry)


def _inexact(types: Iterable[Type]) -> tuple[Type, ...]:
    return tuple(t for t in types if t.inexact)


def check_custom_vjp(
    eqn: CustomVjp,
    args: tuple[Type, ...],
    outs: tuple[Type, ...],
    primal: tuple[Type, ...],
    fwd: tuple[Type, ...],
    bwd: tuple[Type, ...],
) -> None:
    """`primal`, `fwd`, `bwd`: what these blocks return."""
    n = len(outs)
    need(
        0 <= eqn.n_residuals == len(fwd) - n,
        f"fwd gives {len(fwd)} values: {n} results and {eqn.n_residuals} residuals",
    )
    same("parameters of primal", param_types(eqn.primal), args)
    same("results of primal", primal, outs)
    same("parameters of fwd", param_types(eqn.fwd), args)
    same("results of fwd", fwd[:n], outs)
    same("parameters of bwd (residuals, then cotangents)", param_types(eqn.bwd), fwd[n:] + _inexact(outs))
    same("results of bwd (one cotangent per inexact argument)", bwd, _inexact(args))


def check_custom_jvp(
    eqn: CustomJvp, args: tuple[Type, ...], outs: tuple[Type, ...], primal: tuple[Type, ...], jvp: tuple[Type, ...]
) -> None:
    """`primal`, `jvp`: what these blocks return."""
    same("parameters of primal", param_types(eqn.primal), args)
    same("results of primal", primal, outs)
    same("parameters of jvp (arguments, then tangents)", param_types(eqn.jvp), args + _inexact(args))
    same("results of jvp (results, then tangents)", jvp, outs + _inexact(outs))


def check_policy(policy: Policy | None) -> None:
    """Names are strings and have one fate each; memory kinds exist."""
    need_text(*names_of(policy))
    match policy:
        case OffloadNames(offloaded=offloaded, saved=saved):
            both = sorted(set(offloaded) & set(saved))
            need(not both, f"names are both offloaded and saved: {', '.join(both)}")
        case Both(first=first, second=second):
            check_policy(first)
            check_policy(second)
        case Plain(name=name):
            need_text(name)
        case _:
            pass
    if isinstance(policy, OffloadNames | OffloadDots):
        for kind in (policy.src, policy.dst):
            need(kind in _MEMORY_KINDS, f"no memory kind: {kind!r}", f"known: {', '.join(_MEMORY_KINDS)}")
