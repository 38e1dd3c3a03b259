"""What a hunt shows while it runs, on terminals of any size and where there is none."""

from __future__ import annotations

import io
import sys

import msgspec
import pytest
from rich.console import Console

from reducer.cli.progress import LiveProgress, PlainProgress, make_progress, panel
from reducer.hunt import Snapshot
from reducer.hunt.finds import Rate

SNAPSHOT = Snapshot(
    seconds=31.4,
    left=88.6,
    finishing=False,
    generated=120,
    compiled=60,
    failing=7,
    skipped={"duplicate program": 40, "no host placement": 12, "user error": 1},
    signatures=(
        ("bitcast-memory-space", "program", "reducing", 3, 9),
        ("async-start-mismatch", "placement", "saved", 2, 4),
        ("lane-slice", "mixed", "flaky", 1, 30),
    ),
    reducing=("bitcast-memory-space", 22, 9, 31),
    compiles_per_second=4.25,
)


def drawn(snapshot: Snapshot, *, width: int = 100, height: int = 30) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width, height=height)
    console.print(panel(snapshot, height))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_the_panel() -> None:
    assert drawn(SNAPSHOT) == [
        "31 s, 89 s left",
        "120 programs, 60 compiled, 7 failing; 4.2 compiles/s",
        "not counted: duplicate program (40), no host placement (12), user error (1)",
        "shrinking bitcast-memory-space: 22 -> 9 equations, 31 compiles",
        "failure               tier       state      finds  equations",
        "bitcast-memory-space  program    shrinking      3          9",
        "async-start-mismatch  placement  minimal        2          4",
        "lane-slice            program    flaky          1         30",
    ]


def test_the_panel_at_the_end() -> None:
    ending = msgspec.structs.replace(SNAPSHOT, finishing=True, left=12.0, reducing=None, skipped={}, signatures=())
    assert drawn(ending) == [
        "31 s, 12 s left to shrink what was found",
        "120 programs, 60 compiled, 7 failing; 4.2 compiles/s",
    ]


@pytest.mark.parametrize("width", [1, 7, 20, 40])
def test_a_narrow_terminal(width: int) -> None:
    lines = drawn(SNAPSHOT, width=width)
    assert all(len(line) <= width for line in lines)


def test_a_low_terminal() -> None:
    many = tuple((f"failure-{i}", "program", "saved", 1, i) for i in range(200))
    lines = drawn(msgspec.structs.replace(SNAPSHOT, signatures=many), height=24)
    assert len(lines) <= 24
    assert lines[-1].startswith("failure-199")
    assert "... and 184 more" in lines


def test_markup_in_a_name_is_not_followed() -> None:
    odd = msgspec.structs.replace(SNAPSHOT, signatures=(("[red]x[/red]", "program", "saved", 1, 1),))
    assert "[red]x[/red]" in drawn(odd)[-1]


def test_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainProgress() as progress:
        progress.show(SNAPSHOT)
        progress.show(msgspec.structs.replace(SNAPSHOT, seconds=33.0))
        progress.say("new failure")
        progress.show(msgspec.structs.replace(SNAPSHOT, seconds=40.0, left=80.0, reducing=None, skipped={}))
    assert capsys.readouterr().err.splitlines() == [
        "31 s, 89 s left: 120 programs, 60 compiled, 7 failing; 4.2 compiles/s; "
        "shrinking bitcast-memory-space: 22 -> 9 equations, 31 compiles; "
        "skipped duplicate program (40), no host placement (12), user error (1)",
        "new failure",
        "40 s, 80 s left: 120 programs, 60 compiled, 7 failing; 4.2 compiles/s",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_panel_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    made = make_progress()
    assert isinstance(made, LiveProgress)
    with made as progress:
        progress.show(SNAPSHOT)
        progress.say("new failure " + "x" * 500)
    shown = stream.getvalue()
    assert "\x1b[?25l" in shown
    assert shown.rstrip().endswith("\x1b[?25h") or "\x1b[?25h" in shown, "the cursor stays hidden"
    assert "bitcast-memory-space" in shown


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_lines_on_a_terminal_that_cannot_redraw(monkeypatch: pytest.MonkeyPatch, term: str) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert isinstance(make_progress(), PlainProgress)


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_lines_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    made = make_progress()
    assert isinstance(made, PlainProgress)
    with made as progress:
        progress.show(SNAPSHOT)


def test_a_terminal_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(Terminal):
        def write(self, _: str) -> int:
            raise OSError(5, "Input/output error")

    monkeypatch.setenv("TERM", "xterm")
    console = Console(file=Gone(), force_terminal=True)
    progress = LiveProgress(console)
    progress.say("a line")
    progress.show(SNAPSHOT)


def test_the_rate_is_of_recent_seconds() -> None:
    rate = Rate(window=10.0)
    assert rate.of(0.0, 0) == 0.0
    assert rate.of(1.0, 100) == 100.0
    for second in range(2, 30):
        last = rate.of(float(second), 100 + 2 * (second - 1))
    assert last == pytest.approx(2.0)
