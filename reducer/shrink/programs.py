"""Programs of the IR as candidates, and the ordinary way to shrink one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

from reducer.errors import ProgramError
from reducer.ir.canonical import canonical
from reducer.ir.check import check
from reducer.ir.codec import identity
from reducer.ir.equations import Program
from reducer.ir.normal import normalise
from reducer.ir.order import order_key, size
from reducer.ir.places import may_place
from reducer.ir.sense import nonsense
from reducer.ir.text import to_text
from reducer.neighbourhood import steps
from reducer.oracle.base import Oracle
from reducer.oracle.outcome import Result
from reducer.passes import PASSES, Candidate, Pass
from reducer.passes.chances import with_chances
from reducer.shrink.ask import Pause, first_of
from reducer.shrink.driver import shrink
from reducer.shrink.model import Event, Shrunk, Tier


def _sweep(program: Program) -> Sequence[Candidate[Program]]:
    return [build for _, _, build in steps(program)]


def _check_sensible(program: Program) -> None:
    check(program)
    what = nonsense(program)
    if what is not None:
        raise ProgramError(f"nobody would run this: {what}")


#: Every documented single step once more, so that the result is 1-minimal whatever the other passes left out. It is the
#: first of the late ones: it asks what a certificate asks.
SWEEP: Final[Pass[Program]] = Pass(
    "sweep", "try every single step of the neighbourhood", _sweep, 1, "square", late=True
)


def program_tier(
    name: Literal["program", "placement"] = "program", *, sensible: bool = True, placed: bool = False
) -> Tier[Program]:
    """The tier of programs: canonical where the start survives it, normal otherwise.

    With `sensible` a program that nobody could run (`reducer.ir.sense`) is no candidate; with `placed` one that
    surely places nothing in host memory (`reducer.ir.places`) is not asked about.
    """
    return Tier(
        name=name,
        forms=(canonical, normalise),
        check=_check_sensible if sensible else check,
        key=identity,
        order_key=order_key,
        size=size,
        text=to_text,
        hopeless=(lambda program: not may_place(program)) if placed else (lambda _: False),
    )


def shrink_program(
    program: Program,
    oracle: Oracle[Program],
    wanted: Callable[[Result], bool],
    *,
    level: Literal["program", "placement"] = "program",
    placed: bool = False,
    budget: int | None = None,
    restart: bool = True,
    label: Callable[[Result], str | None] | None = None,
    events: Callable[[Event[Program]], None] | None = None,
    pause: Pause = first_of,
) -> Shrunk[Program]:
    """`shrink` with all passes for programs and the final sweep of the neighbourhood: the result is 1-minimal.

    A sensible program stays one (`reducer.ir.sense`). `placed`: nothing that places nothing in host memory fails as
    wanted, so no such program is asked about.

    Raises:
        StartError: the program does not fail as wanted.
        WorkerError, TargetError: the oracle cannot answer any more.
    """
    return shrink(
        program,
        oracle,
        wanted,
        tier=program_tier(level, sensible=nonsense(normalise(program)) is None, placed=placed and may_place(program)),
        passes=tuple(with_chances(one) for one in (SWEEP, *PASSES) if level in one.tiers),
        budget=budget,
        restart=restart,
        label=label,
        events=events,
        pause=pause,
    )
