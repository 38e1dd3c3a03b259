"""Live progress on stderr: a panel on a terminal, plain lines everywhere else. Of a hunt unless told otherwise."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from reducer.cli.common import say
from reducer.hunt.finds import Snapshot
from reducer.words import counted

#: Seconds between plain lines: often enough to see life, seldom enough for a log file.
_PLAIN_EVERY = 5.0
#: Lines of the panel that are not the table: the failures that do not fit are counted.
_OTHER_LINES = 8
_STYLES = {"saved": "green", "reducing": "bold", "flaky": "dim", "known": "dim"}
_SORTS = {"mixed": "program"}
_WORDS = {
    "new": "found",
    "confirming": "repeating",
    "confirmed": "waiting",
    "reducing": "shrinking",
    "saved": "minimal",
}


class Progress(Protocol):
    """Shows what a command does while it runs; a context manager."""

    def __enter__(self) -> Progress:
        """Begin showing."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop showing, leaving the terminal as it was."""
        ...

    def show(self, snapshot: Any) -> None:
        """Show how things are now; a snapshot has at least `seconds`, since the beginning."""
        ...

    def say(self, line: str) -> None:
        """Print a line that stays."""
        ...


def counts(snapshot: Snapshot) -> str:
    """Programs tried, compiled, failing, and the rate."""
    return (
        f"{counted(snapshot.generated, 'programs')}, {snapshot.compiled} compiled, {snapshot.failing} failing; "
        f"{snapshot.compiles_per_second:.1f} compiles/s"
    )


def clock(snapshot: Snapshot) -> str:
    """Time gone and time left, in seconds."""
    what = "left to shrink what was found" if snapshot.finishing else "left"
    return f"{snapshot.seconds:.0f} s, {snapshot.left:.0f} s {what}"


def skipped(snapshot: Snapshot) -> str:
    """What was not compiled or does not count, and why."""
    reasons = sorted(snapshot.skipped.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason} ({n})" for reason, n in reasons)


def shrinking(snapshot: Snapshot) -> str:
    """What is being shrunk, and how small it is."""
    if snapshot.reducing is None:
        return ""
    slug, start, size, compiles = snapshot.reducing
    return f"shrinking {slug}: {start} -> {counted(size, 'equations')}, {counted(compiles, 'compiles')}"


def plain(snapshot: Snapshot) -> str:
    """Everything on one line."""
    parts = [f"{clock(snapshot)}: {counts(snapshot)}", shrinking(snapshot)]
    if snapshot.skipped:
        parts.append(f"skipped {skipped(snapshot)}")
    return "; ".join(part for part in parts if part)


class PlainProgress:
    """Lines on a stream that is no terminal."""

    def __init__(self, text: Callable[[Any], str] = plain) -> None:
        self._text = text
        self._next = 0.0

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, snapshot: Any) -> None:
        """Print everything on one line, every few seconds."""
        if snapshot.seconds < self._next:
            return
        self._next = snapshot.seconds + _PLAIN_EVERY
        self.say(self._text(snapshot))

    def say(self, line: str) -> None:
        """Print one line at once."""
        say(line)


class LiveProgress:
    """A panel that is redrawn in place."""

    def __init__(
        self, console: Console | None = None, draw: Callable[[Any, int], RenderableType] | None = None
    ) -> None:
        self._draw = draw or panel
        self._console = console or Console(stderr=True)
        self._live = Live(console=self._console, refresh_per_second=8, transient=True)

    def __enter__(self) -> LiveProgress:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):  # the terminal is gone: so is the panel
            self._live.__exit__(kind, error, trace)

    def show(self, snapshot: Any) -> None:
        """Redraw."""
        with contextlib.suppress(OSError):
            self._live.update(self._draw(snapshot, self._console.height))

    def say(self, line: str) -> None:
        """Print a line above the panel."""
        with contextlib.suppress(OSError):
            self._console.print(Text(line, overflow="ellipsis", no_wrap=True))


def panel(snapshot: Snapshot, height: int) -> RenderableType:
    """Everything about a hunt, on at most `height` lines of a terminal of usual width."""
    parts: list[RenderableType] = [Text(clock(snapshot), style="dim"), Text(counts(snapshot), style="bold")]
    if snapshot.skipped:
        parts.append(Text(f"not counted: {skipped(snapshot)}", style="dim"))
    if snapshot.reducing is not None:
        parts.append(Text(shrinking(snapshot), style="cyan"))
    if snapshot.signatures:
        parts.append(_failures(snapshot, max(height - _OTHER_LINES, 3)))
    return Group(*parts)


def _failures(snapshot: Snapshot, room: int) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("failure", overflow="ellipsis", no_wrap=True)
    table.add_column("tier", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("finds", justify="right", no_wrap=True)
    table.add_column("equations", justify="right", no_wrap=True)
    # What is under way or new comes last in the order of finding: the first ones give way.
    shown = snapshot.signatures[-room:]
    if len(shown) < len(snapshot.signatures):
        table.add_row(Text(f"... and {len(snapshot.signatures) - len(shown)} more", style="dim"))
    for slug, sort, state, finds, size in shown:
        word = Text(_WORDS.get(state, state), style=_STYLES.get(state, ""))
        table.add_row(Text(slug), _SORTS.get(sort, sort), word, str(finds), str(size))
    return table


def make_progress(
    text: Callable[[Any], str] = plain, draw: Callable[[Any, int], RenderableType] | None = None
) -> Progress:
    """The panel that `draw` makes on a terminal that can redraw, lines of `text` elsewhere."""
    if sys.stderr is not None and sys.stderr.isatty():
        console = Console(stderr=True)
        if console.is_terminal and not console.is_dumb_terminal:
            return LiveProgress(console, draw)
    return PlainProgress(text)
