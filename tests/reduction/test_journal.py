"""The journal of a run: what a process that died at any moment left is used, and nothing of another run."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from reducer.errors import StorageError
from reducer.oracle.outcome import Compiled, Memory, Rejected, Result
from reducer.reduction import journal as module
from reducer.reduction.journal import Best, Header, Journal, difference, others

HEADER = Header(
    start="ab" * 32,
    wanted=("start", ""),
    target={"libtpu": "0.0.52", "sha256": "a" * 64, "topology": "v5e:2x2", "options": {}},
    versions={"jax": "0.10.2"},
)
YES = Result(Rejected("INTERNAL: no"), 0.5, 1.25, module_key="k")
NO = Result(Compiled(Memory(temp=3)))


def silent(text: str) -> None:
    raise AssertionError(text)


def journal(folder: Path, header: Header = HEADER) -> Journal:
    return Journal(header, folder=folder, warn=silent)


def test_what_was_answered_is_known_again(tmp_path: Path) -> None:
    with journal(tmp_path) as first:
        assert first.known == 0
        first.put("a", YES)
        first.put("b", msgspec.structs.replace(NO, module="module {}", worker_pid=7))
        first.put("c", msgspec.structs.replace(NO, module="module {}"), module=True)
        first.note_best(Best("program", "k", 4, 9))
    with journal(tmp_path) as again:
        assert (again.known, again.best, again.done) == (3, Best("program", "k", 4, 9), False)
        assert [again.get(key) for key in "abcd"] == [YES, NO, msgspec.structs.replace(NO, module="module {}"), None]
        before = again.path.read_bytes()
        again.note_best(Best("program", "k", 4, 9))
        again.put("a", NO)
        assert (again.path.read_bytes(), again.get("a")) == (before, YES)
        again.end()
    with journal(tmp_path) as ended:
        assert ended.done


@pytest.mark.parametrize("cut", [1, 9, 40])
def test_the_line_a_process_died_in_is_left_out(tmp_path: Path, cut: int) -> None:
    with journal(tmp_path) as first:
        first.put("a", YES)
        first.put("b", NO)
    data = first.path.read_bytes()
    first.path.write_bytes(data[:-cut])
    with journal(tmp_path) as again:
        assert (again.get("a"), again.get("b")) == (YES, None)
        again.put("b", NO)
    assert first.path.read_bytes() == data


def test_a_file_that_is_no_journal_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / HEADER.name
    path.write_bytes(b"\xff\xfe nothing\n")
    with journal(tmp_path) as first:
        first.put("a", YES)
    with journal(tmp_path) as again:
        assert again.get("a") == YES


def test_every_field_of_the_header_makes_another_journal(tmp_path: Path) -> None:
    other = msgspec.structs.replace(HEADER, versions={"jax": "0.12.0"})
    with journal(tmp_path) as first:
        first.put("a", YES)
    with journal(tmp_path, other) as second:
        assert second.get("a") is None
        second.put("b", YES)
    assert others(HEADER, folder=tmp_path) == [other]
    assert others(msgspec.structs.replace(HEADER, start="cd" * 32), folder=tmp_path) == []


def test_a_run_that_ended_is_not_told_of(tmp_path: Path) -> None:
    other = msgspec.structs.replace(HEADER, versions={"jax": "0.12.0"})
    with journal(tmp_path, other) as second:
        second.put("a", YES)
        second.end()
    assert others(HEADER, folder=tmp_path) == []


def test_a_run_that_was_refused_before_anything_was_asked_is_not_told_of(tmp_path: Path) -> None:
    with journal(tmp_path, msgspec.structs.replace(HEADER, versions={"jax": "0.12.0"})):
        pass
    assert others(HEADER, folder=tmp_path) == []


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("libtpu", "0.0.50.1", "libtpu 0.0.50.1"),
        ("options", {"xla_a": 1, "xla_b": True}, "options xla_a=1 xla_b=True"),
        ("topology", "v6e:2x2", "topology v6e:2x2"),
        ("sha256", "b" * 64, "a libtpu file with sha256 bbbbbbbbbbbb"),
    ],
)
def test_what_differs_is_named(field: str, value: object, said: str) -> None:
    other = msgspec.structs.replace(HEADER, target={**HEADER.target, field: value})
    assert difference(HEADER, other) == said


def test_the_same_run_twice_at_once_is_refused(tmp_path: Path) -> None:
    with (
        journal(tmp_path),
        pytest.raises(StorageError, match="under way in another process"),
        journal(tmp_path),
    ):
        pass


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    said: list[str] = []
    with Journal(HEADER, folder=tmp_path / "file", warn=said.append) as first:
        first.put("a", YES)
        assert first.get("a") == YES
    assert len(said) == 1
    assert "cannot be continued later" in said[0]


def test_a_run_that_came_to_nothing_is_forgotten(tmp_path: Path) -> None:
    with journal(tmp_path) as first:
        first.put("a", YES)
        first.discard()
    with journal(tmp_path) as again:
        assert again.known == 0


def test_the_oldest_go_when_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(b"x" * 100)
        os.utime(path, (number, number))
    monkeypatch.setattr(module, "QUOTA", 600)
    with journal(tmp_path) as own:
        own.put("a", YES)
        size = own.path.stat().st_size
    monkeypatch.setattr(module, "QUOTA", size + 150)
    with journal(tmp_path):
        pass
    assert sorted(path.name for path in tmp_path.glob("*.jsonl")) == sorted(["2.jsonl", own.path.name])
