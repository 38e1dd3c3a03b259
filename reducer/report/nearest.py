"""What a certificate and explanations say, for people; above all the neighbours of a minimum that compile, as small
differences of the program's text: they show what a failure needs.

A certificate keeps the steps, not the programs they lead to; these are made again from the minimum. A step of another
version of the neighbourhood, or of a tier that holds no program, is only named.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from reducer.corpus.case import TierMinimum
from reducer.corpus.proof import NOT_ASKED, Certificate, Neighbour, NeighbourVerdict
from reducer.ir.canonical import canonical
from reducer.ir.codec import identity
from reducer.ir.equations import Program
from reducer.ir.normal import normalise
from reducer.ir.text import to_text
from reducer.neighbourhood import NAME, neighbours
from reducer.neighbourhood.modules import MODULE_NAME

#: Lines shown around a difference.
_CONTEXT: Final = 2
#: Most differences shown: one of each kind of step.
SHOWN: Final = 5
#: How each verdict on a neighbour reads after a number.
VERDICTS: Final[dict[NeighbourVerdict, str]] = {
    "fails-the-same": "fail the same",
    "compiles": "compile",
    "fails-otherwise": "fail otherwise",
    "invalid": "are no programs",
    "skipped": "place nothing in host memory",
    "not-kept": "lack what was to be kept",
}

#: Today's neighbourhoods, of programs and modules.
_TODAY: Final = frozenset({NAME, MODULE_NAME})


class Near(NamedTuple):
    """A neighbour that compiles: the step, and the difference it makes (empty where it cannot be shown)."""

    step: str
    difference: str = ""
    lines: int = 0
    kind: str = ""


def certificate_text(certificate: Certificate, signature: str) -> str:
    """``24 programs are one step smaller: 22 compile, 2 fail otherwise; none fails the same: it is 1-minimal.``

    That it is 1-minimal is said only if all were asked about, and of which neighbourhood if it is not today's.
    """
    counts = certificate.counts(signature)
    same = counts.pop("fails-the-same", 0)
    left = {verdict: counts.pop(verdict) for verdict in NOT_ASKED if verdict in counts}
    n = len(certificate.neighbours)
    where = "" if certificate.neighbourhood in _TODAY else f" in the neighbourhood {certificate.neighbourhood}"
    if same:
        end = f"{same} fail the same: it is not minimal"
    elif left:
        asked = n - sum(left.values())
        end = f"of the {asked} that were asked about none fails the same" if asked else "none was asked about"
    else:
        end = f"none fails the same: it is 1-minimal{where}"
    said = f"{n} {'program is' if n == 1 else 'programs are'} one step smaller{where if left or same else ''}: "
    said += f"{f'{_listed(counts)}; ' if counts else ''}{end}."
    if left:
        said += f" Not asked about: {_listed(left)}."
    if where:
        said += " That is not today's neighbourhood: `scanshrink corpus certify` asks about that."
    return said


def _listed(counts: Mapping[NeighbourVerdict, int]) -> str:
    return ", ".join(f"{n} {VERDICTS[verdict]}" for verdict, n in counts.items())


def evidence_lines(minimum: TierMinimum, signature: str) -> list[str]:
    """What is known of a minimum besides its text, for a terminal: the certificate in a line, a line per parameter."""
    lines = [certificate_text(minimum.certificate, signature)] if minimum.certificate is not None else []
    if minimum.explanations:
        width = min(max(len(one.parameter) for one in minimum.explanations), 40)
        lines += [f"  {one.parameter:{width}}  {one.still_fails}" for one in minimum.explanations]
    return lines


def shown_first(near: list[Near]) -> list[Near]:
    """The differences worth showing: of each kind of step the one that changes least, a few kinds."""
    firsts: dict[str, Near] = {}
    for one in near:
        if one.difference:
            firsts.setdefault(one.kind, one)
    return list(firsts.values())[:SHOWN]


def nearest(minimum: TierMinimum, signature: str) -> list[Near]:
    """The compiling neighbours of a certificate, those that change the fewest lines first."""
    if minimum.certificate is None:
        return []
    compiling = [n for n in minimum.certificate.neighbours if n.verdict(signature) == "compiles"]
    program = minimum.program
    if program is None or not any(n.key for n in compiling):
        return [Near(n.step) for n in compiling]
    texts = _texts(program)
    mine = to_text(program).splitlines()
    near = [_near(n, mine, texts) for n in compiling]
    return sorted(near, key=lambda one: (not one.difference, one.lines))


def _near(neighbour: Neighbour, mine: list[str], texts: dict[str, str]) -> Near:
    text = next((text for key, text in texts.items() if neighbour.key and key.startswith(neighbour.key)), None)
    if text is None:
        return Near(neighbour.step)
    # The first two lines name files, of which there are none.
    lines = list(difflib.unified_diff(mine, text.splitlines(), n=_CONTEXT, lineterm=""))[2:]
    changed = sum(not line.startswith((" ", "@")) for line in lines)
    text = "\n".join("..." if line.startswith("@@") else line for line in lines)
    return Near(neighbour.step, text, changed, neighbour.kind)


@lru_cache(maxsize=256)
def _texts(program: Program) -> dict[str, str]:
    """Identity -> text of every neighbour. Kept: a report and a page over the same corpus ask for the same ones."""
    form: Callable[[Program], Program] = canonical if canonical(program) == program else normalise
    return {identity(n.program): to_text(n.program) for n in neighbours(program, form)}
