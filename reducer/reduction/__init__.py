"""One reduction from the claim to the case: checking, voting, tiers, settings, saving, going on after an end."""

from __future__ import annotations

from reducer.reduction.model import Progress, Reduced, Request, SideCase, Stage, Stopped, Watcher
from reducer.reduction.run import Reduction
from reducer.reduction.start import Refused
from reducer.reduction.wanted import Wanted, wanted_of

__all__ = [
    "Progress",
    "Reduced",
    "Reduction",
    "Refused",
    "Request",
    "SideCase",
    "Stage",
    "Stopped",
    "Wanted",
    "Watcher",
    "wanted_of",
]
