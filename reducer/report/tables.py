"""What a command shows at its end: a table on a terminal, plain lines where there is none.

Rows are plain data with the attributes named in the protocols, so that nothing here knows hunts or commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reducer.corpus.case import Case
from reducer.corpus.proof import NOT_ASKED
from reducer.corpus.store import Damaged
from reducer.corpus.verify import Check, Verdict, Verification
from reducer.ledger import Ledger, bytes_text, ledger_text, place_text, shape_text, totals
from reducer.oracle.outcome import Memory
from reducer.oracle.target import release_order
from reducer.report.render import line
from reducer.words import counted

_SIGNATURE_LIMIT = 240


class Output(Console):
    """A console whose reader may go away, as `head` does: that is no failure, and rich would leave with 1."""

    def on_broken_pipe(self) -> None:
        """Let the command end as it does when nothing is left to say."""
        raise BrokenPipeError


class FailureRow(Protocol):
    """One distinct failure of a hunt; `case` is the path of its case, or empty."""

    @property
    def signature(self) -> str: ...  # noqa: D102
    @property
    def family(self) -> str: ...  # noqa: D102
    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def tier(self) -> str: ...  # noqa: D102
    @property
    def finds(self) -> int: ...  # noqa: D102
    @property
    def case(self) -> str: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102
    @property
    def first_seconds(self) -> float: ...  # noqa: D102
    @property
    def compiles_to_minimum(self) -> int: ...  # noqa: D102


def show_failures(rows: Sequence[FailureRow], console: Console | None = None) -> None:
    """Print the distinct failures of a hunt, earliest first."""
    ordered = sorted(rows, key=lambda row: (row.first_seconds, row.signature))
    cells = [
        (
            line(row.family, 60),
            str(row.finds),
            row.tier,
            str(row.size),
            f"{row.first_seconds:.1f}",
            str(row.compiles_to_minimum),
            line(row.case) or "not saved",
        )
        for row in ordered
    ]
    heads = ("family", "finds", "tier", "size", "first at s", "compiles", "case")
    details = [line(row.signature, _SIGNATURE_LIMIT) for row in ordered]
    _show(heads, cells, console or Output(), details=details, numbers={1, 3, 4, 5}, empty="no failures found")


def show_cases(entries: Iterable[Case | Damaged], console: Console | None = None) -> None:
    """Print the cases of a corpus, and after them what is damaged."""
    listed = list(entries)
    cases = [entry for entry in listed if isinstance(entry, Case)]
    cells = [
        (c.slug, c.kind, c.tier, str(c.minimum.size), str(c.finds), c.target.libtpu, certificate_text(c)) for c in cases
    ]
    heads = ("case", "kind", "tier", "size", "finds", "libtpu", "certificate")
    details = [line(case.signature, _SIGNATURE_LIMIT) for case in cases]
    console = console or Output()
    _show(heads, cells, console, details=details, numbers={3, 4}, empty="no cases")
    for entry in listed:
        if isinstance(entry, Damaged):
            _line(console, f"damaged: {line(entry.reason)}")


def certificate_text(case: Case) -> str:
    """What a case's certificate says of its minimum at `case.tier`, in a word or two; "none" without one."""
    certificate = case.minimum.certificate
    if certificate is None:
        return "none"
    counts, around = certificate.counts(case.signature), len(certificate.neighbours)
    if failing := counts.get("fails-the-same", 0):
        return f"not minimal: {failing} of {around}"
    left = sum(counts.get(verdict, 0) for verdict in NOT_ASKED)
    return f"{around - left} of {around}" if left else str(around)


def show_verification(result: Verification, console: Console | None = None) -> None:
    """Print what a verification found: each case that is not as recorded, then the counts."""
    console = console or Output()
    for check in result.checks:
        if check.verdict is not Verdict.AS_RECORDED:
            _line(console, verification_line(check))
    for damaged in result.damaged:
        _line(console, verification_line(damaged))
    data = result.as_json()
    names = ("as_recorded", "fixed", "changed", "damaged", "not_judged")
    counts = ", ".join(f"{data[name]} {name.replace('_', ' ')}" for name in names if data[name])
    _line(console, counted(data["cases"], "cases") + (f": {counts}" if counts else ""))


