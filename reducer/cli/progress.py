"""Live progress of a hunt on stderr: a panel on a terminal, plain lines everywhere else."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from reducer.hunt.finds import Snapshot

#: Seconds between plain lines: often enough to see life, seldom enough for a log file.
_PLAIN_EVERY = 5.0


class Progress(Protocol):
    """Shows a hunt while it runs; a context manager."""

    def __enter__(self) -> Progress:
        """Begin showing."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop showing, leaving the terminal as it was."""
        ...

    def show(self, snapshot: Snapshot) -> None:
        """Show the hunt as it is now."""
        ...

    def say(self, line: str) -> None:
        """Print a line that stays."""
        ...


def headline(snapshot: Snapshot) -> str:
    """The counts on one line."""
    skipped = ", ".join(f"{n} {reason}" for reason, n in sorted(snapshot.skipped.items()))
    rate = f"{snapshot.compiles_per_second:.1f} compiles/s"
    line = f"{snapshot.seconds:5.0f} s  {snapshot.generated} programs, {snapshot.compiled} compiled ({rate})"
    return line + f", {snapshot.failing} failing" + (f"; skipped {skipped}" if skipped else "")


def _reducing(snapshot: Snapshot) -> str:
    if snapshot.reducing is None:
        return ""
    slug, size, compiles = snapshot.reducing
    return f"shrinking {slug}: {size} equations after {compiles} compiles"


class PlainProgress:
    """Lines on a stream that is no terminal."""

    def __init__(self) -> None:
        self._next = 0.0

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, snapshot: Snapshot) -> None:
        """Print the headline every few seconds."""
        if snapshot.seconds < self._next:
            return
        self._next = snapshot.seconds + _PLAIN_EVERY
        extra = _reducing(snapshot)
        self.say(headline(snapshot) + (f"; {extra}" if extra else ""))

    def say(self, line: str) -> None:
        """Print one line at once."""
        print(line, file=sys.stderr, flush=True)


class LiveProgress:
    """A panel that is redrawn in place."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, refresh_per_second=8, transient=True)

    def __enter__(self) -> LiveProgress:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, snapshot: Snapshot) -> None:
        """Redraw."""
        table = Table(box=None, pad_edge=False)
        for column, justify in (("failure", "left"), ("state", "left"), ("finds", "right"), ("size", "right")):
            table.add_column(column, justify="right" if justify == "right" else "left")
        for slug, state, finds, size in snapshot.signatures:
            table.add_row(Text(slug), state, str(finds), str(size))
        parts: list[Text | Table] = [Text(headline(snapshot))]
        if snapshot.reducing is not None:
            parts.append(Text(_reducing(snapshot), style="bold"))
        if snapshot.signatures:
            parts.append(table)
        self._live.update(Group(*parts))

    def say(self, line: str) -> None:
        """Print a line above the panel."""
        self._console.print(Text(line))


def make_progress() -> Progress:
    """The panel on a terminal, lines elsewhere."""
    if sys.stderr.isatty():
        return LiveProgress()
    return PlainProgress()
