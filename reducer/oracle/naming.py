"""What a result can be called: outcomes and verdicts, families, and what signatures begin with.

For words that people type: what nothing can be called is a slip, and would wait in vain for a result of that name.
"""

from __future__ import annotations

import difflib
import re
from typing import Final, get_args

from reducer.oracle.families import FAMILIES
from reducer.oracle.outcome import Outcome
from reducer.oracle.signature import CODES, OURS, TIMED_OUT
from reducer.oracle.verdict import Word

OUTCOMES: Final = tuple(str(kind.__struct_config__.tag) for kind in get_args(Outcome))
VERDICTS: Final[tuple[str, ...]] = get_args(Word)
_NAMED: Final = tuple(dict.fromkeys(name for name, _ in FAMILIES))
_WORDS: Final = frozenset({*OUTCOMES, *VERDICTS, *_NAMED, *OURS})

#: What a signature begins with: a status code, how a process ended, or a word of ours.
_CODE: Final = "|".join((*CODES, "ERROR", r"SIG[A-Z0-9]+", r"signal \d+", r"exit \d+", "memory-cap", TIMED_OUT, *OURS))
_SIGNATURE: Final = re.compile(rf"(?:{_CODE})(?: .*)?")
#: A family without a name is the code and the first words of the signature.
_UNNAMED: Final = re.compile(rf"(?:{_CODE.replace('_', '-').replace(' ', '-')})(?:-[a-z0-9-]+)?", re.IGNORECASE)


def can_be_called(text: str) -> bool:
    """Whether there are results with this outcome or verdict, or that could have this signature or family."""
    return text in _WORDS or bool(_SIGNATURE.fullmatch(text)) or (text.islower() and bool(_UNNAMED.fullmatch(text)))


def what_else(text: str) -> str:
    """What was meant by a word that nothing is called, perhaps; else what there is."""
    near = difflib.get_close_matches(text.lower(), sorted(_WORDS), n=3, cutoff=0.8)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return (
        f"an outcome ({', '.join(OUTCOMES)}), a verdict ({', '.join(VERDICTS)}), a family such as {_NAMED[0]}, or a "
        "whole signature"
    )
