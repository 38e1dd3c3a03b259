"""Tables at the end of a command: the same data on a terminal and off it."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from reducer.corpus import Case, Certificate, Damaged, Neighbour
from reducer.corpus.verify import Check, Verdict, Verification
from reducer.report.tables import certificate_text, show_cases, show_failures, show_verification, verification_line

Make = Callable[..., Case]


class Row(msgspec.Struct):
    signature: str = "INTERNAL [post-optimization] bitcast"
    family: str = "bitcast"
    kind: str = "error"
    tier: str = "program"
    finds: int = 3
    case: str = "corpus/bitcast-1234"
    size: int = 5
    first_seconds: float = 2.345
    compiles_to_minimum: int = 61


def shown(show: Callable[[Console], None], *, terminal: bool, width: int = 100) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=width, color_system=None)
    show(console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_failures_as_plain_lines_are_aligned_and_in_order_of_time() -> None:
    rows = [Row(), Row(family="async-start", signature="async", finds=12, first_seconds=1, case="", size=120)]
    assert shown(lambda c: show_failures(rows, c), terminal=False, width=20).splitlines() == [
        "family       finds  tier     size  first at s  compiles  case",
        "async-start     12  program   120         1.0        61  not saved",
        "    async",
        "bitcast          3  program     5         2.3        61  corpus/bitcast-1234",
        "    INTERNAL [post-optimization] bitcast",
    ]


def test_failures_on_a_terminal() -> None:
    text = shown(lambda c: show_failures([Row()], c), terminal=True)
    for words in ("family", "bitcast", "first at s", "2.3", "corpus/bitcast-1234", "[post-optimization]"):
        assert words in text


@pytest.mark.parametrize("terminal", [False, True])
def test_nothing_to_show_is_said(terminal: bool) -> None:
    assert shown(lambda c: show_failures([], c), terminal=terminal) == "no failures found\n"
    assert shown(lambda c: show_cases([], c), terminal=terminal) == "no cases\n"


@pytest.mark.parametrize("terminal", [False, True])
def test_control_characters_and_markup_do_not_reach_the_terminal(terminal: bool) -> None:
    row = Row(signature="\x1b[2J[bold]x[/bold]\x07", family="[red]f\x9b", case="/tmp/\x1b]0;t\x07")
    text = shown(lambda c: show_failures([row], c), terminal=terminal)
    assert not set("\x1b\x07\x9b") & set(text.replace("\x1b[1m", "").replace("\x1b[0m", ""))
    assert "\\x1b[2J[bold]x[/bold]\\x07" in text
    assert "[red]f\\x9b" in text


def test_cases(make: Make) -> None:
    text = shown(lambda c: show_cases([make(finds=4), Damaged(Path("x"), "x: broken\nbadly")], c), terminal=False)
    assert text.splitlines() == [
        "case              kind   tier     size  finds  libtpu  certificate",
        f"{make().slug}  error  program     2      4  0.0.52  none",
        f"    {make().signature}",
        "damaged: x: broken badly",
    ]


def test_what_a_certificate_says(make: Make) -> None:
    def said(*signatures: str) -> str:
        around = tuple(Neighbour(edit="x", outcome="rejected", signature=signature) for signature in signatures)
        case = make()
        minimum = msgspec.structs.replace(case.minimum, certificate=Certificate(neighbourhood="n", neighbours=around))
        return certificate_text(msgspec.structs.replace(case, tiers={case.tier: minimum}))

    assert said("another", "") == "2"
    assert said("another", make().signature, "") == "not minimal: 1 of 3"
    assert certificate_text(make()) == "none"


def test_a_certificate_counts_what_was_asked_about(make: Make) -> None:
    around = (Neighbour(edit="x", outcome="compiled"), Neighbour(edit="y", outcome="skipped"))
    case = make()
    minimum = msgspec.structs.replace(case.minimum, certificate=Certificate(neighbourhood="n", neighbours=around))
    assert certificate_text(msgspec.structs.replace(case, tiers={case.tier: minimum})) == "1 of 2"


def test_verification(make: Make) -> None:
    seen = make().outcomes[0]

    def check(verdict: Verdict) -> Check:
        return Check(make(), seen, verdict, "rejected: a", "rejected: b")

    checks = tuple(map(check, (Verdict.AS_RECORDED, Verdict.FIXED, Verdict.CHANGED, Verdict.NOT_JUDGED)))
    result = Verification(checks, (Damaged(Path("corpus/x"), "broken"),))
    slug = make().slug
    assert shown(lambda c: show_verification(result, c), terminal=False, width=30).splitlines() == [
        f"FIXED        {slug} compiles on 0.0.52 (before: rejected: a)",
        f"CHANGED      {slug} on 0.0.52: rejected: b (expected rejected: a)",
        f"not judged   {slug} on 0.0.52: rejected: b",
        "damaged      x: broken",
        "5 cases: 1 as recorded, 1 fixed, 1 changed, 1 damaged, 1 not judged",
    ]
    older = msgspec.structs.replace(seen, libtpu="0.0.9", outcome="compiled")
    line = verification_line(Check(make(), older, Verdict.FIXED, "", "compiled"))
    assert line == f"compiles     {slug} on 0.0.9, which is older than where it was found"
    assert verification_line(check(Verdict.AS_RECORDED)) == f"as recorded  {slug} on 0.0.52: rejected: b"
    assert shown(lambda c: show_verification(Verification(), c), terminal=False) == "0 cases\n"
