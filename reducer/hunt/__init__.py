"""Hunting: generate, compile, keep what fails, shrink it, save it."""

from reducer.hunt.engine import Exhausted, Hunt, Programs
from reducer.hunt.finds import Find, SignatureRow, Snapshot, Summary
from reducer.hunt.reductions import Stopped, Unstable, Workshop
from reducer.hunt.source import Source

__all__ = [
    "Exhausted",
    "Find",
    "Hunt",
    "Programs",
    "SignatureRow",
    "Snapshot",
    "Source",
    "Stopped",
    "Summary",
    "Unstable",
    "Workshop",
]
