"""Which values of a minimum's parameters still fail the same: what the failure does not depend on.

A bounded search after the reduction: every parameter by itself, a few other values of it each, the same ones whatever
the answers are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Final, TypeVar

import msgspec

from reducer.errors import ProgramError
from reducer.neighbourhood.parameters import ABSENT, PRESENT, Parameter
from reducer.oracle.base import Oracle
from reducer.oracle.outcome import Result
from reducer.shrink.certificate import Verdict, ask_all, verdict_of

C = TypeVar("C")

#: Most values tried for one minimum.
LIMIT: Final = 120

_WORDS: Final[dict[Verdict, tuple[str, str]]] = {
    "compiles": ("compiles", "compile"),
    "fails-otherwise": ("fails otherwise", "fail otherwise"),
    "skipped": ("places nothing on the host", "place nothing on the host"),
}
_REQUIRED: Final = {PRESENT: "required", ABSENT: "must not be there"}
_WITHOUT: Final = {PRESENT: "without", ABSENT: "with it"}


class Explained(msgspec.Struct, frozen=True):
    """One parameter: what became of each value, the minimum's own first. A value without a program is left out."""

    parameter: str
    tried: dict[str, Verdict]

    @property
    def still_fails(self) -> str:
        """For people: ``any tried: 1, 2, 3``; ``1, 2 (3, 4 compile)``; ``only 1 (2, 3 compile)``."""
        judged = {value: verdict for value, verdict in self.tried.items() if verdict != "invalid"}
        failing = [value for value, verdict in judged.items() if verdict == "fails-the-same"]
        others = [(value, verdict) for value, verdict in judged.items() if verdict != "fails-the-same"]
        if not others:
            if set(judged) == {PRESENT, ABSENT}:
                return "there or not"
            return f"any tried: {', '.join(sorted(failing, key=_natural))}"
        if set(judged) == {PRESENT, ABSENT}:
            verdict = others[0][1]
            return f"{_REQUIRED[failing[0]]} (it {_WORDS[verdict][0]} {_WITHOUT[failing[0]]})"
        parts = []
        for verdict, group in groupby(sorted(others, key=lambda o: o[1]), key=lambda o: o[1]):
            values = sorted((value for value, _ in group), key=_natural)
            parts.append(f"{', '.join(values)} {_WORDS[verdict][len(values) > 1]}")
        said = "; ".join(parts)
        if len(failing) > 1:
            return f"{', '.join(sorted(failing, key=_natural))} ({said})"
        return f"only {failing[0]} ({said})"


def explain(
    candidates: Iterable[Parameter[C]],
    oracle: Oracle[C],
    wanted: Callable[[Result], bool],
    *,
    check: Callable[[C], None],
    limit: int = LIMIT,
) -> tuple[Explained, ...]:
    """Try the other values of each parameter; the same answer for any number of workers.

    Parameters of which no other value could be tried are left out, and so are those after the limit: a whole parameter
    is tried or none of it.

    Args:
        candidates: the parameters of a minimum that fails as wanted.
        oracle: of the same target.
        wanted: tells the failure.
        check: raises `ProgramError` for a candidate that is not well-formed.
        limit: most values tried.

    Raises:
        WorkerError, TargetError: the oracle cannot answer any more.
    """
    places: list[tuple[int, str]] = []
    built: list[C] = []
    chosen: list[Parameter[C]] = []
    for parameter in candidates:
        values: list[tuple[str, C]] = []
        for value, build in parameter.others:
            try:
                candidate = build()
                check(candidate)
            except ProgramError:
                continue
            values.append((value, candidate))
        if not values:
            continue
        if len(built) + len(values) > limit:
            break
        places += [(len(chosen), value) for value, _ in values]
        built += [candidate for _, candidate in values]
        chosen.append(parameter)
    tried: list[dict[str, Verdict]] = [{parameter.own: "fails-the-same"} for parameter in chosen]
    for (at, value), result in zip(places, ask_all(oracle, built), strict=True):
        tried[at][value] = verdict_of(result, wanted)
    return tuple(
        Explained(parameter.name, found)
        for parameter, found in zip(chosen, tried, strict=True)
        if any(verdict != "invalid" for value, verdict in found.items() if value != parameter.own)
    )


def _natural(value: str) -> tuple[int, int, str]:
    return (0, int(value), "") if value.isdigit() else (1, 0, value)
