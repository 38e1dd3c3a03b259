"""The corpus: distinct failures in a folder, each a minimal program with all that is known about it.

`case` is one entry as a value and `proof` the evidence in it, `casefile` its JSON form, `store` the folder, `merge` what happens when a failure is
found again, `verify` whether cases still do what they did, `regression` the same as pytest tests.
"""

from __future__ import annotations

from reducer.corpus.case import Case, CaseTarget, Found, OutcomeRecord, Start, TierMinimum, slug_for
from reducer.corpus.casefile import decode_case, encode_case, load_case
from reducer.corpus.proof import Certificate, Equivalence, Explanation, Neighbour
from reducer.corpus.store import AddResult, Corpus, Damaged, Status

__all__ = [
    "AddResult",
    "Case",
    "CaseTarget",
    "Certificate",
    "Corpus",
    "Damaged",
    "Equivalence",
    "Explanation",
    "Found",
    "Neighbour",
    "OutcomeRecord",
    "Start",
    "Status",
    "TierMinimum",
    "decode_case",
    "encode_case",
    "load_case",
    "slug_for",
]
