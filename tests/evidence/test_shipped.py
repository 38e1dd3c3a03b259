"""The corpus of this repository keeps what is promised of it: each case certified by today's neighbourhood.

Nothing is compiled here: whether the compiler still says so is asked in `tests/libtpu/test_corpus.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from reducer.corpus import Case, Corpus
from reducer.corpus.case import key_digest
from reducer.evidence import outdated
from reducer.ir.codec import identity
from reducer.ir.order import size
from reducer.record import signature_of

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Corpus(ROOT / "corpus")
AGAIN = "the neighbourhood has changed, or a case has come: scanshrink corpus certify corpus"

CASES = [case for case in CORPUS if isinstance(case, Case)]


def test_none_is_damaged_and_no_failure_is_there_twice() -> None:
    assert [case.slug for case in CASES] == CORPUS.slugs()
    programs = [(case.key, identity(case.minimum.program)) for case in CASES if case.minimum.program is not None]
    assert len(set(programs)) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.slug)
def test_certificate(case: Case) -> None:
    """Every neighbour that the code knows is in it, each has an answer, and none fails the same."""
    for tier, minimum in case.tiers.items():
        assert minimum.program is not None, f"{tier}: a module's certificate would need its text"
        assert minimum.size == size(minimum.program)
        assert minimum.certificate is not None, AGAIN
        assert not outdated(minimum.certificate, minimum.program), AGAIN
        counts = minimum.certificate.counts(case.signature)
        assert set(counts) <= {"compiles", "fails-otherwise", "invalid"}
        assert sum(counts.values()) == len(minimum.certificate.neighbours)
        assert minimum.explanations, AGAIN
        for one in minimum.explanations:
            assert "fails-the-same" in one.tried.values()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.slug)
def test_name_and_signature(case: Case) -> None:
    """Both are those that this code gives to what the compiler said, and three releases are on record."""
    assert key_digest(*case.key) in case.slug
    for record in case.outcomes:
        if record.signature:
            found = signature_of(record)
            assert found is not None
            assert (found.text, found.family) == (record.signature, record.family)
    own = case.expected()
    assert own is not None
    assert (own.signature, own.family) == (case.signature, case.family)
    assert len({record.libtpu for record in case.outcomes}) >= 3
