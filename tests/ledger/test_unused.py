"""Names that a policy offloads in vain, and why."""

from __future__ import annotations

import pytest

from reducer.ir.build import Builder
from reducer.ir.equations import Grad, Program
from reducer.ir.policies import Both, OffloadDots, OffloadNames, Policy, SaveNames
from reducer.ir.types import Type
from reducer.ledger import Owed, Stack, Unused, unused

TILE = Type("float32", (8, 128))
NOTHING = Owed()


def program(policy: Policy | None, *, gradient: bool = True, name: str = "h") -> Program:
    """``checkpoint(sin(name(x)))``."""
    inner = Builder()
    body = inner.block(inner.op("sin", inner.name(inner.param(TILE), name)))
    b = Builder()
    block = b.block(*b.checkpoint(body, b.param(TILE), policy=policy))
    return Program(block, gradient=Grad((0,)) if gradient else None)


def owes(*names: str) -> Owed:
    return Owed((Stack("float32", (12, 8, 128), (12,), names[0], "eqns[0].body", also=names[1:]),))


def test_a_name_that_is_kept_is_used() -> None:
    assert unused(program(OffloadNames(("h",))), owes("h")) == ()


def test_every_name_of_a_value_is_used() -> None:
    assert unused(program(OffloadNames(("h",))), owes("g", "h")) == ()


@pytest.mark.parametrize(
    ("policy", "owed", "expected"),
    [
        (OffloadNames(("h",)), NOTHING, (Unused("h", "the backward pass does not need this value"),)),
        (OffloadNames(("q", "h")), owes("h"), (Unused("q", "no equation carries this name"),)),
        (Both(SaveNames(("h",)), OffloadNames(("q",))), owes("h"), (Unused("q", "no equation carries this name"),)),
        (
            OffloadDots(),
            NOTHING,
            (Unused("matrix products", "no product without batch dimensions is needed by the backward pass"),),
        ),
        (OffloadDots(), owes(""), ()),
        (SaveNames(("q",)), NOTHING, ()),
        (None, NOTHING, ()),
        (OffloadNames(("h",)), Owed(reason="not expressible"), ()),
        (OffloadNames(("q",)), Owed(reason="not expressible"), (Unused("q", "no equation carries this name"),)),
    ],
)
def test_reasons(policy: Policy | None, owed: Owed, expected: tuple[Unused, ...]) -> None:
    assert unused(program(policy), owed) == expected


def test_without_a_gradient_nothing_is_kept() -> None:
    assert unused(program(OffloadNames(("h",)), gradient=False), NOTHING) == (
        Unused("h", "the program is not differentiated, so nothing is kept for a backward pass"),
    )