def verification_line(checked: Check | Damaged) -> str:
    """One case of a verification on one line."""
    if isinstance(checked, Damaged):
        return f"damaged      {line(checked.path.name)}: {line(checked.reason)}"
    slug, release = checked.case.slug, line(checked.seen.libtpu)
    expected, actual = line(checked.expected, 120), line(checked.actual, 120)
    match checked.verdict:
        case Verdict.AS_RECORDED:
            return f"as recorded  {slug} on {release}: {actual}"
        case Verdict.FIXED if release_order(checked.seen.libtpu) < release_order(checked.case.target.libtpu):
            return f"compiles     {slug} on {release}, which is older than where it was found"
        case Verdict.FIXED:
            return f"FIXED        {slug} compiles on {release} (before: {expected})"
        case Verdict.CHANGED:
            return f"CHANGED      {slug} on {release}: {actual} (expected {expected})"
        case Verdict.NOT_JUDGED:
            return f"not judged   {slug} on {release}: {actual}"


def show_ledger(ledger: Ledger, memory: Memory, console: Console | None = None) -> None:
    """Print the memory ledger of a compiled program, the compiler's own figures under it as a cross-check.

    Nothing is printed of a program that owes nothing to host memory.
    """
    console = console or Output()
    if ledger.reason:
        _line(console, f"  memory ledger: {line(ledger_text(ledger))}")
        return
    if not ledger.lines:
        return
    cells = [
        (
            line(one.stack.name, 40) or "-",
            shape_text(one),
            " x ".join(map(str, one.stack.loops)) or "-",
            bytes_text(ledger, one),
            one.standing + (" (same in each iteration)" if one.stack.invariant else ""),
            place_text(one),
        )
        for one in ledger.lines
    ]
    heads = ("offloaded", "shape", "loops", "owed", "standing", "lies in")
    _show(heads, cells, console, details=(), numbers={3}, empty="")
    sums = totals(ledger)
    _line(console, "  owed in all: " + ", ".join(f"{sums[k]} B {k}" for k in ("owed", "kept", "lost", "undecided")))
    if ledger.partitions > 1:
        _line(console, f"  sharding chosen by the compiler, over {counted(ledger.partitions, 'devices')}")
    figures = {"host temp": memory.host_temp, "device temp": memory.temp, "argument": memory.argument}
    figures |= {"output": memory.output, "alias": memory.alias}
    said = ", ".join(f"{name} {'unknown' if size is None else f'{size} B'}" for name, size in figures.items())
    _line(console, f"  the compiler's figures per device, padded: {said}")


def _show(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    console: Console,
    *,
    details: Sequence[str],
    numbers: set[int],
    empty: str,
) -> None:
    if not rows:
        _line(console, empty)
        return
    if not console.is_terminal:
        for text in plain_lines(heads, rows, details, numbers):
            _line(console, text)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for i, head in enumerate(heads):
        options: dict[str, Any] = {"justify": "right", "no_wrap": True} if i in numbers else {"overflow": "fold"}
        table.add_column(head, **options)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    # A signature is too long for a column: under the table, each by the name in the table's first column.
    for row, detail in zip(rows, details, strict=False):
        console.print(Text.assemble((row[0], "bold"), ": ", detail))


def plain_lines(
    heads: Sequence[str], rows: Sequence[Sequence[str]], details: Sequence[str], numbers: set[int]
) -> Iterator[str]:
    """The table as aligned lines, each row followed by its detail; the same bytes for the same data."""
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]

    def aligned(row: Sequence[str]) -> str:
        cells = (
            cell.rjust(w) if i in numbers else cell.ljust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    yield aligned(heads)
    for i, row in enumerate(rows):
        yield aligned(row)
        if details:
            yield f"    {details[i]}"


def _line(console: Console, text: str) -> None:
    # No markup, no highlighting, no wrapping: what is printed is the text, at any width.
    console.print(Text(text), soft_wrap=True, highlight=False)
