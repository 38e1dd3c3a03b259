"""What every benchmark shares: the machine's description, medians with their spread, sections of docs/benchmarks.md."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "benchmarks.md"


def machine() -> str:
    """One line that says on what the figures were measured."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("jax", "jaxlib", "hypothesis"))
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores ({platform.machine()}, shared), Python {platform.python_version()}, {versions}"


def spread(values: Sequence[float], digits: int = 1) -> str:
    """``median (min-max)``."""
    if not values:
        return "-"
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in lines)


def publish(name: str, text: str, *, write: bool) -> None:
    """Print a section; with `write`, also put it between its markers in docs/benchmarks.md.

    The section names the command that made it and the machine, so that anyone can rerun it.
    """
    command = " ".join(["python", *sys.argv]).replace(str(ROOT) + "/", "")
    body = f"{text.strip()}\n\n`{command}` on {machine()}."
    print(body)
    if not write:
        return
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    page = RESULTS.read_text() if RESULTS.exists() else "# Benchmarks\n"
    section = f"{begin}\n{body}\n{end}"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    page = pattern.sub(lambda _: section, page) if pattern.search(page) else f"{page.rstrip()}\n\n{section}\n"
    RESULTS.write_text(page)
