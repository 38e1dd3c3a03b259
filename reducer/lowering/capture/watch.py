"""The program tier of a function that takes derivatives itself.

Such a function traces straight to the placement tier: what `jax.grad` was applied to is gone. So the tracing is
watched: the outermost function that is differentiated is traced by itself first, and written down as a program with a
`Grad`; then its jaxpr is differentiated in its place, so the user's code still runs once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from reducer.errors import ProgramError
from reducer.ir.equations import Entry, Grad, Program
from reducer.ir.walk import equations
from reducer.lowering.capture import versions
from reducer.lowering.capture.entry import MARK, Captured, captured, checked, from_jaxpr
from reducer.lowering.capture.tiers import differentiate


@dataclass(frozen=True)
class Watched:
    """Both tiers of a function that takes derivatives.

    `program` is None if the function takes none, or none that the IR can hold; `reason` then says why. `exact` means
    that differentiating `program` gives `placement` and nothing is missing; otherwise `program` is a part of the
    function (a training step's loss, without its optimizer), which fails the same way or does not: ask the compiler.
    """

    program: Program | None
    placement: Captured
    exact: bool
    reason: str = ""


@dataclass
class _Call:
    """One outermost differentiation."""

    closed: Any
    primals: list[Any]
    values: int
    index: int


class _Watcher:
    def __init__(self) -> None:
        self.calls: list[_Call] = []
        self.failure = ""
        self._inside = False

    def __call__(self, original: Any, function: Any, primals: Any, *args: Any, **options: Any) -> Any:
        if self._inside:
            return original(function, primals, *args, **options)
        self._inside = True
        try:
            has_aux = bool(args[0] if args else options.get("has_aux", False))
            return original(self._traced(function, primals.unflatten(), has_aux), primals, *args, **options)
        finally:
            self._inside = False

    def _traced(self, function: Any, primals: Any, has_aux: bool) -> Any:
        import jax
        from jax.extend.core import jaxpr_as_fun

        try:
            closed, shape = jax.make_jaxpr(function, return_shape=True)(*primals)
        except Exception as error:  # the user's code, or results that are no arrays
            self.failure = f"{type(error).__name__} while tracing the differentiated function"
            return function
        leaves, tree = jax.tree.leaves(primals), jax.tree.structure(shape)
        values = len(jax.tree.leaves(shape[0] if has_aux else shape))
        call = _Call(closed, leaves, values, len(self.calls))
        self.calls.append(call)
        _, consts = versions.open_jaxpr(closed)
        for i, value in enumerate((*leaves, *consts)):
            _mark(value, f"{MARK}{call.index}/{i}")

        def evaluated(*again: Any) -> Any:
            return jax.tree.unflatten(tree, jaxpr_as_fun(closed)(*jax.tree.leaves(again)))

        return evaluated


def _mark(value: Any, name: str) -> None:
    """Leave a name in the jaxpr around, where nothing uses it: it says which input this value is."""
    import jax
    from jax.ad_checkpoint import checkpoint_name

    if isinstance(value, jax.core.Tracer):
        checkpoint_name(value, name)


def watch_grad(fn: Callable[..., Any], *args: Any, **options: Any) -> Watched:
    """Capture a function and the function it differentiates.

    Args:
        fn: as for `capture`.
        args: as for `capture`.
        options: `in_shardings`, `out_shardings`, `donate_argnums` as for `capture`.

    Raises:
        ProgramError: the function itself is not expressible after differentiation.
    """
    import jax

    watcher = _Watcher()
    with versions.watching_linearize(watcher):
        placement = captured(fn, *args, rules="inline", **options)
    if not watcher.calls and not watcher.failure:
        # What was traced before stands in JAX's caches, derivatives taken.
        jax.clear_caches()
        with versions.watching_linearize(watcher):
            placement = captured(fn, *args, rules="inline", **options)
    if not watcher.calls:
        return Watched(None, placement, False, watcher.failure or "the function takes no derivative")
    call = max(watcher.calls, key=lambda c: _size(c.closed))
    try:
        program, direct = _program(call, placement)
        program, exact = _exact(program, direct, placement.program)
    except ProgramError as error:
        return Watched(None, placement, False, error.message)
    reason = "" if exact else "the function does more than take this derivative"
    return Watched(program, placement, exact, reason)


def _size(closed: Any) -> int:
    jaxpr, _ = versions.open_jaxpr(closed)
    return len(jaxpr.eqns)


def _program(call: _Call, placement: Captured) -> tuple[Program, bool]:
    """The differentiated function as a program; its inputs enter as those of the whole function do.

    Also whether each of them is an input of the whole function.

    Raises:
        ProgramError: not expressible, or nothing to differentiate.
    """
    import jax

    n = len(call.primals)
    found = from_jaxpr(call.closed, [jax.typeof(p) for p in call.primals])
    params = found.program.block.params
    argnums = tuple(i for i, var in enumerate(params[:n]) if var.type.inexact)
    outer = placement.program.inputs or (Entry(),) * len(placement.program.block.params)
    positions = _positions(call, found, placement)
    inputs = tuple(Entry() if at is None else replace(outer[at], donated=False) for at in positions)
    program = Program(
        block=replace(found.program.block, results=found.program.block.results[: call.values]),
        gradient=Grad(argnums=argnums),
        mesh=found.program.mesh or placement.program.mesh,
        inputs=inputs,
    )
    return checked(program), None not in positions


def _positions(call: _Call, found: Captured, placement: Captured) -> list[int | None]:
    """For each input of the differentiated function, the input of the whole function that it is."""
    _, consts = versions.open_jaxpr(call.closed)
    n = len(call.primals)
    order = [*range(n), *(n + next(j for j, c in enumerate(consts) if c is v) for v in found.values[n:])]
    return [placement.marks.get(f"{MARK}{call.index}/{i}") for i in order]


def _exact(program: Program, direct: bool, placement: Program) -> tuple[Program, bool]:
    """Whether the placement tier is this program differentiated, with the value among its results or without.

    Raises:
        ProgramError: JAX does not differentiate the program.
    """
    assert program.gradient is not None
    for with_value in (True, False):
        candidate = replace(program, gradient=replace(program.gradient, with_value=with_value))
        if direct and _contents(differentiate(candidate)) == _contents(placement):
            return candidate, True
    return program, False


def _contents(program: Program) -> Counter[tuple[str, ...]]:
    """What a program consists of, whatever the order of its inputs and results."""
    return Counter(
        (type(eqn).__name__, str(getattr(eqn, "primitive", "")), *(str(v.type) for v in eqn.outs))
        for _, _, eqn in equations(program)
    ) + Counter((("results", str(len(program.block.results))),))
