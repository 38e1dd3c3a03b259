"""One exception class per failure signature, for tests of a user's own.

Hypothesis and pytest tell failures apart by the type of the exception and the line that raised it. A test that
compiles programs raises from one line, so each signature needs a type of its own, and the same one each time:

    @given(strategies.programs())
    def test_compiles(program):
        outcome = compile_somehow(program)
        if (found := signature(outcome)) is not None:
            raise failure_type(found.text)(message_of(outcome))

Hypothesis then shrinks and reports every signature by itself.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from typing import ClassVar


class CompilerFailure(Exception):
    """The compiler failed on a program. Subclasses stand for one signature each; get them from `failure_type`."""

    #: Text of the signature all instances have; empty for the base class.
    signature: ClassVar[str] = ""


@cache
def failure_type(signature: str) -> type[CompilerFailure]:
    """The exception class of a signature: the same class for the same text, in this process.

    Args:
        signature: text of a signature, as `str(reducer.oracle.signature.Signature)` gives it.
    """
    words = re.findall(r"[A-Za-z]+", signature)[:6] or ["failure"]
    # Two signatures may begin with the same words; the digest keeps their names apart in reports.
    readable = signature.encode("utf-8", "replace").decode()
    digest = sha256(readable.encode()).hexdigest()[:6]
    name = "".join(word[0].upper() + word[1:].lower() for word in words) + "_" + digest
    members = {"signature": signature, "__doc__": readable, "__module__": __name__}
    return type(name, (CompilerFailure,), members)
