"""From the program tier to the placement tier."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from msgspec.structs import replace

from reducer.errors import ProgramError
from reducer.ir.equations import Entry, Program
from reducer.ir.types import Type
from reducer.ir.walk import bindings, blocks
from reducer.lowering.capture import versions
from reducer.lowering.capture.entry import from_jaxpr
from reducer.lowering.load import load
from reducer.lowering.texts import KEY_IMPLEMENTATIONS


def differentiate(program: Program) -> Program:
    """Take the derivatives of a program: policies applied, transfers explicit, custom rules used.

    The result computes the value (if asked for) and the gradients, has no gradient itself, and takes the same inputs.
    A program without a gradient comes back with its custom rules taken out, and as it is otherwise.

    Raises:
        ProgramError: JAX refuses to differentiate it (its message is quoted), or the derivative is not expressible.
    """
    import jax

    fn = load(program, typed=False).fn
    types = [var.type for var in program.block.params]
    with ExitStack() as contexts:
        if program.mesh is not None:
            mesh = versions.abstract_mesh(program.mesh.axes)
            contexts.enter_context(jax.sharding.use_abstract_mesh(mesh))
        if _wide(program):
            contexts.enter_context(jax.enable_x64(True))
        values = tuple(map(_abstract, types))
        try:
            closed = jax.make_jaxpr(fn)(*values)
        except Exception as error:  # a trace runs JAX's code over a program of any kind
            text = str(error).strip().splitlines()
            reason = f"{type(error).__name__}: {text[0] if text else ''}"
            raise ProgramError(f"JAX does not differentiate this program ({reason:.300})") from error
        found = from_jaxpr(closed, values, rules="inline").program
    inputs = program.inputs or (Entry(),) * len(types)
    specs = program.result_specs if program.gradient is None else ()
    return replace(found, mesh=program.mesh, inputs=inputs, result_specs=specs, meta=program.meta)


def _wide(program: Program) -> bool:
    wide = {"float64", "int64", "uint64"}
    return any(var.type.dtype in wide for place in blocks(program) for var in bindings(place.block))


def _abstract(type_: Type) -> Any:
    import jax

    implementation = KEY_IMPLEMENTATIONS.get(type_.dtype)
    if implementation is None:
        return versions.abstract(type_.shape, jax.numpy.dtype(type_.dtype), host=type_.on_host)
    key = jax.eval_shape(lambda: jax.random.key(0, impl=implementation))
    return versions.abstract(type_.shape, key.dtype, host=type_.on_host)
