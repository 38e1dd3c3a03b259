"""The library's front: `reducer.capture` and `reducer.reduce`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reducer.corpus.case import TIERS, Case, Tier
from reducer.errors import InputError
from reducer.ir.equations import Program
from reducer.oracle.cache import OutcomeCache
from reducer.oracle.pool import DEFAULT_TIMEOUT, Pool
from reducer.oracle.target import DEFAULT_TOPOLOGY, OptionValue, Target, resolve_target
from reducer.reduction import Progress, Reduced, Reduction, Request, wanted_of
from reducer.reduction.cases import stored_programs, wanted_of_case
from reducer.reduction.model import DEFAULT_OUT, Candidate
from reducer.report.markdown import markdown
from reducer.stablehlo import Module


def capture(fn: Callable[..., Any], *args: Any, **options: Any) -> Program:
    """See `reducer.capture`."""
    from reducer.lowering.capture import capture, watch_grad

    if not callable(fn):
        raise InputError(f"{type(fn).__name__} is not a function", hint="capture(fn, *args) takes a JAX function")
    watched = watch_grad(fn, *args, **options)
    if watched.program is not None and watched.exact:
        return watched.program
    # Custom rules of derivatives that nobody takes are worth keeping; those of derivatives that were taken are gone.
    return capture(fn, *args, **options) if watched.program is None else watched.placement.program


def reduce(
    program: Candidate | Case,
    *,
    target: str | Target | None = None,
    topology: str | None = None,
    options: Mapping[str, OptionValue] | None = None,
    signature: str | None = None,
    family: str | None = None,
    any_failure: bool = False,
    interesting: str | os.PathLike[str] | None = None,
    keep: Iterable[str] = (),
    tiers: Iterable[Tier] = TIERS,
    budget: int | None = None,
    seconds: float | None = None,
    timeout: float | None = None,
    jobs: int | None = None,
    out: str | os.PathLike[str] = DEFAULT_OUT,
    say: Callable[[str], None] = lambda _: None,
    show: Callable[[Progress], None] = lambda _: None,
) -> Reduced:
    """See `reducer.reduce`."""
    case = program if isinstance(program, Case) else None
    start = _start_of(program)
    if isinstance(keep, str):
        raise InputError("keep is one string", hint=f"it is a list of patterns: keep=[{keep!r}]")
    if isinstance(tiers, str) or not (chosen_tiers := frozenset(tiers)) or not chosen_tiers <= set(TIERS):
        raise InputError(f"tiers is {tiers!r}", hint=f"it is a list of {', '.join(TIERS)}")
    chosen = [signature is not None, family is not None, any_failure, interesting is not None]
    if sum(chosen) > 1:
        raise InputError("signature, family, any_failure and interesting contradict each other", hint="name one")
    script = os.fspath(interesting) if interesting is not None else ""
    wanted = wanted_of(signature=signature, family=family, any_failure=any_failure, script=script)
    request = Request(
        starts=(start,),
        target=_target(target, topology, options, case),
        wanted=wanted if case is None else wanted_of_case(case, wanted, f"case {case.slug}"),
        case=case,
        stored=stored_programs(case) if case is not None else {},
        keep=tuple(keep),
        tiers=chosen_tiers,
        budget=budget,
        seconds=seconds,
        timeout=timeout,
        jobs=jobs or len(os.sched_getaffinity(0)),
        out=Path(out),
        script=Path(interesting) if interesting is not None else None,
    )
    return Reduction(request, _open_pool, _Told(say, show), report=markdown).run()


def _start_of(program: Candidate | Case) -> Candidate:
    if isinstance(program, Program | Module):
        return program
    if not isinstance(program, Case):
        raise InputError(
            f"{type(program).__name__} is not what can be reduced",
            hint="give a program from reducer.capture, a module from reducer.stablehlo.read_module, "
            "or a case of a corpus",
        )
    if program.minimum.program is None:
        raise InputError(f"case {program.slug} holds a module", hint="read it with reducer.stablehlo.read_module")
    return program.minimum.program


def _target(
    target: str | Target | None,
    topology: str | None,
    options: Mapping[str, OptionValue] | None,
    case: Case | None,
) -> Target:
    """A case's own target, unless told otherwise."""
    if isinstance(target, Target):
        return target
    own = case.target if case is not None else None
    if own is not None:
        target, topology = target or own.libtpu, topology or own.topology
        options = own.options if options is None else options
    return resolve_target(target, topology or DEFAULT_TOPOLOGY, options or {})


@contextmanager
def _open_pool(target: Target, jobs: int, /, *, use_cache: bool = True) -> Iterator[Pool]:
    if not use_cache:
        with Pool(target, jobs, timeout=DEFAULT_TIMEOUT) as pool:
            yield pool
        return
    with OutcomeCache() as cache, Pool(target, jobs, timeout=DEFAULT_TIMEOUT, cache=cache) as pool:
        yield pool


class _Told:
    """A watcher that hands on what it is told."""

    def __init__(self, say: Callable[[str], None], show: Callable[[Progress], None]) -> None:
        self.say = say
        self.show = show

    def begun(self) -> None:
        """Ctrl-C is `KeyboardInterrupt` here, as in any library: the same call goes on."""
