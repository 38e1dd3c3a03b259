"""A case as what is reduced: whether it can be, and what of it each tier starts from."""

from __future__ import annotations

from reducer.corpus.case import Case, Tier
from reducer.errors import InputError
from reducer.ir.equations import Program


def require_reducible(case: Case, name: str) -> None:
    """Refuse a failure that one program alone does not show. `name` is what the user calls the case.

    Raises:
        InputError: it is one.
    """
    if case.kind in ("pair-differs", "offload-costs", "slow-compile"):
        raise InputError(
            f"{name}: is a failure of kind {case.kind}, which only comparing shows",
            hint="hunts shrink these; `scanshrink check` and the case's repro.py show them",
        )


def stored_programs(case: Case) -> dict[Tier, Program]:
    """The minima that a case holds itself: a module is only named in it."""
    return {tier: minimum.program for tier, minimum in case.tiers.items() if minimum.program is not None}
