"""One self-contained page over a corpus: the cases, and what each does on every release recorded.

No script, no font, no image, nothing loaded from anywhere; every value escaped. What a cell says it says in words
and a sign, colour only repeats it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from reducer.corpus.atomic import storing
from reducer.corpus.case import Case, OutcomeRecord, TierMinimum
from reducer.corpus.store import Corpus, Damaged
from reducer.files import write_file
from reducer.ir.text import to_text
from reducer.oracle.target import release_order
from reducer.report.markdown import claim
from reducer.report.nearest import Near, certificate_text, nearest, shown_first
from reducer.report.render import environment, summary, target_text


class Look(NamedTuple):
    """How one sort of result looks: a sign, a word, the CSS class of its colour, and what it means."""

    sign: str
    word: str
    css: str
    meaning: str


LOOKS: Final = {
    "fails": Look("✗", "fails", "fails", "fails as the case says"),
    "crashes": Look("☠", "crashes", "fails", "fails as the case says, taking the compiler's process down"),
    "lost": Look("◐", "compiles, wrong", "lost", "compiles, with the failure that the case is about"),
    "other": Look("≠", "fails otherwise", "other", "fails in another way"),
    "compiles": Look("✓", "compiles", "compiles", "compiles as it should"),
    "unjudged": Look("?", "cannot judge", "unjudged", "invalid there, or that release does not work with this jaxlib"),
    "untried": Look("·", "not tried", "untried", "no record"),
}


class Column(NamedTuple):
    """A column of the matrix: one libtpu file and topology, and how to call it."""

    sha256: str
    topology: str
    libtpu: str


def look_of(case: Case, record: OutcomeRecord | None) -> Look:
    """How a record of a case looks in the matrix."""
    if record is None:
        return LOOKS["untried"]
    if record.outcome in ("invalid", "incompatible"):
        return LOOKS["unjudged"]
    if record.outcome == "compiled":
        return LOOKS["lost" if record.signature else "compiles"]
    if record.signature != case.signature and (not record.family or record.family != case.family):
        return LOOKS["other"]
    return LOOKS["crashes" if record.outcome == "crashed" else "fails"]


def columns(cases: Iterable[Case]) -> list[Column]:
    """Every libtpu file and topology that is recorded, older releases first."""
    named: dict[tuple[str, str], str] = {}
    for case in cases:
        for record in case.outcomes:
            named.setdefault(record.where, record.libtpu)
    made = (Column(sha256, topology, libtpu) for (sha256, topology), libtpu in named.items())
    return sorted(made, key=lambda c: (release_order(c.libtpu), c.topology, c.sha256))


def page(entries: Iterable[Case | Damaged], *, title: str = "scanshrink corpus", link: str | None = None) -> str:
    """The page. `link` is the relative address of the corpus folder; without it, case names are no links."""
    listed = list(entries)
    cases = [entry for entry in listed if isinstance(entry, Case)]
    releases = columns(cases)
    rows = [
        {
            "case": case,
            "claim": claim(case),
            "summary": summary(case.minimum),
            "target": target_text(case),
            "href": None if link is None else "/".join([link.rstrip("/"), quote(case.slug)]),
            "cells": [_cell(case, column) for column in releases],
            "texts": [(tier, m, "" if m.program is None else to_text(m.program)) for tier, m in case.tiers.items()],
            "near": {tier: _near(m, case.signature) for tier, m in case.tiers.items()},
        }
        for case in cases
    ]
    template = environment(html=True).get_template("page.html.jinja")
    return template.render(
        title=title,
        rows=rows,
        releases=releases,
        looks=list(LOOKS.values()),
        damaged=[entry for entry in listed if isinstance(entry, Damaged)],
        families=len({case.family for case in cases}),
    )


def _near(minimum: TierMinimum, signature: str) -> tuple[str, list[Near]]:
    """What the certificate says in a sentence, and the nearest neighbours that compile."""
    if minimum.certificate is None:
        return "", []
    return certificate_text(minimum.certificate, signature), shown_first(nearest(minimum, signature))


def write_page(corpus: Corpus, out: Path, *, title: str = "") -> tuple[int, int]:
    """Write the page of a corpus to `out`, replacing it in one step; returns how many cases and damaged ones it shows.

    Raises:
        InputError: the corpus cannot be listed.
        StorageError: `out` cannot be written.
    """
    entries = list(corpus)
    out = Path(out)
    relative = os.path.relpath(corpus.folder.absolute(), out.absolute().parent)
    text = page(entries, title=title or f"scanshrink: {corpus.folder.name or corpus.folder}", link=quote(relative))
    with storing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        write_file(out, text.encode("utf-8", "backslashreplace"))
    damaged = sum(isinstance(entry, Damaged) for entry in entries)
    return len(entries) - damaged, damaged


def _cell(case: Case, column: Column) -> dict[str, object]:
    record = case.outcome_on(column.sha256, column.topology)
    look = look_of(case, record)
    return {"look": look, "detail": record.signature or record.outcome if record is not None else look.meaning}
