"""The notes of a case whose minimum is none yet: who writes one and who looks for one use the same words."""

from __future__ import annotations

from typing import Final

import msgspec

from reducer.corpus.case import Case

REDUCTION_ENDED: Final = "Not fully shrunk: the reduction was ended early. The same command goes on."
HUNT_ENDED: Final = "Not fully shrunk: the hunt that found it ended first. `scanshrink hunt --resume` goes on."
MET: Final = "Met while another failure was reduced, and not shrunk itself."
UNSHRUNK: Final = frozenset({REDUCTION_ENDED, HUNT_ENDED, MET})


def shrunk(case: Case) -> bool:
    """Whether nothing in the case says that it could be smaller."""
    return UNSHRUNK.isdisjoint(case.notes)


def noted(case: Case, *, unshrunk: str = "") -> Case:
    """The case with `unshrunk` as its only note of that sort, or with none."""
    notes = tuple(note for note in case.notes if note not in UNSHRUNK)
    return msgspec.structs.replace(case, notes=(*notes, unshrunk) if unshrunk else notes)
