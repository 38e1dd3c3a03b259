"""The whole program: inputs, shardings, donation, normal form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from reducer.errors import ProgramError
from reducer.ir.check import check
from reducer.ir.equations import Block, Entry, Name, Program, Var
from reducer.ir.normal import normalise
from reducer.lowering.capture import custom, operations, regions, versions  # noqa: F401  (they register handlers)
from reducer.lowering.capture.boundary import boundary, inputs_on_host
from reducer.lowering.capture.closures import in_order_of_use
from reducer.lowering.capture.convert import Converter, Env, Rules
from reducer.lowering.capture.frame import Frame, transfer, type_of

#: Names with this prefix are never the user's.
MARK = "scanshrink/"


@dataclass(frozen=True)
class Captured:
    """A program with what it was captured from: one value (or `ShapeDtypeStruct`) per input.

    Inputs are the leaves of the arguments in order, then constant arrays the function closed over.
    """

    program: Program
    values: tuple[Any, ...]
    #: Positions of the inputs that were marked while tracing.
    marks: dict[str, int] = field(default_factory=dict)


def capture(
    fn: Callable[..., Any],
    *args: Any,
    in_shardings: Any = None,
    out_shardings: Any = None,
    donate_argnums: int | tuple[int, ...] = (),
    rules: Rules = "keep",
) -> Program:
    """Trace a function and write it down as a program.

    Args:
        fn: a JAX function, jitted or not.
        args: arrays, `jax.ShapeDtypeStruct`s, or pytrees of them; their leaves become the inputs, in order. Arrays
            that `fn` closes over become further inputs behind them.
        in_shardings: as for `jax.jit`; `fn` must not be jitted then. Likewise `out_shardings`, `donate_argnums`.
        rules: "keep" writes custom derivative rules down; "inline" drops them, for a program that is never
            differentiated.

    Raises:
        ProgramError: "not expressible: ...", with the equation and its place in the source. Such a function can still
            be reduced as a StableHLO module.
    """
    return captured(
        fn,
        *args,
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        donate_argnums=donate_argnums,
        rules=rules,
    ).program


def captured(
    fn: Callable[..., Any],
    *args: Any,
    in_shardings: Any = None,
    out_shardings: Any = None,
    donate_argnums: int | tuple[int, ...] = (),
    rules: Rules = "keep",
) -> Captured:
    """`capture`, with the values of the inputs: what is needed to run the program."""
    import jax

    options = {
        name: value
        for name, value in (
            ("in_shardings", in_shardings),
            ("out_shardings", out_shardings),
            ("donate_argnums", donate_argnums),
        )
        if value is not None and value != ()
    }
    trace = jax.make_jaxpr(jax.jit(fn, **options) if options else fn)
    leaves, tree = jax.tree.flatten(args)
    closed = trace(*args)
    placed = inputs_on_host(versions.open_jaxpr(closed)[0], leaves)
    if placed is not None:
        try:
            closed = trace(*jax.tree.unflatten(tree, placed))
        except (TypeError, ValueError) as error:
            # JAX let it pass because it did not know; the compiler may or may not.
            raise ProgramError(
                f"not expressible: a value in host memory is used without moving it ({error!s:.200})",
                hint="move it with jax.device_put, or reduce the lowered module instead: --tier stablehlo",
            ) from error
    return from_jaxpr(closed, leaves, rules=rules)


def from_jaxpr(closed: Any, values: Any, *, rules: Rules = "keep", only_read: bool = False) -> Captured:
    """The program of a closed jaxpr; `values` are its arguments.

    `only_read`: it will not be compiled, and may differ in values nobody reads (uninitialised host memory). It is not
    checked: what JAX traced is well-typed, and a hunt does this for every program.

    Raises:
        ProgramError: not expressible.
    """
    converter = Converter(rules=rules, only_read=only_read)
    jaxpr, consts = versions.open_jaxpr(closed)
    frame = converter.frame()
    params = [frame.var(type_of(v.aval)) for v in jaxpr.invars]
    env: Env = {v: p.id for v, p in zip(jaxpr.invars, params, strict=True)}
    results = converter.inline(frame, jaxpr, consts, env)
    outside = boundary(converter, jaxpr, values)
    for i in outside.results_to_host:
        results[i] = transfer(frame, results[i], type_of(jaxpr.outvars[i].aval), "host")
    hoisted = [var for _, _, var in frame.hoisted]
    block = Block((*params, *hoisted), tuple(frame.eqns), tuple(results))
    entries = (*outside.entries, *(Entry(),) * len(hoisted))
    program = Program(block=block, mesh=converter.mesh, inputs=entries, result_specs=outside.specs)
    program = normalise(program) if only_read else checked(program)
    return Captured(program, (*values, *(value for value, _, _ in frame.hoisted)), _marks(frame, params))


def checked(program: Program) -> Program:
    """The normal form of what was captured.

    Raises:
        ProgramError: it breaks a rule of the IR.
    """
    try:
        check(program)
    except ProgramError as error:
        raise ProgramError(f"not expressible: {error.message}", where=error.where, hint=error.hint) from error
    program = normalise(replace(program, block=in_order_of_use(program.block)))
    check(program)
    return program


def _marks(frame: Frame, params: Sequence[Var]) -> dict[str, int]:
    """Inputs that were given a name of ours while tracing: name -> position."""
    position = {p.id: i for i, p in enumerate(params)}
    found = [e for e in frame.eqns if isinstance(e, Name) and e.name.startswith(MARK)]
    return {e.name: position[e.arg] for e in found if isinstance(e.arg, int) and e.arg in position}
