"""Capture folders are read with distrust, and give a module with how it was compiled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reducer.captures import captures_in, load_capture
from reducer.errors import InputError
from reducer.oracle.jobs import ModuleJob

MODULE = "module @jit_step attributes {mhlo.num_partitions = 4 : i32} {\n}\n"
RECORD: dict[str, Any] = {
    "format": 1,
    "name": "jit_step",
    "outcome": "failed",
    "partitions": 4,
    "replicas": 2,
    "platform": "tpu",
    "device_kind": "TPU v6 lite",
    "topology": "v6e:2x4",
    "options": {"xla_b": True, "xla_a": 0.5},
    "error": {"type": "JaxRuntimeError", "message": "INTERNAL: no"},
    "environment": {"jaxlib": "0.10.2", "libtpu": "0.0.46", "variables": {"LIBTPU_INIT_ARGS": "--xla_c=1"}},
    "of_the_future": [1],
}


def folder(path: Path, /, files: dict[str, str] | None = None, **changes: Any) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    record = {**RECORD, **changes}
    (path / "capture.json").write_text(json.dumps({k: v for k, v in record.items() if v is not None}))
    for name, text in ({"module.mlir": MODULE} if files is None else files).items():
        (path / name).write_text(text)
    return path


def test_a_capture_becomes_a_job(tmp_path: Path) -> None:
    capture = load_capture(folder(tmp_path / "c"))
    assert capture.job == ModuleJob(module=MODULE.encode(), partitions=4, replicas=2)
    assert capture.topology == "v6e:2x4"
    assert capture.compiler_options == (("xla_a", "0.5"), ("xla_b", True))
    assert (capture.error.type, capture.error.message) == ("JaxRuntimeError", "INTERNAL: no")
    assert capture.folder == str(tmp_path / "c")
    assert load_capture(tmp_path / "c" / "capture.json") == capture


def test_options_that_have_files_written_are_left_out(tmp_path: Path) -> None:
    capture = load_capture(folder(tmp_path / "c", options={"xla_dump_to": "/home/me", "xla_a": 1}))
    assert capture.compiler_options == (("xla_a", 1),)
    assert "compiler option xla_dump_to names a file; it is left out" in capture.notes()


def test_the_text_is_preferred_to_the_bytecode(tmp_path: Path) -> None:
    both = folder(tmp_path / "c", {"module.mlirbc": "bytecode", "portable.mlirbc": "artifact"})
    assert load_capture(both).module == b"bytecode"
    assert load_capture(both).portable == both / "portable.mlirbc"
    (both / "module.mlir").write_text(MODULE)
    assert load_capture(both).module == MODULE.encode()


def test_what_differs_here_is_noted(tmp_path: Path) -> None:
    capture = load_capture(
        folder(tmp_path / "c", platform="cpu", environment={**RECORD["environment"], "jaxlib": "0.4.1"})
    )
    here = [n for n in capture.notes("0.0.52", {}) if "jaxlib" not in n]
    assert here == [
        "jit_step was captured with libtpu 0.0.46, and this is 0.0.52; --libtpu 0.0.46 compiles with that one",
        "jit_step was captured with LIBTPU_INIT_ARGS='--xla_c=1'; set that to compile it alike",
        "jit_step was compiled for cpu; here it is compiled for TPU",
    ]
    assert [n.partition(", and")[0] for n in capture.notes("0.0.46", {"LIBTPU_INIT_ARGS": "--xla_c=1"})] == [
        "jit_step was captured with jaxlib 0.4.1",
        "jit_step was compiled for cpu; here it is compiled for TPU",
    ]


def test_a_libtpu_is_known_by_its_path_where_it_was_not_installed(tmp_path: Path) -> None:
    capture = load_capture(folder(tmp_path / "c", environment={"libtpu": "/cache/libtpu/0.0.46/libtpu.so"}))
    assert capture.notes("0.0.46", {}) == ()
    assert capture.notes("/cache/libtpu/0.0.46/libtpu.so", {}) == ()
    (note,) = capture.notes("0.0.52", {})
    assert note.endswith("; --libtpu /cache/libtpu/0.0.46/libtpu.so compiles with that one")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"format": 2}, "written by a newer scanshrink (format 2, this one reads up to 1)"),
        ({"format": 0}, "there is no format 0"),
        ({"format": None}, "missing required field `format`"),
        ({"outcome": "compiling"}, "is not complete"),
        ({"outcome": "odd"}, "Invalid enum value 'odd' - at `$.outcome`"),
        ({"name": None}, "missing required field `name`"),
        ({"partitions": 0}, ">= 1"),
        ({"partitions": 1 << 19, "replicas": 4}, "too many"),
        ({"topology": "v5e:2x2; rm"}, "'v5e:2x2; rm' is no topology"),
        ({"topology": "v5e:2x2\n"}, "is no topology"),
        ({"options": {"../x": 1}}, "'../x' is no name of a compiler option"),
        ({"options": {"x": [1]}}, "$.options"),
        ({"environment": {"variables": {"A": 1}}}, "$.environment"),
    ],
)
def test_a_record_that_is_wrong(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        load_capture(folder(tmp_path / "c", **changes))
    assert says in str(caught.value)
    assert str(tmp_path / "c") in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1, "name": "\xff"}', "[" * 100_000])
def test_a_record_that_is_no_record(tmp_path: Path, text: str) -> None:
    path = folder(tmp_path / "c")
    (path / "capture.json").write_text(text, encoding="latin-1")
    with pytest.raises(InputError):
        load_capture(path)


@pytest.mark.parametrize(
    ("files", "says"),
    [({}, "holds no module"), ({"module.mlir": " \n"}, "is empty"), ({"module.mlirbc": ""}, "is empty")],
)
def test_a_capture_without_its_module(tmp_path: Path, files: dict[str, str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        load_capture(folder(tmp_path / "c", files))


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(MODULE)
    path = folder(tmp_path / "c", {})
    (path / "module.mlir").symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match="symbolic link"):
        load_capture(path)


def test_a_module_too_large(tmp_path: Path) -> None:
    path = folder(tmp_path / "c")
    with (path / "module.mlir").open("wb") as stream:
        stream.truncate(200 << 20)
    with pytest.raises(InputError, match="larger than 64 MiB"):
        load_capture(path)


def test_captures_of_a_folder_leave_out_what_is_being_written(tmp_path: Path) -> None:
    made = [folder(tmp_path / name) for name in ("b", "a", ".compiling-1-0")]
    (tmp_path / "file").write_text("")
    assert captures_in(tmp_path) == [made[1], made[0]]
    assert captures_in(tmp_path / "nowhere") == []
