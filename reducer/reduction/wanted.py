"""What a candidate has to do to be accepted: the one predicate of a reduction, as a value that can be compared."""

from __future__ import annotations

from typing import Literal

import msgspec

from reducer.oracle.beside import Comparison, comparison_of
from reducer.oracle.outcome import Rejected, Result
from reducer.oracle.signature import TIMED_OUT
from reducer.oracle.verdict import failure, verdict

Mode = Literal["start", "signature", "family", "any", "interesting"]

#: What people type for the signature of a compile that does not come to an end in its time.
TIMEOUT = "timeout"


class Wanted(msgspec.Struct, frozen=True):
    """Called with a result, tells the failure that is being reduced from everything else.

    `mode` "start": whatever the start does, which `settled` turns into a signature. `value` is the signature, the
    family, or the sha256 of an interestingness script.
    """

    mode: Mode = "start"
    value: str = ""

    def __call__(self, result: Result) -> bool:
        """Whether the result is the failure."""
        assert self.mode != "start", "not settled yet"
        if self.mode == "interesting":
            return result.answer == INTERESTING
        found = verdict(result).failure
        if found is None or self.mode == "any":
            return found is not None
        return self.value == (found.family if self.mode == "family" else found.text)

    @property
    def hangs(self) -> bool:
        """Whether it is a compile that takes too long."""
        return self.mode in ("signature", "family") and self.value == TIMED_OUT

    @property
    def comparison(self) -> Comparison | None:
        """What a program is compared with, where that is the failure; None of failures of a program alone."""
        return comparison_of(self.value.partition(" ")[0], self.value) if self.mode == "signature" else None

    def settled(self, result: Result) -> Wanted:
        """With the start's own failure for the wanted one, if none was named; itself if there is none."""
        found = failure(result)
        return Wanted("signature", found) if self.mode == "start" and found is not None else self

    def label(self, result: Result) -> str | None:
        """The signature of a failure that is *not* wanted: a find of its own."""
        return None if self.mode in ("any", "interesting") else failure(result)

    def __str__(self) -> str:
        if self.mode == "interesting":
            return "interesting"
        return {"any": "any failure", "start": "a failure"}.get(self.mode, f"{self.mode} {self.value}")


#: The answers of an interestingness script. A reducer knows outcomes of compilers, and a script's word is neither
#: compiled nor crashed: it refused the candidate, or it did not.
INTERESTING = Rejected("interesting: the script left with exit code 0")


def uninteresting(why: str) -> Rejected:
    """The answer of a script that did not accept its candidate."""
    return Rejected(f"not interesting: {why}")


def wanted_of(
    *, signature: str | None = None, family: str | None = None, any_failure: bool = False, script: str = ""
) -> Wanted:
    """What was asked for; at most one of them. `script` is the sha256 of an interestingness script."""
    assert sum((signature is not None, family is not None, any_failure, bool(script))) <= 1
    if signature is not None:
        return Wanted("signature", TIMED_OUT if signature == TIMEOUT else signature)
    if family is not None:
        return Wanted("family", family)
    if any_failure:
        return Wanted("any")
    return Wanted("interesting", script) if script else Wanted()
