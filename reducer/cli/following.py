"""A reduction while it runs, for people: lines or a panel, signals, and the best so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reducer.cli.common import one_line
from reducer.cli.interrupts import Interrupts
from reducer.cli.progress import Progress
from reducer.words import counted

if TYPE_CHECKING:
    from reducer.reduction import Progress as Moment
    from reducer.reduction import Reduction


class Following:
    """What the command shows, and how it is told to end."""

    def __init__(self, progress: Progress, interrupts: Interrupts) -> None:
        self._progress = progress
        self._interrupts = interrupts
        self.reduction: Reduction | None = None

    def say(self, line: str) -> None:
        """A line that stays."""
        self._progress.say(one_line(line, 300))

    def show(self, progress: Moment) -> None:
        """How far it is."""
        self._progress.show(progress)

    def begun(self) -> None:
        """From here on a signal ends it in order."""
        self._interrupts.deliver(self._stop)

    def shown(self, *_: object) -> None:
        """SIGUSR1: the best so far."""
        assert self.reduction is not None
        for line in self.reduction.shown().splitlines():
            self._progress.say(line)

    def _stop(self) -> None:
        assert self.reduction is not None
        self.reduction.stop()
        if self._interrupts.count == 1:
            self.say("ending after the compile under way; the best so far is saved (three more times: at once)")


def plain(moment: Moment) -> str:
    """A reduction on one line."""
    done = f"{moment.tried} of {moment.total}" if moment.total is not None else f"{moment.tried} tried"
    return (
        f"{moment.seconds:5.0f} s  {moment.tier}: {moment.start_size} -> {counted(moment.size, moment.unit)}, "
        f"{counted(moment.compiles, 'compiles')}, {moment.rate:.1f}/s; {moment.doing} "
        f"({done}; {counted(moment.left, 'passes')} after it)"
    )


def panel(moment: Moment, _: int) -> Any:
    """A reduction on a terminal."""
    from rich.console import Group
    from rich.text import Text

    left = (
        "" if moment.total is None else f", {moment.total - moment.tried} of {counted(moment.total, 'candidates')} left"
    )
    compiles = counted(moment.compiles, "unique compiles")
    return Group(
        Text(f"{moment.seconds:.0f} s, {compiles}, {moment.rate:.1f} compiles/s", style="dim"),
        Text(f"{moment.tier} tier: {moment.start_size} -> {counted(moment.size, moment.unit)}", style="bold"),
        Text(f"{moment.doing}: {moment.tried} tried{left}; {counted(moment.left, 'passes')} after it", style="cyan"),
    )
