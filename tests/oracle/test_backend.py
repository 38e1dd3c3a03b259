"""What is read from a compiled program, also where a libtpu is too old to say it."""

from __future__ import annotations

from types import SimpleNamespace

from reducer.ledger import Owed, Stack, ledger_of
from reducer.oracle.backend import _compiled
from reducer.oracle.outcome import Compiled, Memory, Result
from reducer.oracle.verdict import verdict

HLO = "%w = (s32[], f32[6,8]{1,0:T(8,128)S(5)}) while(%t)"
OWED = Owed((Stack("float32", (6, 8), (6,), "h", "eqns[0].body"),))


def lacking() -> str:
    raise NotImplementedError("GetCompiledMemoryStats")


def judged(answer: Compiled) -> tuple[str, str]:
    ledger = ledger_of(OWED, answer.buffers, answer.unread, carried=answer.carried)
    found = verdict(Result(answer, ledger=ledger))
    return found.word, found.reason


def test_all_of_it() -> None:
    found = _compiled(lambda: SimpleNamespace(host_temp_size_in_bytes=7, temp_size_in_bytes=3), lambda: HLO)
    assert found == Compiled(Memory(host_temp=7, temp=3), {"f32[6,8]": (5,)}, carried={"f32[6,8]": (5,)})
    assert found.looked_at
    assert judged(found) == ("ok", "")


def test_where_buffers_lie_is_not_asked_for() -> None:
    assert not _compiled(lambda: None, None).looked_at


def test_no_memory_statistics() -> None:
    found = _compiled(lacking, lambda: HLO)
    assert found.memory == Memory()
    assert judged(found) == ("ok", "")
    assert _compiled(lambda: None, None).memory == Memory()


def test_no_text_of_the_compiled_program() -> None:
    reasons = {
        "no text of the compiled program: NotImplementedError: GetCompiledMemoryStats": lacking,
        "no text of the compiled program": lambda: None,
    }
    for reason, text in reasons.items():
        found = _compiled(lambda: None, text)
        assert (found.buffers, found.looked_at) == (None, True)
        assert judged(found) == ("not-measurable", f"it compiles, but {reason}")
