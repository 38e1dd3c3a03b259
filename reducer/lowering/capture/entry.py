"""The whole program: inputs, shardings, donation, normal form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from reducer.errors import ProgramError
from reducer.ir.check import check
from reducer.ir.equations import Block, Entry, Name, Program, Spec, Var
from reducer.ir.normal import normalise
from reducer.lowering.capture import custom, regions, versions  # noqa: F401  (they register handlers)
from reducer.lowering.capture.closures import in_order_of_use
from reducer.lowering.capture.convert import Converter, Env, Frame, Rules, type_of
from reducer.lowering.capture.shardings import entry_of, named_spec

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
    closed = jax.make_jaxpr(jax.jit(fn, **options) if options else fn)(*args)
    return from_jaxpr(closed, jax.tree.leaves(args), rules=rules)


def from_jaxpr(closed: Any, values: Any, *, rules: Rules = "keep") -> Captured:
    """The program of a closed jaxpr; `values` are its arguments.

    Raises:
        ProgramError: not expressible.
    """
    converter = Converter(rules=rules)
    jaxpr, consts = versions.open_jaxpr(closed)
    frame = converter.frame()
    params = [frame.var(type_of(v.aval)) for v in jaxpr.invars]
    env: Env = {v: p.id for v, p in zip(jaxpr.invars, params, strict=True)}
    results = converter.inline(frame, jaxpr, consts, env)
    hoisted = [var for _, _, var in frame.hoisted]
    block = Block((*params, *hoisted), tuple(frame.eqns), tuple(results))
    entries, specs = _entries(converter, jaxpr, len(hoisted), values)
    program = Program(block=block, mesh=converter.mesh, inputs=entries, result_specs=specs)
    return Captured(checked(program), (*values, *(value for value, _, _ in frame.hoisted)), _marks(frame, params))


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


def _entries(
    converter: Converter, jaxpr: Any, hoisted: int, values: Any
) -> tuple[tuple[Entry, ...], tuple[Spec | None, ...]]:
    """Shardings and donation of a function that is one jitted call, or else shardings of the arguments."""
    found = {
        v: entry_of(converter, getattr(value, "sharding", None), False)
        for v, value in zip(jaxpr.invars, values, strict=True)
    }
    specs: tuple[Spec | None, ...] = ()
    calls = [eqn for eqn in jaxpr.eqns if eqn.primitive.name in versions.CALLS]
    if len(jaxpr.eqns) == 1 and calls:
        params, (call,) = calls[0].params, calls
        shardings = params.get("in_shardings") or (None,) * len(call.invars)
        donated = params.get("donated_invars") or (False,) * len(call.invars)
        for v, sharding, given in zip(call.invars, shardings, donated, strict=True):
            if v in found and not versions.is_literal(v):
                own = entry_of(converter, sharding, bool(given))
                found[v] = own if own.spec is not None else Entry(spec=found[v].spec, donated=own.donated)
        produced = dict(zip(call.outvars, params.get("out_shardings") or (None,) * len(call.outvars), strict=True))
        specs = tuple(None if versions.is_literal(v) else named_spec(converter, produced.get(v)) for v in jaxpr.outvars)
    return (*found.values(), *(Entry(),) * hoisted), specs
