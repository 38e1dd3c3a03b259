"""A file is replaced in one step."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reducer.files import write_file


def test_the_old_content_or_the_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a"
    write_file(file, b"1")
    assert file.read_bytes() == b"1"

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        write_file(file, b"22")
    monkeypatch.undo()
    assert file.read_bytes() == b"1"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_link_beside_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"mine")
    monkeypatch.setattr("reducer.files._numbers", iter([0]))
    (tmp_path / f".part-a.{os.getpid():x}-0").symlink_to(precious)
    with pytest.raises(OSError, match="symbolic"):
        write_file(tmp_path / "a", b"theirs")
    assert precious.read_bytes() == b"mine"
