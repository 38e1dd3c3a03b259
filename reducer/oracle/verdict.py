"""Our word for a result: the compiler's outcome, judged together with what the program asked for.

The one place that says what counts as a failure. Checks, hunts, reductions and the corpus all ask it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from reducer.ir.equations import Program
from reducer.ledger.owed import Owed
from reducer.ledger.unused import unused
from reducer.ledger.words import ledger_text
from reducer.oracle.outcome import Compiled, Incompatible, Invalid, Rejected, Result, Skipped, message_of
from reducer.oracle.signature import (
    LOST_OFFLOAD,
    OFFLOAD_COSTS,
    PAIR_DIFFERS,
    SLOW_COMPILE,
    Signature,
    is_out_of_memory,
    is_user_error,
    signature,
)

Word: TypeAlias = Literal[
    "ok",
    "failed",
    "lost-offload",
    "offload-costs",
    "pair-differs",
    "slow-compile",
    "nothing-to-offload",
    "flaky",
    "user-error",
    "not-measurable",
]
Kind: TypeAlias = Literal["error", "lost-offload", "offload-costs", "pair-differs", "slow-compile", "flaky"]
KINDS: tuple[Kind, ...] = ("error", "lost-offload", "offload-costs", "pair-differs", "slow-compile", "flaky")
"""What a hunt looks for. "error": the compiler rejects the program, crashes or hangs. "flaky": it ends in several ways,
which only repeats can tell."""

_KIND_OF: dict[Word, Kind] = {
    "failed": "error",
    "lost-offload": "lost-offload",
    "offload-costs": "offload-costs",
    "pair-differs": "pair-differs",
    "slow-compile": "slow-compile",
    "flaky": "flaky",
}


class Verdict(msgspec.Struct, frozen=True):
    """`signature` identifies the failure; a user's error has one too, and is none. `reason`: why nothing was judged."""

    word: Word
    signature: Signature | None = None
    reason: str = ""

    @property
    def kind(self) -> Kind | None:
        """What sort of failure this is; None if it is none."""
        return _KIND_OF.get(self.word)

    @property
    def failure(self) -> Signature | None:
        """The signature, if this is a failure of the compiler's."""
        return self.signature if self.kind is not None else None


def verdict(result: Result) -> Verdict:
    """Judge a result. Whether an offload was lost is known only if the memory ledger was asked for."""
    answer = result.answer
    if isinstance(answer, Skipped):
        return Verdict("not-measurable", reason=answer.reason)
    if isinstance(answer, Compiled):
        return _of_compiled(result)
    found = signature(answer)
    if isinstance(answer, Invalid) or (is_user_error(answer) and not _blamed_wrongly(result)):
        return Verdict("user-error", found)
    if isinstance(answer, Incompatible):
        return Verdict("not-measurable", reason="this jaxlib and this libtpu cannot work together")
    if is_out_of_memory(answer):
        return Verdict("not-measurable", found, reason="out of memory")
    return Verdict("failed", found)


def verdict_of(program: Program, result: Result) -> Verdict:
    """As `verdict`, and a program that compiles may have nothing to offload: its author wants to be told.

    That is no failure of the compiler's, and hunts do not look for it.
    """
    found = verdict(result)
    if found.word != "ok" or result.ledger is None:
        return found
    idle = unused(program, Owed(tuple(line.stack for line in result.ledger.lines)))
    return Verdict("nothing-to-offload", reason="; ".join(map(str, idle))) if idle else found


def _of_compiled(result: Result) -> Verdict:
    ledger = result.ledger
    if ledger is None:
        return _of_ok(result)
    if ledger.reason:
        return Verdict("not-measurable", reason=f"it compiles, but {ledger.reason}")
    if (loss := ledger.loss) is not None:
        return Verdict("lost-offload", Signature(LOST_OFFLOAD, invariant=loss))
    return _of_ok(result)


def _of_ok(result: Result) -> Verdict:
    """A program that has done nothing wrong by itself, compared with others where that was asked."""
    beside = result.beside
    if beside is not None and beside.differs:
        invariant = beside.differs if beside.what == PAIR_DIFFERS else ""
        return Verdict(beside.what, Signature(beside.what, invariant=invariant))
    if result.slow:
        return Verdict("slow-compile", Signature(SLOW_COMPILE))
    return Verdict("ok")


def _blamed_wrongly(result: Result) -> bool:
    """The compiler complains of a result on the host that is not declared to lie there, and there is none."""
    return isinstance(result.answer, Rejected) and not result.returns_host


def said_of(result: Result) -> str:
    """What is said of a result, for people: the compiler's message, or the memory ledger of a lost offload."""
    word = verdict(result).word
    if word == "lost-offload":
        assert result.ledger is not None
        return ledger_text(result.ledger)
    if word in (PAIR_DIFFERS, OFFLOAD_COSTS) and result.beside is not None:
        return result.beside.text
    if word == SLOW_COMPILE:
        return f"compiling took {result.seconds_compile:.1f} s, expected were less than {result.slow_limit:.1f} s"
    return message_of(result.answer)


def failure(result: Result) -> str | None:
    """The text of the signature of what failed, or None: what reductions compare."""
    found = verdict(result).failure
    return found.text if found is not None else None
