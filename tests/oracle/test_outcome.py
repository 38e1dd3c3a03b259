"""Outcomes and results as values: their JSON, their words, their texts."""

import msgspec
import pytest

from reducer.oracle.outcome import (
    Answer,
    Compiled,
    Crashed,
    Incompatible,
    Invalid,
    Memory,
    Outcome,
    Rejected,
    Result,
    Skipped,
    TimedOut,
    clip,
    message_of,
    word,
)

ANSWERS = [
    (Compiled(Memory(temp=1)), "compiled", ""),
    (Rejected("no"), "rejected", "no"),
    (Crashed("SIGABRT", "a.cc:1] x"), "crashed", "SIGABRT: a.cc:1] x"),
    (Crashed("SIGABRT", "", "lower"), "crashed", "SIGABRT while lowering"),
    (TimedOut(60.0), "timed-out", "no answer within 60 s"),
    (TimedOut(0.5, "lower"), "timed-out", "no answer within 0.5 s while lowering"),
    (Invalid("untyped"), "invalid", "untyped"),
    (Incompatible("too old"), "incompatible", "too old"),
    (Skipped("no host placement"), "skipped", "no host placement"),
]


@pytest.mark.parametrize(("answer", "name", "text"), ANSWERS)
def test_words(answer, name, text):
    assert word(answer) == name
    assert message_of(answer) == text
    encoded = msgspec.json.encode(answer)
    assert msgspec.json.decode(encoded)["outcome"] == name
    assert msgspec.json.decode(encoded, type=Answer) == answer


def test_skipped_is_no_outcome():
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(Skipped("x")), type=Outcome)
    with pytest.raises(AssertionError):
        Result(Skipped("x")).outcome  # noqa: B018


def test_result():
    result = Result(Rejected("x"), 0.1, 0.2, "k", True, 7)
    assert result.outcome == Rejected("x")
    assert msgspec.json.decode(msgspec.json.encode(result), type=Result) == result


@pytest.mark.parametrize("cap", [0, 10, 100, 1000])
@pytest.mark.parametrize("length", [0, 9, 10, 11, 99, 101, 5000])
def test_clip(cap, length):
    text = "".join(chr(97 + n % 26) for n in range(length))
    found = clip(text, cap)
    assert found == text if length <= cap else len(found) <= max(cap, 60)
    if cap >= 100 and length > cap:
        assert found[:20] == text[:20]
        assert found[-5:] == text[-5:]
        assert "characters left out" in found
