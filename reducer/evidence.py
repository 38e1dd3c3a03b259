"""What a case says about its minimum: the certificate that nothing smaller fails so, and which values do not matter.

Both are made after a reduction and kept in the case, so that a report shows them and `check --certificate` can take
them up again. Neither changes the minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from reducer.corpus.case import Case, Tier
from reducer.corpus.proof import Certificate, Equivalence, Explanation, Neighbour, NeighbourVerdict, NeighbourWord
from reducer.errors import InputError, ProgramError
from reducer.ir.check import check
from reducer.ir.codec import identity
from reducer.ir.equations import Program
from reducer.lowering.equivalence import largest_difference
from reducer.neighbourhood import NAME, neighbours
from reducer.neighbourhood import Neighbour as Around
from reducer.neighbourhood.modules import MODULE_NAME, module_neighbours
from reducer.neighbourhood.parameters import parameters
from reducer.oracle.base import Oracle
from reducer.oracle.beside import Twinned, comparison_of
from reducer.oracle.outcome import Result
from reducer.oracle.verdict import failure
from reducer.shrink import certify
from reducer.shrink.certificate import Entry, form_of
from reducer.shrink.explain import LIMIT, Explained, explain
from reducer.stablehlo import Module
from reducer.stablehlo.normal import inlined, numbered, tidied
from reducer.stablehlo.order import identity as module_identity

C = TypeVar("C")

#: Is told each neighbour with its number and the total.
Events = Callable[[Entry, int, int], None]

#: Hex digits of an identity that a certificate keeps: enough to tell a hundred programs apart.
_DIGITS: Final = 16


def certified(
    case: Case,
    tier: Tier,
    oracle: Oracle[Program],
    *,
    keeps: Callable[[Program], bool] = lambda _: True,
    events: Events | None = None,
) -> Case:
    """The case with the certificate of its minimum at an IR tier: every neighbour asked about, in a fixed order.

    To be called at the end of a reduction, with an oracle on the case's own target that also judges programs without
    a host placement and looks for lost offloads: ``ProgramOracle(pool, want_ledger=True)``. A reduction has asked
    about all of them in its last sweep, so only those without a host placement cost a compile (a dozen of small
    programs); that is little enough for a hunt too. The same certificate for any number of workers.

    What fails the same is recorded like the rest: the certificate of a minimum that is none (a reduction stopped by
    its budget) says so (`Certificate.counts`). What lacks something that a person wanted to keep (not `keeps`) is not
    asked about, and nothing is claimed of it.

    Raises:
        WorkerError, TargetError: the oracle cannot answer any more.
        whatever `events` raises: nothing is kept then.
    """
    program = program_of(case, tier)
    around = neighbours(program, form_of(program))
    made = certificate(
        program, around, oracle, case.signature, neighbourhood=NAME, key=identity, keeps=keeps, events=events
    )
    return with_certificate(case, tier, made)


def certified_module(
    case: Case,
    module: Module,
    oracle: Oracle[Module],
    *,
    keeps: Callable[[Module], bool] = lambda _: True,
    events: Events | None = None,
) -> Case:
    """`certified` for the minimum at the StableHLO tier, which a case only names the file of: `module` is in it."""
    around = module_neighbours(module, form_of_module(module))
    made = certificate(
        module,
        around,
        oracle,
        case.signature,
        neighbourhood=MODULE_NAME,
        key=module_identity,
        keeps=keeps,
        events=events,
    )
    return with_certificate(case, "stablehlo", made)


def form_of_module(module: Module) -> Callable[[Module], Module]:
    """The strongest normal form a module is in: the one its neighbours are compared in."""
    return next((form for form in (inlined, tidied) if form(module) == module), numbered)


def certificate(
    minimum: C,
    around: Iterable[Around[C]],
    oracle: Oracle[C],
    signature: str,
    *,
    neighbourhood: str,
    key: Callable[[C], str],
    keeps: Callable[[C], bool] = lambda _: True,
    events: Events | None = None,
) -> Certificate:
    """The certificate of a minimum of any tier, to be put into a case by `with_certificate`.

    Args:
        minimum: a program or a module.
        around: its neighbours, in a fixed order.
        oracle: as in `certified`.
        signature: of the failure.
        neighbourhood: name and version of what `around` enumerates.
        key: the identity of a candidate, in hex.
        keeps: as in `certified`: the oracle skips the others.
        events: is told each neighbour as it is answered.
    """
    around = list(around)
    made = certify(
        minimum, around, oracle, lambda result: failure(result) == signature, key=key, label=failure, events=events
    )
    return Certificate(
        neighbourhood=neighbourhood,
        neighbours=tuple(
            Neighbour(
                kind=entry.kind,
                edit=entry.description,
                key=entry.key[:_DIGITS],
                outcome=(
                    msgspec.convert(entry.outcome, NeighbourWord)
                    if entry.outcome != "skipped" or keeps(one.program)
                    else "not-kept"
                ),
                signature=entry.signature,
            )
            for one, entry in zip(around, made.entries, strict=True)
        ),
    )


def outdated(stored: Certificate | None, minimum: Program | Module) -> bool:
    """Whether a certificate has to be made (anew): there is none, or it is of another neighbourhood than today's.

    No compiler is asked: neighbours are compared by the step that leads to them and their identity.
    """
    if stored is None:
        return True
    steps: list[tuple[str, str, str]]
    if isinstance(minimum, Program):
        name = NAME
        steps = [(n.kind, n.description, identity(n.program)) for n in neighbours(minimum, form_of(minimum))]
    else:
        name = MODULE_NAME
        around = module_neighbours(minimum, form_of_module(minimum))
        steps = [(n.kind, n.description, module_identity(n.program)) for n in around]
    named = [(kind, edit, key[:_DIGITS]) for kind, edit, key in steps]
    return stored.neighbourhood != name or [(n.kind, n.edit, n.key) for n in stored.neighbours] != named


def with_certificate(case: Case, tier: Tier, made: Certificate) -> Case:
    """The case with this certificate at one of its tiers."""
    minimum = msgspec.structs.replace(case.tiers[tier], certificate=made)
    return msgspec.structs.replace(case, tiers={**case.tiers, tier: minimum})


def program_of(case: Case, tier: Tier) -> Program:
    """The minimum of an IR tier.

    Raises:
        InputError: the case has no program there.
    """
    minimum = case.tiers.get(tier)
    if minimum is None or minimum.program is None:
        raise InputError(f"case {case.slug} has no program at the {tier} tier")
    return minimum.program


def explained(
    case: Case,
    tier: Tier,
    oracle: Oracle[Program],
    *,
    limit: int = LIMIT,
    wanted: Callable[[Result], bool] | None = None,
) -> Case:
    """The case with what its minimum at an IR tier does not depend on: other values of every parameter that still fail.

    Tries at most `limit` programs, a few dozen of them usually, each a compile: worth it for a minimum that a person
    asked for (`reduce`); a hunt has better uses for its workers. `oracle` as for `certified`. `wanted` tells the
    failure, by default the case's own, which is another than a tier's where any failure was to be kept.

    Raises:
        WorkerError, TargetError: the oracle cannot answer any more.
    """
    found = explain(
        parameters(program_of(case, tier)),
        oracle,
        wanted or (lambda result: failure(result) == case.signature),
        check=check,
        limit=limit,
    )
    return with_explanations(case, tier, found)


def with_explanations(case: Case, tier: Tier, found: Iterable[Explained]) -> Case:
    """The case with these explanations at one of its tiers."""
    told = tuple(
        Explanation(parameter=one.parameter, still_fails=one.still_fails, tried={**one.tried}) for one in found
    )
    minimum = msgspec.structs.replace(case.tiers[tier], explanations=told)
    return msgspec.structs.replace(case, tiers={**case.tiers, tier: minimum})


def run_beside_twin(case: Case) -> Case:
    """The case of a pair with the largest difference of the two on the CPU, or a note why they did not run; others as
    they are. That a program means the same as its twin is not taken from how the twin is derived.
    """
    comparison = comparison_of(case.kind, case.signature)
    program = case.minimum.program
    if not isinstance(comparison, Twinned) or program is None:
        return case
    try:
        (twin,) = comparison.others(program)
        largest = largest_difference(program, twin)
    except ProgramError as error:
        return msgspec.structs.replace(case, notes=(*case.notes, f"Not compared with its twin: {error.message}"))
    return msgspec.structs.replace(case, equivalence=Equivalence(same_as=comparison.name, largest_difference=largest))


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


__all__ = [
    "Recheck",
    "certificate",
    "certified",
    "certified_module",
    "explained",
    "outdated",
    "program_of",
    "recheck",
    "with_certificate",
    "with_explanations",
]
