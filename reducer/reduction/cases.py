"""A case as what is reduced: what of it is to stay, and what of it each tier starts from."""

from __future__ import annotations

from reducer.corpus.case import Case, Tier
from reducer.errors import InputError
from reducer.ir.equations import Program
from reducer.oracle.beside import comparison_of
from reducer.reduction.wanted import Wanted


def wanted_of_case(case: Case, wanted: Wanted, name: str) -> Wanted:
    """What is to stay of a case: what was asked for, or a failure that only comparing shows. `name` is the user's.

    The program of such a failure is fine by itself: nothing would be found in it that could stay.

    Raises:
        InputError: the case is a slow compile, and no time-out was asked for.
    """
    if case.kind == "slow-compile" and not wanted.hangs:
        expected = case.expected()
        limit = f"{expected.slow_limit:.0f}" if expected is not None and expected.slow_limit else "SECONDS"
        raise InputError(
            f"{name}: is a failure of kind slow-compile, which depends on the machine",
            hint=f"`--signature timeout --timeout {limit}` keeps what takes longer than that here",
        )
    compared = comparison_of(case.kind, case.signature) is not None
    return Wanted("signature", case.signature) if compared and wanted.mode == "start" else wanted


def stored_programs(case: Case) -> dict[Tier, Program]:
    """The minima that a case holds itself: a module is only named in it."""
    return {tier: minimum.program for tier, minimum in case.tiers.items() if minimum.program is not None}
