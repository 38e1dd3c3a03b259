"""The reducer's driver: makes a candidate smaller while it fails in the same way. See `driver`."""

from __future__ import annotations

from reducer.shrink.certificate import Certificate, certify, certify_program
from reducer.shrink.driver import StartError, shrink
from reducer.shrink.model import (
    Accepted,
    Event,
    Finished,
    Found,
    PassFinished,
    PassStarted,
    PassStats,
    Shrunk,
    SideFind,
    Started,
    Tier,
    Tried,
)
from reducer.shrink.programs import program_tier, shrink_program

__all__ = [
    "Accepted",
    "Certificate",
    "Event",
    "Finished",
    "Found",
    "PassFinished",
    "PassStarted",
    "PassStats",
    "Shrunk",
    "SideFind",
    "StartError",
    "Started",
    "Tier",
    "Tried",
    "certify",
    "certify_program",
    "program_tier",
    "shrink",
    "shrink_program",
]
