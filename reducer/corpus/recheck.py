"""A certificate taken up again: what of it is otherwise by now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from reducer.corpus.proof import Certificate, Neighbour, NeighbourVerdict


class Recheck(msgspec.Struct, frozen=True):
    """A certificate taken up again: how many neighbours there are now, and what is otherwise than it says.

    Attributes:
        counts: neighbours by verdict, as seen now.
        failing: steps that lead to a smaller program which fails the same: the minimum is none.
        differing: step -> what it says and what is, where they differ.
    """

    counts: Mapping[NeighbourVerdict, int]
    failing: tuple[str, ...]
    differing: Mapping[str, str]

    @property
    def holds(self) -> bool:
        """True if every neighbour is there, each with the outcome it had, and none fails the same."""
        return not self.failing and not self.differing

    def as_json(self) -> dict[str, Any]:
        """What machines read."""
        return {
            "holds": self.holds,
            "neighbours": sum(self.counts.values()),
            "counts": dict(self.counts),
            "failing": list(self.failing),
            "differing": dict(self.differing),
        }


def recheck(stored: Certificate, now: Certificate, signature: str) -> Recheck:
    """Compare a case's certificate with one made anew."""
    # A step can be taken in several ways, as an operation replaced by `sin` of either argument.
    then = {(n.kind, n.edit, n.key): n for n in stored.neighbours}
    # Of what was not to be tried nothing is claimed, and a minimum need not be smaller than it.
    barred = {place for place, n in then.items() if n.outcome == "not-kept"}
    around = tuple(then[p] if (p := (n.kind, n.edit, n.key)) in barred else n for n in now.neighbours)
    now = msgspec.structs.replace(now, neighbours=around)
    seen = {(n.kind, n.edit, n.key): n for n in now.neighbours}
    differing: dict[str, str] = {}
    for place in dict.fromkeys((*then, *seen)):
        old, new = then.get(place), seen.get(place)
        if old is not None and new is not None and _same(old, new, signature):
            continue
        step = f"{place[0]} {place[1]} ({place[2]})"
        differing[step] = f"{_said(old, signature)} in the certificate, {_said(new, signature)} now"
    if stored.neighbourhood != now.neighbourhood:
        differing = {"neighbourhood": f"{stored.neighbourhood} in the certificate, {now.neighbourhood} now"} | differing
    failing = tuple(n.step for n in now.neighbours if n.verdict(signature) == "fails-the-same")
    return Recheck(now.counts(signature), failing, differing)


def _same(old: Neighbour, new: Neighbour, signature: str) -> bool:
    # What was not compiled then may be now: nothing is claimed of it but that it does not fail the same.
    if "skipped" in (old.outcome, new.outcome):
        return new.verdict(signature) != "fails-the-same"
    return (old.outcome, old.signature) == (new.outcome, new.signature)


def _said(neighbour: Neighbour | None, signature: str) -> str:
    if neighbour is None:
        return "not there"
    verdict = neighbour.verdict(signature)
    return f"{verdict} ({neighbour.signature})" if verdict == "fails-otherwise" and neighbour.signature else verdict


__all__ = ["Recheck", "recheck"]
