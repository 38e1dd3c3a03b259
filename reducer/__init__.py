"""scanshrink: find programs the XLA:TPU compiler cannot compile, and shrink them until a person can read them.

    import reducer

    program = reducer.capture(step, params, batch)
    result = reducer.reduce(program, target="0.0.50.1")
    print(result.text)

Importing this loads neither JAX nor a compiler. `capture` traces with JAX in this process; compilers run in others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from os import PathLike

    from reducer.corpus.case import Case, Tier
    from reducer.ir.equations import Program
    from reducer.oracle.target import OptionValue, Target
    from reducer.reduction import Progress, Reduced
    from reducer.reduction.model import Candidate

__all__ = ["capture", "reduce"]


def capture(
    fn: Callable[..., Any],
    *args: Any,
    in_shardings: Any = None,
    out_shardings: Any = None,
    donate_argnums: int | tuple[int, ...] = (),
) -> Program:
    """Trace a JAX function and write it down as a program; one that takes derivatives itself as what it differentiates.

    Args:
        fn: a JAX function, jitted or not.
        args: arrays, `jax.ShapeDtypeStruct`s, or pytrees of them; their leaves become the inputs, in order.
        in_shardings: as for `jax.jit`; `fn` must not be jitted then. Likewise `out_shardings`, `donate_argnums`.
        out_shardings: see `in_shardings`.
        donate_argnums: see `in_shardings`.

    Raises:
        ProgramError: "not expressible: ...", with the equation and its place in the source.
        InputError: `fn` is no function.
        Exception: whatever `fn` raises.
    """
    from reducer import api

    return api.capture(fn, *args, in_shardings=in_shardings, out_shardings=out_shardings, donate_argnums=donate_argnums)


def reduce(
    program: Candidate | Case,
    *,
    target: str | Target | None = None,
    topology: str | None = None,
    options: Mapping[str, OptionValue] | None = None,
    signature: str | None = None,
    family: str | None = None,
    any_failure: bool = False,
    interesting: str | PathLike[str] | None = None,
    keep: Iterable[str] = (),
    tiers: Iterable[Tier] = ("program", "placement", "stablehlo"),
    budget: int | None = None,
    seconds: float | None = None,
    timeout: float | None = None,
    jobs: int | None = None,
    out: str | PathLike[str] = "reduced",
    say: Callable[[str], None] = lambda _: None,
    show: Callable[[Progress], None] = lambda _: None,
) -> Reduced:
    """Make a failing program as small as it gets while it fails in the same way; what `scanshrink reduce` does.

    Args:
        program: from `capture`, a module from `reducer.stablehlo.read_module`, or a case of a corpus.
        target: a libtpu release such as "0.0.50.1", the path of a libtpu.so, or a `Target`; default: a case's own, else
            the installed one.
        topology: the TPU to compile for; default: a case's own, else v5e:2x2.
        options: XLA compiler options.
        signature: the failure to keep; default: whatever the program does. "timeout": a compile that takes too long.
        family: in place of a signature, any failure of a family.
        any_failure: in place of a signature, any at all.
        interesting: in place of a signature, a script that leaves with 0 for what is to be kept.
        keep: patterns of what must survive, such as "dot_general" or "scan[0]/checkpoint".
        tiers: the levels to reduce at.
        budget: most unique compiles.
        seconds: longest time; the same call goes on then without compiling anything twice.
        timeout: most seconds a candidate may take; default: ten times what the program takes, at least 60.
        jobs: worker processes; default: one per core.
        out: folder of the corpus that the case is saved in.
        say: is told one line per event.
        show: is told how far it is.

    Raises:
        Refused: the program does not fail as asked for (`reducer.reduction.Refused`).
        InputError: it is not what can be reduced, does not reach the compiler, or `keep` names nothing in it.
        StorageError: `out` cannot be written, found out before anything is compiled.
        TargetError, WorkerError: there is no compiler.
    """
    from reducer import api

    return api.reduce(
        program,
        target=target,
        topology=topology,
        options=options,
        signature=signature,
        family=family,
        any_failure=any_failure,
        interesting=interesting,
        keep=keep,
        tiers=tiers,
        budget=budget,
        seconds=seconds,
        timeout=timeout,
        jobs=jobs,
        out=out,
        say=say,
        show=show,
    )
