"""When two finds are one failure, and which of them a corpus keeps."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from reducer.corpus.case import TIERS, Case, Tier, TierMinimum
from reducer.corpus.notes import UNSHRUNK, noted
from reducer.ir.codec import identity
from reducer.ir.order import order_key


class Merged(NamedTuple):
    """What to keep of two finds: the case, the tiers taken from the newer one, whether anything but counts changed."""

    case: Case
    taken: tuple[Tier, ...]
    changed: bool


def same_failure(known: Case, find: Case) -> bool:
    """Whether `find` is `known` again: equal kind, signature and tier, and `known` fails so on the find's target.

    The last condition keeps apart a bug of one release and a find of another release whose message is the same: each
    needs a script that shows it on its own release. Once the outcome of `known` on the other release is recorded,
    they are one.
    """
    if known.key != find.key:
        return False
    if same_target(known, find):
        return True
    record = known.outcome_on(find.target.sha256, find.target.topology)
    return record is not None and record.signature == find.signature


def same_target(a: Case, b: Case) -> bool:
    """Whether two cases were found on the same libtpu file and topology."""
    return (a.target.sha256, a.target.topology) == (b.target.sha256, b.target.topology)


def smaller(a: TierMinimum, b: TierMinimum) -> bool:
    """Whether `a` is smaller than `b`, both of one tier: by the IR's order, or size and key of the modules."""
    return _order(a) < _order(b)


def merge(known: Case, find: Case, *, count: bool = True) -> Merged:
    """Combine two finds of one failure. Counts add up unless not `count`; of each tier the smaller minimum stays.

    What belongs to a minimum (how it was found, its start, its outcomes per release) goes with it: an outcome of the
    older program says nothing about the smaller one.
    """
    top = known.tier
    taken = tuple(
        tier
        for tier in TIERS
        if tier in find.tiers and (tier not in known.tiers or _replaces(find, known, tier, options=tier == top))
    )
    tiers = {tier: (find if tier in taken else known).tiers[tier] for tier in TIERS if tier in {*known.tiers, *taken}}
    finds = known.finds + (find.finds if count else 0)
    notes = _notes(known, find, taken)
    if top in taken:
        case = msgspec.structs.replace(find, slug=known.slug, tiers=tiers, finds=finds, notes=notes)
    else:
        case = msgspec.structs.replace(known, tiers=tiers, finds=finds, notes=notes)
        if _same_minimum(known.minimum, find.minimum) and known.target.options == find.target.options:
            case = _learn(case, find)
    return Merged(case, taken, msgspec.structs.replace(case, finds=known.finds) != known)


def _notes(known: Case, find: Case, taken: tuple[Tier, ...]) -> tuple[str, ...]:
    # That a minimum is none yet is said of the cases that a minimum stays of; everything else of both.
    stay = [case for case, some in ((known, {*known.tiers} - {*taken}), (find, taken)) if some]
    unshrunk = [note for case in stay for note in case.notes if note in UNSHRUNK]
    return tuple(dict.fromkeys((*noted(known).notes, *noted(find).notes, *unshrunk)))


def _learn(case: Case, find: Case) -> Case:
    # The same minimum again: what the newer find knows beyond the older one is worth keeping.
    minimum = case.minimum
    minimum = msgspec.structs.replace(
        minimum,
        certificate=find.minimum.certificate or minimum.certificate,
        explanations=find.minimum.explanations or minimum.explanations,
    )
    return msgspec.structs.replace(
        case.with_outcomes(*(r for r in find.outcomes if case.outcome_on(*r.where) is None)),
        tiers={**case.tiers, case.tier: minimum},
        equivalence=find.equivalence or case.equivalence,
    )


def _replaces(find: Case, known: Case, tier: Tier, *, options: bool) -> bool:
    a, b = find.tiers[tier], known.tiers[tier]
    # A case that needs no compiler option is worth more than a smaller one that does.
    needs = (len(find.target.options), len(known.target.options)) if options else (0, 0)
    return needs[0] < needs[1] or (needs[0] == needs[1] and smaller(a, b))


def _same_minimum(a: TierMinimum, b: TierMinimum) -> bool:
    if a.program is None or b.program is None:
        return False
    return identity(a.program) == identity(b.program)


def _order(minimum: TierMinimum) -> tuple[Any, ...]:
    if minimum.program is not None:
        return (order_key(minimum.program),)
    return minimum.size, minimum.order_key, minimum.partitions
