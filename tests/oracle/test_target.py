"""Resolving a target: never a silent fallback. And libtpu releases, with a pip that is not one."""

import hashlib
import mmap
import os
import subprocess
import sys
import threading
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from reducer.errors import StorageError, TargetError
from reducer.oracle import cachedir, releases
from reducer.oracle.environment import relevant_environment, worker_environment
from reducer.oracle.target import TOPOLOGIES, Target, check_options, parse_option, resolve_target


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("SCANSHRINK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def library(tmp_path):
    path = tmp_path / "some libtpu.so"
    path.write_bytes(b"library")
    return path


def test_a_path(library, tmp_path):
    target = resolve_target(str(library))
    assert (target.libtpu, target.path) == (str(library), str(library))
    assert target.sha256 == hashlib.sha256(b"library").hexdigest()
    assert (target.topology, target.options) == ("v5e:2x2", ())
    link = tmp_path / "link.so"
    link.symlink_to(library)
    assert resolve_target(str(link)).path == str(library), "the memory map shows real paths"
    assert resolve_target(str(link)).libtpu == str(link)


def test_a_folder_means_the_library_in_it(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "libtpu.so").write_bytes(b"x")
    assert resolve_target(str(tmp_path / "d")).path == str(tmp_path / "d" / "libtpu.so")


@pytest.mark.parametrize("spec", ["/nowhere/libtpu.so", "./libtpu.so", "~nobody-at-all/x.so", "newest", ""])
def test_what_is_not_there_is_an_error(spec):
    with pytest.raises(TargetError):
        resolve_target(spec)


def test_installed():
    target = resolve_target(None)
    assert target == resolve_target("installed") == resolve_target(version("libtpu"))
    assert target.libtpu == version("libtpu")
    assert target.path.endswith("libtpu.so")


def test_nothing_installed(monkeypatch):
    monkeypatch.setattr("reducer.oracle.target.installed_libtpu", lambda: None)
    with pytest.raises(TargetError, match="no libtpu is installed"):
        resolve_target()


def test_topologies(library):
    for name in TOPOLOGIES:
        assert resolve_target(str(library), name).topology == name
    with pytest.raises(TargetError, match="unknown topology 'v5e:2x3'") as raised:
        resolve_target(str(library), "v5e:2x3")
    assert "did you mean v5e:2x2?" in raised.value.hint
    assert all(name in raised.value.hint for name in TOPOLOGIES)


@pytest.mark.parametrize("name", ["v5e:16x16", "v6e:2x4", "v5p:4x4x8", "tpu7x:2x2x2"])
def test_larger_slices(library, name):
    assert resolve_target(str(library), name).topology == name


@pytest.mark.parametrize("name", ["v5e:32x16", "v5e:4x4x4", "v5p:4x4", "v5e:4x4\n", "v9:4x4", "v5e:0x4"])
def test_slices_that_do_not_exist(library, name):
    with pytest.raises(TargetError, match="unknown topology"):
        resolve_target(str(library), name)


def test_options(library):
    target = resolve_target(str(library), options={"xla_b": 1, "xla_a": True})
    assert target.options == (("xla_a", True), ("xla_b", 1))
    assert target == resolve_target(str(library), options=[("xla_b", 1), ("xla_a", True)])
    assert target.as_json() == {
        "libtpu": str(library),
        "sha256": target.sha256,
        "topology": "v5e:2x2",
        "options": {"xla_a": True, "xla_b": 1},
    }
    assert "xla_a=True" in str(target)


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("xla_a=true", ("xla_a", True)),
        ("--xla_a=False", ("xla_a", False)),
        ("xla_n=-12", ("xla_n", -12)),
        ("xla_s=1.5", ("xla_s", "1.5")),
        ("xla_e=", ("xla_e", "")),
        ("xla_q=a=b", ("xla_q", "a=b")),
    ],
)
def test_parse_option(text, pair):
    found = parse_option(text)
    assert found == pair
    assert type(found[1]) is type(pair[1])


@pytest.mark.parametrize("text", ["xla_a", "=1", "a b=1", "xla-a=1", "é=1"])
def test_parse_option_refuses(text):
    with pytest.raises(TargetError):
        parse_option(text)


def test_contradicting_options():
    with pytest.raises(TargetError, match="given twice"):
        check_options([("xla_a", 1), ("xla_a", 2)])
    assert check_options([("xla_a", 1), ("xla_a", 1)]) == (("xla_a", 1),)
    with pytest.raises(TargetError, match="must be text"):
        check_options({"xla_a": 1.5})  # type: ignore[dict-item]


# --- hashes


