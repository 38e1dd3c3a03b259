"""What a case says about its minimum: the certificate that nothing smaller fails so, and which values do not matter.

Both are made after a reduction and kept in the case, so that a report shows them and `check --certificate` can take
them up again (`reducer.corpus.recheck`). Neither changes the minimum.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import msgspec

from reducer.corpus.case import Case, Tier
from reducer.corpus.proof import Certificate, Equivalence, Explanation, Neighbour, NeighbourWord
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
    made = certificate(
        program, around(program), oracle, case.signature, neighbourhood=NAME, key=identity, keeps=keeps, events=events
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
    made = certificate(
        module,
        around_module(module),
        oracle,
        case.signature,
        neighbourhood=MODULE_NAME,
        key=module_identity,
        keeps=keeps,
        events=events,
    )
    return with_certificate(case, "stablehlo", made)


def around(program: Program) -> Iterable[Around[Program]]:
    """The neighbours that the certificate of a program is about, in its order."""
    return neighbours(program, form_of(program))


def around_module(module: Module) -> Iterable[Around[Module]]:
    """`around` for a module."""
    return module_neighbours(module, form_of_module(module))


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
        steps = [(n.kind, n.description, identity(n.program)) for n in around(minimum)]
    else:
        name = MODULE_NAME
        steps = [(n.kind, n.description, module_identity(n.program)) for n in around_module(minimum)]
    named = [(kind, edit, key[:_DIGITS]) for kind, edit, key in steps]
    return stored.neighbourhood != name or [(n.kind, n.edit, n.key) for n in stored.neighbours] != named


def failing_neighbour(made: Certificate, minimum: Program | Module, signature: str) -> Program | Module | None:
    """The first neighbour that a certificate just made says fails the same; None if the minimum is 1-minimal."""
    found = (n for n, said in enumerate(made.neighbours) if said.verdict(signature) == "fails-the-same")
    number = next(found, None)
    if number is None:
        return None
    if isinstance(minimum, Program):
        return next(itertools.islice(around(minimum), number, None)).program
    return next(itertools.islice(around_module(minimum), number, None)).program


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


__all__ = [
    "certificate",
    "certified",
    "certified_module",
    "explained",
    "failing_neighbour",
    "outdated",
    "program_of",
    "with_certificate",
    "with_explanations",
]
