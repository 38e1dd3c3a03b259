"""Our word for a result."""

from __future__ import annotations

import pytest

from reducer.ir.build import Builder
from reducer.ir.equations import Grad, Program
from reducer.ir.policies import OffloadNames
from reducer.ir.types import Type
from reducer.ledger import Ledger, Owed, Stack, ledger_of
from reducer.oracle.outcome import (
    Compiled,
    Crashed,
    Incompatible,
    Invalid,
    Memory,
    Rejected,
    Result,
    Skipped,
    TimedOut,
)
from reducer.oracle.verdict import failure, verdict, verdict_of

COMPILED = Compiled(Memory())
OWED = Owed((Stack("float32", (4, 3, 8, 128), (4, 3), "h", "eqns[0].body"),))
LOST = ledger_of(OWED, {"f32[4,3,8,128]": (0,), "f32[3,8,128]": (5,)})
KEPT = ledger_of(OWED, {"f32[4,3,8,128]": (5,)})
UNKNOWN = ledger_of(OWED, None, "no text")
E1200 = "INVALID_ARGUMENT: E1200: Tensor ... but the layout for this output is not set to host memory."


@pytest.mark.parametrize(
    ("result", "word", "kind"),
    [
        (Result(COMPILED), "ok", None),
        (Result(COMPILED, ledger=KEPT), "ok", None),
        (Result(COMPILED, ledger=UNKNOWN), "not-measurable", None),
        (Result(COMPILED, ledger=Ledger()), "ok", None),
        (Result(COMPILED, ledger=LOST), "lost-offload", "lost-offload"),
        (Result(Rejected("INTERNAL: odd")), "failed", "error"),
        (Result(Crashed("SIGABRT", "a.cc:1] Check failed: x")), "failed", "error"),
        (Result(TimedOut(60.0)), "failed", "error"),
        (Result(Rejected(E1200)), "user-error", None),
        # What the compiler says is not declared to lie on the host is not there at all.
        (Result(Rejected(E1200), returns_host=False), "failed", "error"),
        (Result(TimedOut(60.0, "lower"), returns_host=False), "user-error", None),
        (Result(Invalid("TypeError: no"), returns_host=False), "user-error", None),
        (Result(Invalid("TypeError: no")), "user-error", None),
        (Result(TimedOut(60.0, "lower")), "user-error", None),
        (Result(Rejected("RESOURCE_EXHAUSTED: Ran out of memory")), "not-measurable", None),
        (Result(Incompatible("x + 1 does not compile")), "not-measurable", None),
        (Result(Skipped("no host placement")), "not-measurable", None),
    ],
)
def test_words(result: Result, word: str, kind: str | None) -> None:
    found = verdict(result)
    assert (found.word, found.kind) == (word, kind)
    assert (found.failure is not None) == (kind is not None)


def test_the_signature_of_a_loss_says_what_and_how_deep() -> None:
    found = verdict(Result(COMPILED, ledger=LOST)).signature
    assert found is not None
    assert (found.text, found.family, found.slug) == (
        "lost-offload outer stack, 2 loops deep",
        "lost-offload",
        "lost-offload",
    )
    assert failure(Result(COMPILED, ledger=LOST)) == found.text


def test_a_users_error_has_a_signature_and_is_no_failure() -> None:
    assert verdict(Result(Rejected(E1200))).signature is not None
    assert failure(Result(Rejected(E1200))) is None


def test_why_nothing_was_judged_is_said() -> None:
    assert verdict(Result(COMPILED, ledger=UNKNOWN)).reason == "it compiles, but no text"


def test_a_program_may_have_nothing_to_offload() -> None:
    inner = Builder()
    x = inner.param(Type("float32", (8, 128)))
    body = inner.block(inner.name(inner.op("sin", x), "h"))
    b = Builder()
    x = b.param(Type("float32", (8, 128)))
    program = Program(b.block(*b.checkpoint(body, x, policy=OffloadNames(("h",)))), gradient=Grad((0,)))
    found = verdict_of(program, Result(COMPILED, ledger=Ledger()))
    assert (found.word, found.kind, found.failure) == ("nothing-to-offload", None, None)
    assert found.reason == "h: the backward pass does not need this value"
    assert verdict_of(program, Result(COMPILED, ledger=LOST)).word == "lost-offload"
    assert verdict_of(program, Result(COMPILED)).word == "ok"
