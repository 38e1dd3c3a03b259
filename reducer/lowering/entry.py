"""The text of ``lower(devices)``: abstract inputs with their shardings, and what is asked of the results.

A worker also wants the trace behind the lowered module, so for it the text is split in ``trace`` and ``lower``.
"""

from __future__ import annotations

from collections.abc import Sequence

from reducer.errors import ProgramError
from reducer.ir.equations import Entry, Program, Spec
from reducer.ir.types import Type
from reducer.ir.walk import arg_type, types_of
from reducer.lowering import texts
from reducer.lowering.texts import KEY_IMPLEMENTATIONS, attribute, call, pack

_HOST = '"pinned_host"'


def lower(program: Program, inputs: Sequence[str], *, wide: bool, traced: bool = False) -> str:
    """The function as text.

    Args:
        program: what to lower.
        inputs: names of the inputs, in order.
        wide: allow 64-bit types.
        traced: also define ``trace(devices)``, which gives the `jax.stages.Traced` that ``lower`` lowers.

    Raises:
        ProgramError: `inputs` or `result_specs` of the program do not fit its inputs and results.
    """
    entries = program.inputs or (Entry(),) * len(inputs)
    if len(entries) != len(inputs):
        raise ProgramError(f"{len(entries)} entries for {len(inputs)} inputs", where="inputs")
    types = [var.type for var in program.block.params]
    args = [
        f"{name} = {_abstract(program, type_, entry)}"
        for name, type_, entry in zip(inputs, types, entries, strict=True)
    ]
    donated = tuple(i for i, entry in enumerate(entries) if entry.donated)
    shardings = _out_shardings(program)
    lines = [*_placements(program, (*args, shardings or "")), *args]
    jitted = call("jax.jit", "fn", out_shardings=shardings, donate_argnums=attribute(donated) if donated else None)
    method = "trace" if traced else "lower"
    result = f"return {call(f'{jitted.text}.{method}', *inputs).text}"
    contexts = (["jax.set_mesh(mesh)"] if program.mesh else []) + (["jax.enable_x64(True)"] if wide else [])
    lines += _within(contexts, result)
    doc = '"""Lower `fn` for these devices; nothing is computed."""'
    if not traced:
        return _def("lower", doc, *lines)
    # The mesh is part of the trace; which types are allowed is asked again while lowering.
    lowered = _within(["jax.enable_x64(True)"] if wide else [], "return trace(devices).lower()")
    of_trace = _def("trace", '"""Trace `fn` for these devices."""', *lines)
    return f"{of_trace}\n\n\n{_def('lower', doc, *lowered)}"


def _within(contexts: Sequence[str], line: str) -> list[str]:
    return [f"with {', '.join(contexts)}:", f"    {line}"] if contexts else [line]


def _def(name: str, *lines: str) -> str:
    return "\n".join([f"def {name}(devices):", *(f"    {line}" for line in lines)])


def _placements(program: Program, used_by: Sequence[str]) -> list[str]:
    """The shardings that inputs and results refer to by name."""
    if program.mesh is not None:
        sizes = tuple(n for _, n in program.mesh.axes)
        axes = tuple(axis for axis, _ in program.mesh.axes)
        devices = f"np.array(devices[:{program.mesh.size!r}]).reshape({attribute(sizes)})"
        return [f"mesh = Mesh({devices}, {attribute(axes)})"]
    lines = []
    if any("=device)" in text for text in used_by):
        lines.append("device = SingleDeviceSharding(devices[0])")
    if any("host" in text.replace("pinned_host", "") for text in used_by):
        # Only a NamedSharding tells JAX, while tracing, that an input lies on the host.
        one = 'Mesh(np.array(devices[:1]), ("device",))'
        lines.append(f"host = NamedSharding({one}, P(), memory_kind={_HOST})")
    return lines


def _abstract(program: Program, type_: Type, entry: Entry) -> str:
    kind = KEY_IMPLEMENTATIONS.get(type_.dtype)
    if kind is None:
        dtype = texts.dtype(type_.dtype)
    else:
        dtype = f"jax.eval_shape(lambda: jax.random.key(0, impl={texts.quote(kind)})).dtype"
    sharding: str | None = "host" if type_.on_host else "device"
    if program.mesh is not None:
        sharding = _named(entry.spec, on_host=type_.on_host)
    return call("jax.ShapeDtypeStruct", attribute(type_.shape), dtype, sharding=sharding).text


def _named(spec: Spec | None, *, on_host: bool) -> str | None:
    """A sharding over the mesh; None (unspecified) for a device value that asks for nothing."""
    if spec is None and not on_host:
        return None
    return call("NamedSharding", "mesh", texts.spec(spec), memory_kind=_HOST if on_host else None).text


def _out_shardings(program: Program) -> str | None:
    """Shardings of the results in the structure ``fn`` gives them, or None if nothing is asked of them."""
    gradient = program.gradient
    if gradient is not None:
        # The gradient of a host input is a host result.
        params = [program.block.params[i].type for i in gradient.argnums]
        wanted = [_result(program, type_, None) for type_ in params]
        grads = pack([w or "None" for w in wanted])
        return (f"(None, {grads})" if gradient.with_value else grads) if any(wanted) else None
    types = types_of(program.block)
    results = program.block.results
    specs = program.result_specs or (None,) * len(results)
    if len(specs) != len(results):
        raise ProgramError(f"{len(specs)} result specs for {len(results)} results", where="result_specs")
    wanted = [_result(program, arg_type(r, types), spec) for r, spec in zip(results, specs, strict=True)]
    return pack([w or "None" for w in wanted]) if any(wanted) else None


def _result(program: Program, type_: Type, spec: Spec | None) -> str | None:
    if program.mesh is not None:
        return _named(spec, on_host=type_.on_host)
    return "host" if type_.on_host else None
