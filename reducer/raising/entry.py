"""The whole module: inputs and results with their memories, shardings and donation; then the normal form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from reducer.errors import ProgramError
from reducer.ir.check import check
from reducer.ir.equations import Entry, Mesh, Program, ShardingConstraint, ShardMap, Spec, Var
from reducer.ir.normal import normalise
from reducer.ir.types import Memory
from reducer.ir.walk import equations
from reducer.lowering.capture.closures import in_order_of_use
from reducer.raising import (  # noqa: F401  (handlers)
    arrays,
    attributes,
    collectives,
    elementwise,
    indexing,
    regions,
    shardings,
)
from reducer.raising.constants import type_of
from reducer.raising.convert import HINT, Raiser, placement
from reducer.raising.frame import Frame
from reducer.raising.memory import placed
from reducer.stablehlo.model import Attributes, Block, Module, Value, attribute

_DONATED: Final = ("tf.aliasing_output", "jax.buffer_donor")


def raise_module(module: Module) -> Program:
    """A module, as JAX lowers one, as a program of the placement tier.

    Calls are inlined. Loops with a counter become scans. Constant arrays that do not repeat one scalar become inputs,
    behind the others. Mesh axes of one device are left out, and dimensions of a sharding that are left open are
    closed. Metadata that only loops act on stays on loops only.

    Raises:
        ProgramError: "not expressible: ...", with the operation and its place. Such a module can still be reduced as
            what it is.
    """
    mesh = shardings.mesh_of(module)
    raiser = Raiser(module, mesh)
    frame = Frame()
    main = module.main
    for param in main.body.params:
        frame.param(param.number, type_of(param))
    with raiser.at(main.name):
        results = raiser.operations(frame, _unannotated(main.body, main.result_attributes))
    constants = [Var(arg, frame.types[arg]) for key in raiser.constants if isinstance(arg := frame.env[key], int)]
    block = frame.block(results, behind=constants)
    inputs = [_memory(a) or "device" for a in main.param_attributes]
    inputs += ["device"] * len(constants)
    program = Program(
        block=placed(block, inputs, [_memory(a) for a in main.result_attributes]),
        mesh=mesh,
        inputs=(*(_entry(a, mesh) for a in main.param_attributes), *(Entry(),) * len(constants)),
        result_specs=tuple(_sharding(a, mesh) for a in main.result_attributes),
    )
    return _checked(_on_all_devices(program))


def _on_all_devices(program: Program) -> Program:
    """The program with one value that lies on the whole mesh, if nothing else would say that there is one."""
    values = (*(e.spec for e in program.inputs), *program.result_specs)
    divided = any(isinstance(e, ShardMap | ShardingConstraint) for _, _, e in equations(program))
    if program.mesh is None or divided or any(spec is not None for spec in values):
        return program
    if program.inputs:
        first, *others = program.inputs
        return replace(program, inputs=(replace(first, spec=()), *others))
    return replace(program, result_specs=((), *program.result_specs[1:]))


def _checked(program: Program) -> Program:
    try:
        check(program)
        program = normalise(replace(program, block=in_order_of_use(program.block)))
        check(program)
    except ProgramError as error:
        message = f"not expressible: {error.message}"
        raise ProgramError(message, where=error.where, hint=error.hint or HINT) from error
    return program


def _memory(attributes_: Attributes) -> Memory | None:
    kind = attribute(attributes_, "mhlo.memory_kind")
    if kind is None:
        return None
    return "host" if "host" in kind else "device"


def _sharding(attributes_: Attributes, mesh: Mesh | None) -> Spec | None:
    text = attribute(attributes_, "sdy.sharding")
    return None if text is None or mesh is None else shardings.spec(text, mesh)


def _entry(attributes_: Attributes, mesh: Mesh | None) -> Entry:
    return Entry(_sharding(attributes_, mesh), any(attribute(attributes_, name) for name in _DONATED))


def _unannotated(body: Block, results: Sequence[Attributes]) -> Block:
    """The body without the placements that JAX writes before a result because of the memory kind asked of it.

    They come again when the program is lowered, since the result's type says where it lies.
    """
    asked = {
        value: kind
        for value, attributes_ in zip(body.operations[-1].operands, results, strict=True)
        if (kind := attribute(attributes_, "mhlo.memory_kind")) is not None
    }
    moved: dict[Value, Value] = {}
    for operation in body.operations:
        if operation.name == "stablehlo.custom_call" and len(operation.results) == len(operation.operands) == 1:
            kind = asked.get(operation.results[0])
            if kind is not None and placement(operation) == attributes.string(kind):
                moved[operation.results[0]] = operation.operands[0]
    used_elsewhere = {v for o in body.operations[:-1] for v in o.operands}
    moved = {after: before for after, before in moved.items() if after not in used_elsewhere}
    *rest, last = body.operations
    last = replace(last, operands=tuple(moved.get(v, v) for v in last.operands))
    return replace(body, operations=(*rest, last))
