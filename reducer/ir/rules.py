"""Type rules of first-order primitives: what an equation's results must be, given its arguments.

One table, `RULES`, filled by `elementwise_rules` and `shape_rules`. Attributes are the parameters a jaxpr shows,
without those that merely repeat the result's type (`shape`, `new_sizes`, `new_dtype`, ...) and without sharding.
Where the result's type cannot be derived it is the parameter, so a rule also gets the recorded types and checks them.

Rules know shapes and dtypes. Memory spaces follow one rule for all: every array argument lies in one space, and so
do the results (`ANY_MEMORY` are the exceptions).
"""

from __future__ import annotations

from typing import Final

from reducer.errors import ProgramError
from reducer.ir import elementwise_rules, shape_rules
from reducer.ir.equations import Op
from reducer.ir.rule_table import RULES, Attributes
from reducer.ir.types import Memory, Type

#: Primitives that compute nothing, so each value stays where it is.
ANY_MEMORY: Final = frozenset(("optimization_barrier",))
#: The primitives that leave a host scalar on the host; every other one gives a device scalar (as JAX traces them).
_KEEP_HOST_SCALARS: Final = frozenset(("broadcast_in_dim", "copy", "stop_gradient"))


def infer(
    primitive: str, args: tuple[Type, ...], attributes: Attributes, recorded: tuple[Type, ...] = ()
) -> tuple[Type, ...]:
    """Result types of a primitive.

    Args:
        primitive: a key of `RULES`.
        args: argument types; scalars have shape ``()``.
        attributes: by name.
        recorded: result types as recorded; needed by primitives whose size or dtype is a parameter.

    Raises:
        ProgramError: unknown primitive, wrong arity, shapes or dtypes that do not fit, or mixed memory spaces.
    """
    rule = RULES.get(primitive)
    if rule is None:
        raise ProgramError(f"unknown primitive {primitive!r}", hint="reducer/ir/rules.py says where the known ones are")
    outs = rule(args, attributes, recorded)
    if primitive in ANY_MEMORY:
        return outs
    memory = memory_of(args)
    if not any(a.shape for a in args) and primitive not in _KEEP_HOST_SCALARS:
        memory = "device"
    return tuple(out.in_memory(memory) for out in outs)


def check_op(op: Op, args: tuple[Type, ...]) -> None:
    """Compare an equation's recorded result types with the rule.

    Raises:
        ProgramError: they differ, or the rule refuses the arguments.
    """
    recorded = tuple(var.type for var in op.outs)
    expected = infer(op.primitive, args, dict(op.attributes), recorded)
    if expected != recorded:
        want, got = " ".join(map(str, expected)), " ".join(map(str, recorded))
        raise ProgramError(f"{op.primitive} gives {want}, but {got} is recorded")


def memory_of(args: tuple[Type, ...]) -> Memory:
    """The one memory space of the array arguments (scalars go along with anything; none at all: the device).

    Raises:
        ProgramError: host and device arrays are mixed, which JAX rejects while tracing.
    """
    spaces = {a.memory for a in args if a.shape} or {a.memory for a in args}
    if len(spaces) > 1 or (spaces == {"device"} and any(a.on_host for a in args)):
        raise ProgramError("host and device values are mixed in one operation", hint="transfer one of them first")
    return spaces.pop() if spaces else "device"


__all__ = ["ANY_MEMORY", "RULES", "check_op", "elementwise_rules", "infer", "memory_of", "shape_rules"]
