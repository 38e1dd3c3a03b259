"""The state of a hunt on disk: round trip, and files that cannot be trusted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reducer.errors import InputError
from reducer.hunt.finds import Find
from reducer.hunt.state import latest_seed, load_state, pending_finds, save_state, state_file
from reducer.ir.equations import Program
from reducer.ir.order import size
from reducer.oracle.target import Target

from .fakes import mixed, program

TARGET = Target(libtpu="0.0.52", path="/x/libtpu.so", sha256="a" * 64)
OTHER = Target(libtpu="0.0.50.1", path="/y/libtpu.so", sha256="b" * 64)


def find(start: Program, **fields: Any) -> Find:
    made = Find(
        signature="INTERNAL bitcast",
        family="bitcast",
        slug="bitcast",
        start=start,
        program=start,
        message="INTERNAL: ü 💥",
        strategy="layer_stacks",
        tier="program",
        sort="program",
        started_size=9,
        first_seconds=1.25,
        size=size(start),
        finds=3,
        counted=1,
    )
    return msgspec.structs.replace(made, **fields)


def edited(folder: Path, change: dict[str, Any], *, pending: dict[str, Any] | None = None) -> None:
    save_state(folder, seed=7, batch=2, target=TARGET, pending=[find(program(3))])
    file = state_file(folder, 7, TARGET)
    data = json.loads(file.read_bytes())
    data.update(change)
    data["pending"][0].update(pending or {})
    file.write_text(json.dumps(data))


def test_round_trip(tmp_path: Path) -> None:
    (tmp_path / "a-case").mkdir()
    finds = [find(program(3), case=str(tmp_path / "a-case")), find(mixed(2), sort="mixed")]
    save_state(tmp_path, seed=-7, batch=4, target=TARGET, pending=finds)
    state = load_state(tmp_path, -7, TARGET)
    assert (state.seed, state.batch) == (-7, 4)
    again = pending_finds(state, tmp_path)
    assert [msgspec.structs.asdict(f) for f in again] == [msgspec.structs.asdict(f) for f in finds]


def test_a_case_that_was_deleted_is_saved_again(tmp_path: Path) -> None:
    save_state(tmp_path, seed=7, batch=0, target=TARGET, pending=[find(program(3), case="x/gone")])
    assert pending_finds(load_state(tmp_path, 7, TARGET), tmp_path)[0].case == ""


def test_a_mixed_find_that_has_become_a_placement_is_one(tmp_path: Path) -> None:
    from .fakes import placement

    save_state(tmp_path, seed=1, batch=0, target=TARGET, pending=[find(placement(2), sort="mixed")])
    (again,) = pending_finds(load_state(tmp_path, 1, TARGET), tmp_path)
    assert (again.tier, again.sort) == ("placement", "placement")


def test_hunts_of_one_seed_on_two_targets_do_not_share_a_state(tmp_path: Path) -> None:
    save_state(tmp_path, seed=7, batch=1, target=TARGET, pending=[])
    save_state(tmp_path, seed=7, batch=5, target=OTHER, pending=[])
    assert load_state(tmp_path, 7, TARGET).batch == 1
    assert load_state(tmp_path, 7, OTHER).batch == 5


def test_the_latest_hunt_on_the_target_is_found(tmp_path: Path) -> None:
    assert latest_seed(tmp_path, TARGET) is None
    for age, seed in enumerate((5, -3, 9)):
        save_state(tmp_path, seed=seed, batch=0, target=TARGET, pending=[])
        os.utime(state_file(tmp_path, seed, TARGET), (1000 - age, 1000 - age))
    save_state(tmp_path, seed=44, batch=0, target=OTHER, pending=[])
    (tmp_path / ".hunt-x.json").write_text("{}")
    (tmp_path / ".hunt-99-deadbeef.json").write_text("{}")
    assert latest_seed(tmp_path, TARGET) == 5


def test_no_state(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no hunt with seed 7 on libtpu 0\.0\.52"):
        load_state(tmp_path, 7, TARGET)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"format": "1"}', b'{"format": 1}', b"[" * 100_000]
)
def test_a_damaged_state_is_an_input_error(tmp_path: Path, content: bytes) -> None:
    state_file(tmp_path, 7, TARGET).write_bytes(content)
    with pytest.raises(InputError, match="cannot be used"):
        load_state(tmp_path, 7, TARGET)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 3}, "written by a newer scanshrink"),
        ({"seed": 8}, "not the state its name says"),
        ({"target": "libtpu 0.0.1"}, "not the state its name says"),
        ({"batch": -1}, "not the state its name says"),
        ({"batch": "x"}, "cannot be used"),
    ],
)
def test_a_state_that_is_not_what_it_says(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    edited(tmp_path, change)
    with pytest.raises(InputError, match=message):
        load_state(tmp_path, 7, TARGET)


@pytest.mark.parametrize(
    "change",
    [
        {"program": {}},
        {"program": None},
        {"program": {"block": {"params": [], "eqns": [], "results": [5]}}},
        {"signature": ""},
        {"started_size": -1},
        {"first_seconds": -1.0},
        {"counted": 9},
        {"case": "../elsewhere"},
    ],
)
def test_a_damaged_find_is_an_input_error(tmp_path: Path, change: dict[str, Any]) -> None:
    edited(tmp_path, {}, pending=change)
    with pytest.raises(InputError, match="pending find 0"):
        pending_finds(load_state(tmp_path, 7, TARGET), tmp_path)


def test_an_unknown_field_of_a_find_is_refused(tmp_path: Path) -> None:
    edited(tmp_path, {}, pending={"surprise": 1})
    with pytest.raises(InputError, match="surprise"):
        load_state(tmp_path, 7, TARGET)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere"
    secret.write_text("{}")
    state_file(tmp_path, 7, TARGET).symlink_to(secret)
    with pytest.raises(InputError, match="symbolic link"):
        load_state(tmp_path, 7, TARGET)


def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(state_file(tmp_path, 7, TARGET))
    with pytest.raises(InputError, match="not a regular file"):
        load_state(tmp_path, 7, TARGET)


def test_a_failed_write_leaves_the_old_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_state(tmp_path, seed=7, batch=1, target=TARGET, pending=[])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        save_state(tmp_path, seed=7, batch=2, target=TARGET, pending=[])
    assert load_state(tmp_path, 7, TARGET).batch == 1
    assert [path.name for path in tmp_path.iterdir()] == [state_file(tmp_path, 7, TARGET).name]
