"""StableHLO modules as candidates, and the ordinary way to shrink one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from reducer.errors import ProgramError
from reducer.neighbourhood.modules import module_steps
from reducer.oracle.base import Oracle
from reducer.oracle.outcome import Result
from reducer.passes.base import Candidate, Pass
from reducer.passes.modules import MODULE_PASSES
from reducer.shrink.driver import shrink
from reducer.shrink.model import Event, Shrunk, Tier
from reducer.stablehlo.check import check
from reducer.stablehlo.model import Module
from reducer.stablehlo.normal import inlined, numbered, tidied
from reducer.stablehlo.order import identity, order_key, size
from reducer.stablehlo.sense import nonsense
from reducer.stablehlo.text import to_text

#: The most operations of a start that is reduced a second time, the other way round.
RESTART_LIMIT: Final = 200


def _check_sensible(module: Module) -> None:
    check(module)
    what = nonsense(module)
    if what is not None:
        raise ProgramError(f"nobody would run this: {what}")


def _sweep(module: Module) -> Iterator[Candidate[Module]]:
    for _, _, build in module_steps(module):
        yield build


#: Every documented single step once more, so that the result is 1-minimal whatever the other passes left out.
MODULE_SWEEP: Final[Pass[Module]] = Pass(
    "sweep", "try every single step of the neighbourhood", _sweep, 1, "square", ("stablehlo",), late=True
)


def module_tier(*, sensible: bool = True) -> Tier[Module]:
    """The tier of modules. With `sensible` a module that nobody could run (`reducer.stablehlo.sense`) is none."""
    return Tier(
        name="stablehlo",
        forms=(inlined, tidied, numbered),
        check=_check_sensible if sensible else check,
        key=identity,
        order_key=order_key,
        size=size,
        text=to_text,
    )


def shrink_module(
    module: Module,
    oracle: Oracle[Module],
    wanted: Callable[[Result], bool],
    *,
    budget: int | None = None,
    label: Callable[[Result], str | None] | None = None,
    events: Callable[[Event[Module]], None] | None = None,
) -> Shrunk[Module]:
    """`shrink` with all passes for modules and the final sweep of the neighbourhood: the result is 1-minimal.

    A sensible module stays one (`reducer.stablehlo.sense`).

    Raises:
        StartError: the module does not fail as wanted.
        WorkerError, TargetError: the oracle cannot answer any more.
    """
    return shrink(
        module,
        oracle,
        wanted,
        tier=module_tier(sensible=nonsense(module) is None),
        passes=(MODULE_SWEEP, *MODULE_PASSES),
        budget=budget,
        label=label,
        events=events,
        # Going the whole way again from thousands of operations costs more than what it may find is worth.
        restart=size(module) <= RESTART_LIMIT,
    )
