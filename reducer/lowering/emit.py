"""A program as the text of a Python module that uses public JAX functions only.

The text is what the worker traces and what a user gets, and it reads the same on every JAX version we support. The
module defines

- ``program`` (without a gradient) or ``loss`` (with one: the f32 sum of all inexact results on the device),
- ``fn``, the function that is compiled,
- ``lower(devices)``, which lowers it for abstract inputs on the given devices and gives a `jax.stages.Lowered`.
"""

from __future__ import annotations

import re

import msgspec

from reducer.errors import ProgramError
from reducer.ir.equations import Checkpoint, Lit, Program
from reducer.ir.policies import Policy
from reducer.ir.types import Type
from reducer.ir.walk import args_of, bindings, blocks, equations
from reducer.lowering import entry, names, texts
from reducer.lowering.blocks import Context, Writer
from reducer.lowering.fold import WIDTH, fold
from reducer.lowering.policies import policy_text
from reducer.lowering.texts import ATOM, Expr, returned

_CHECK = '''\
def check(where, recorded, value):
    """Refuse a value whose traced type is not the recorded one."""
    aval = jax.typeof(value)
    host = "<host>" if aval.memory_space == jax.memory.Space.Host else ""
    traced = f"{aval.dtype}[{','.join(map(str, aval.shape))}]{host}"
    if traced != recorded:
        raise TypeError(f"{where}: {recorded} is recorded, {traced} was traced")
'''

_VARYING = '''\
def varying(value, axes):
    """`lax.pcast` over those of the mesh axes over which a value does not vary yet."""
    axes = tuple(axis for axis in axes if axis not in jax.typeof(value).manual_axis_type.varying)
    return lax.pcast(value, axes, to="varying") if axes else value
'''

#: Imports by the names they bind, in the order they are written.
_IMPORTS = (
    ("jax", "import jax"),
    ("jnp", "import jax.numpy as jnp"),
    ("np", "import numpy as np"),
    ("lax", "from jax import lax"),
    ("checkpoint_name", "from jax.ad_checkpoint import checkpoint_name"),
    ("set_xla_metadata", "from jax.experimental.xla_metadata import set_xla_metadata"),
)
_SHARDING = (
    ("Mesh", "Mesh"),
    ("NamedSharding", "NamedSharding"),
    ("P", "PartitionSpec as P"),
    ("SingleDeviceSharding", "SingleDeviceSharding"),
)


class Text(msgspec.Struct, frozen=True):
    """An emitted module in two parts, so that a script can put something of its own between them."""

    imports: str
    body: str

    def __str__(self) -> str:
        gap = "\n\n" if self.body.startswith("def ") else "\n"
        return f"{self.imports}{gap}{self.body}"


def emit(program: Program, *, typed: bool = False) -> str:
    """The program as the text of a Python module.

    Args:
        program: a checked program; a malformed one raises here or while the text is traced, it is never misread.
        typed: also check, while tracing, that every equation has its recorded type; an exception's message and
            the comment on its line then name the equation. The module then also defines ``trace(devices)``, a
            `jax.stages.Traced`.

    Raises:
        ProgramError: an equation cannot be written (unknown primitive, malformed attribute); names it and its place.
    """
    return str(emit_text(program, typed=typed))


def emit_text(program: Program, *, typed: bool = False) -> Text:
    """As `emit`, in two parts."""
    context = Context(typed, _policies(program), program.gradient is not None)
    function, inputs = _function(program, context)
    parts = [f"{name} = {policy_text(policy)}" for policy, name in context.policies.items()]
    if typed:
        parts.append(_CHECK)
    if re.search(r"\bvarying\(", function):
        parts.append(_VARYING)
    parts += [function, _differentiated(program), entry.lower(program, inputs, wide=_wide(program), traced=typed)]
    body = _joined(parts)
    if not typed:  # a typed line ends in a comment that names its equation
        body = "\n".join(part for line in body.split("\n") for part in fold(line))
    return Text(_imports(body), body)


def _joined(parts: list[str]) -> str:
    """Parts of a module with two blank lines around functions and one between constants."""
    text, previous = "", ""
    for part in parts:
        around = part.startswith("def ") or previous.startswith("def ")
        text += ("\n\n" if around else "\n") if text else ""
        text += part.rstrip() + "\n"
        previous = part
    return text


def _policies(program: Program) -> dict[Policy, str]:
    """A name for the constant of each policy, in the order they are met."""
    found: dict[Policy, str] = {}
    for _, _, eqn in equations(program):
        policy = eqn.policy if isinstance(eqn, Checkpoint) and not eqn.differentiated else None
        if policy is not None and policy not in found:
            found[policy] = f"policy_{len(found)}" if found else "policy"
    return found


def _wide(program: Program) -> bool:
    """True if some value has 64 bits, which JAX narrows unless told not to."""
    wide = {"float64", "int64", "uint64"}
    for place in blocks(program):
        if any(var.type.dtype in wide for var in bindings(place.block)):
            return True
        uses = [a for eqn in place.block.eqns for a in args_of(eqn)] + list(place.block.results)
        if any(isinstance(a, Lit) and a.dtype in wide for a in uses):
            return True
    return False


def _function(program: Program, context: Context) -> tuple[str, list[str]]:
    """The text of ``program`` or ``loss``, and the names of its arguments."""
    block = program.block
    scope = context.scope()
    writer = Writer(context, block, scope, {})
    roles = names.roles(block)
    params = []
    for var in block.params:
        name = scope.variable(var.type, roles.get(var.id, ""), "x" if var.type.inexact else "")
        writer.define(var, name)
        params.append(name)
    if program.gradient is None:
        result = returned([expr.text for expr in writer.write()])
        head = "def program("
    else:
        summed = [r for r in block.results if (t := writer.result_type(r)).inexact and not t.on_host]
        types = [writer.result_type(r) for r in summed]
        result = _objective(writer.write(summed), types)
        head = "def loss("
    body = [*writer.lines, f"return {result}"]
    return "\n".join([f"{head}{', '.join(params)}):", *(f"    {line}".rstrip() for line in body)]), params


def _objective(values: list[Expr], types: list[Type]) -> str:
    terms = []
    for value, type_ in zip(values, types, strict=True):
        term = f"lax.real({value.text})" if type_.dtype == "complex64" else value.within(ATOM)
        if type_.dtype not in ("float32", "complex64"):
            term = f"{term}.astype(jnp.float32)"
        terms.append(f"{term}.sum()" if type_.shape else term)
    text = " + ".join(terms) or "jnp.float32(0.0)"
    return f"({text})" if len(text) > WIDTH - 12 else text


def _differentiated(program: Program) -> str:
    """The line that defines ``fn``."""
    gradient = program.gradient
    if gradient is None:
        return "fn = program"
    count = len(program.block.params)
    if not all(0 <= n < count for n in gradient.argnums):
        raise ProgramError(f"argnums {gradient.argnums!r} are not positions of the {count} inputs", where="gradient")
    argnums = repr(gradient.argnums[0]) if len(gradient.argnums) == 1 else texts.attribute(gradient.argnums)
    return f"fn = jax.{'value_and_grad' if gradient.with_value else 'grad'}(loss, argnums={argnums})"


def _imports(body: str) -> str:
    """The imports a body needs. Strings of the program may add one too many, which harms nobody."""
    lines = [line for name, line in _IMPORTS if re.search(rf"\b{name}[.(]", body)]
    shardings = [name for mark, name in _SHARDING if re.search(rf"\b{mark}\(", body)]
    if shardings:
        lines.append(f"from jax.sharding import {', '.join(shardings)}")
    return "\n".join(lines) + "\n"