def test_hashes_are_remembered_until_the_file_changes(library, root, monkeypatch):
    first = cachedir.sha256_of(library)
    monkeypatch.setattr("hashlib.file_digest", None)
    assert cachedir.sha256_of(library) == first
    os.utime(library, ns=(1, 1))
    with pytest.raises(TypeError):
        cachedir.sha256_of(library)
    (root / "sha256.json").write_bytes(b"\xff{")
    with pytest.raises(TypeError):
        cachedir.sha256_of(library)


def test_hashes_do_not_need_a_cache(library, monkeypatch):
    monkeypatch.setenv("SCANSHRINK_CACHE", str(library / "below a file"))
    assert len(cachedir.sha256_of(library)) == 64


def test_the_caches_place(monkeypatch, tmp_path):
    assert cachedir.cache_root() == tmp_path / "cache"
    monkeypatch.delenv("SCANSHRINK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cachedir.cache_root() == tmp_path / "xdg" / "scanshrink"


def test_a_folder_that_cannot_be_made(library):
    with pytest.raises(StorageError, match="cannot create"):
        cachedir.make_folder(library / "x")


# --- releases


class Pip:
    """Stands for `_pip`: knows some releases, each with the wheel of one Python."""

    KNOWN = ("0.0.9", "0.0.42.1", "0.0.50", "0.0.50.1", "0.0.52")

    def __init__(self, monkeypatch, *, python="3.12", content=b"the library", stderr="", name="libtpu/libtpu.so"):
        self.calls: list[tuple[str, ...]] = []
        self.python = python
        self.content = content
        self.stderr = stderr
        self.name = name
        self.inside = lambda: None
        monkeypatch.setattr(releases, "_pip", self)

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        self.calls.append(arguments)
        if self.stderr:
            return subprocess.CompletedProcess(arguments, 1, "", self.stderr)
        if arguments[0] == "index":
            newest_first = ", ".join(reversed(self.KNOWN))
            return subprocess.CompletedProcess(
                arguments, 0, f"libtpu (0.0.52)\nAvailable versions: {newest_first}\n", ""
            )
        version = arguments[-1].removeprefix("libtpu==")
        if version not in self.KNOWN or self.python not in arguments:
            return subprocess.CompletedProcess(arguments, 1, "", "ERROR: No matching distribution found\n")
        self.inside()
        folder = Path(arguments[arguments.index("--dest") + 1])
        with zipfile.ZipFile(folder / f"libtpu-{version}.whl", "w") as wheel:
            wheel.writestr(self.name, self.content)
            wheel.writestr("libtpu/__init__.py", "")
        return subprocess.CompletedProcess(arguments, 0, "", "")

    def downloads(self) -> int:
        return sum(call[0] == "download" for call in self.calls)


def leftovers(root: Path) -> list[str]:
    return sorted(p.name for p in (root / "libtpu").iterdir() if not p.name.endswith(".lock"))


def test_fetching(monkeypatch, root):
    pip = Pip(monkeypatch)
    target = resolve_target("0.0.50.1")
    assert target.libtpu == "0.0.50.1"
    assert target.path == str(root / "libtpu" / "0.0.50.1" / "libtpu.so")
    assert Path(target.path).read_bytes() == b"the library"
    assert os.listdir(root / "libtpu" / "0.0.50.1") == ["libtpu.so"]
    tries = pip.downloads()
    assert resolve_target("0.0.50.1") == target
    assert pip.downloads() == tries
    assert leftovers(root) == ["0.0.50.1"]
    assert releases.cached_releases() == ["0.0.50.1"]


def test_listing_is_in_order(monkeypatch):
    Pip(monkeypatch)
    assert releases.list_releases() == list(Pip.KNOWN)


@pytest.mark.parametrize(
    ("version", "near"), [("0.0.51", "0.0.50, 0.0.50.1, 0.0.52"), ("0.0.10", "0.0.9, 0.0.42.1"), ("9.9", "0.0.52")]
)
def test_an_unknown_release_names_near_ones(monkeypatch, root, version, near):
    Pip(monkeypatch)
    with pytest.raises(TargetError, match="there is no libtpu release") as raised:
        resolve_target(version)
    assert near in raised.value.hint
    assert leftovers(root) == []


@pytest.mark.parametrize("version", ["../0.0.52", "0.0.52; x", "-h", "", "0"])
def test_what_is_no_release_is_not_looked_for(monkeypatch, root, version):
    monkeypatch.setattr(releases, "_pip", None)
    with pytest.raises(TargetError, match="is no libtpu release"):
        releases.fetch_release(version)
    assert not root.exists() or leftovers(root) == []


def test_no_network(monkeypatch, root):
    Pip(monkeypatch, stderr="WARNING: Retrying\nERROR: Could not find a version\nnoise")
    with pytest.raises(TargetError, match=r"pip cannot list the libtpu releases: ERROR: Could not find a version"):
        resolve_target("0.0.50.1")
    assert leftovers(root) == []


def test_a_full_disk(monkeypatch, root):
    Pip(monkeypatch, stderr="ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n")
    with pytest.raises(StorageError, match=r"cannot keep libtpu 0\.0\.50\.1") as raised:
        resolve_target("0.0.50.1")
    assert "SCANSHRINK_CACHE" in raised.value.hint
    assert leftovers(root) == []


def test_a_wheel_without_the_library(monkeypatch, root):
    Pip(monkeypatch, name="libtpu/other.so")
    with pytest.raises(TargetError, match=r"holds no libtpu\.so"):
        resolve_target("0.0.50.1")
    assert leftovers(root) == []


def test_what_a_killed_process_left_is_cleaned(monkeypatch, root):
    left = root / "libtpu" / ".part-0.0.50.1-abc"
    left.mkdir(parents=True)
    (left / "half.whl").write_bytes(b"x")
    Pip(monkeypatch)
    resolve_target("0.0.50.1")
    assert leftovers(root) == ["0.0.50.1"]


def test_two_at_once_fetch_once(monkeypatch):
    pip = Pip(monkeypatch, python="libtpu==0.0.52x")
    pip.python = "--quiet"  # on every call: the first try works
    inside = threading.Event()
    pip.inside = inside.set
    threads = [threading.Thread(target=releases.fetch_release, args=("0.0.50.1",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert inside.is_set()
    assert pip.downloads() == 1


def test_no_pip_at_all(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setenv("PATH", "/nowhere")
    releases._pip_command.cache_clear()
    try:
        with pytest.raises(TargetError, match="there is no pip"):
            releases.list_releases()
    finally:
        releases._pip_command.cache_clear()


def make_release(root: Path, version: str, size: int, used: float) -> Path:
    path = root / "libtpu" / version / "libtpu.so"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (used, 1e9))
    return path


def test_the_quota_removes_the_least_recently_used(root):
    make_release(root, "0.0.40", 100, 3e8)
    make_release(root, "0.0.41", 100, 1e8)
    make_release(root, "0.0.42", 100, 2e8)
    assert releases.keep_quota(300) == []
    assert releases.keep_quota(150) == ["0.0.41", "0.0.42"]
    assert leftovers(root) == ["0.0.40"]


def test_the_quota_removes_none_in_use(root, monkeypatch):
    mapped = make_release(root, "0.0.40", 100, 1e8)
    make_release(root, "0.0.41", 100, 2e8)
    make_release(root, "0.0.42", 100, 4e9)  # just asked for: its worker has not started yet
    monkeypatch.setattr(releases, "_mapped_files", lambda: {str(mapped)})
    assert releases.keep_quota(0) == ["0.0.41"]
    assert leftovers(root) == ["0.0.40", "0.0.42"]


def test_mapped_files_are_seen(root):
    path = make_release(root, "0.0.40", 4096, 1e8)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        assert str(path) in releases._mapped_files()
    assert str(path) not in releases._mapped_files()


def test_using_a_release_marks_it_and_keeps_its_hash(root, monkeypatch):
    Pip(monkeypatch)
    path = make_release(root, "0.0.50.1", 10, 1e8)
    resolve_target("0.0.50.1")
    monkeypatch.setattr("hashlib.file_digest", None)
    resolve_target("0.0.50.1")
    assert path.stat().st_atime > 1e9


# --- the worker's environment


def test_worker_environment():
    found = worker_environment("/x/libtpu.so", {"PATH": "/bin", "JAX_PLATFORMS": "tpu", "TPU_LIBRARY_PATH": "/y"})
    assert found["PATH"] == "/bin"
    assert found["JAX_PLATFORMS"] == "cpu"
    assert found["TPU_LIBRARY_PATH"] == "/x/libtpu.so"
    assert found["ALLOW_MULTIPLE_LIBTPU_LOAD"] == "1"


def test_relevant_environment():
    base = {"XLA_FLAGS": "--a", "LIBTPU_INIT_ARGS": "--b", "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "tpu", "HOME": "/"}
    assert relevant_environment(base) == {"JAX_ENABLE_X64": "1", "LIBTPU_INIT_ARGS": "--b", "XLA_FLAGS": "--a"}


def test_a_target_is_a_value():
    assert len({Target("a", "b", "c"), Target("a", "b", "c")}) == 1
