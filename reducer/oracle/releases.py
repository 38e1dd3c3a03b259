"""libtpu releases: which there are, and one of them on this machine's disk.

A release is fetched through pip, so pip's own configuration (index, proxy, certificates) applies, and kept as
``<cache>/libtpu/<version>/libtpu.so`` alone. Releases in the cache stay within `QUOTA` bytes; the least recently used
go first, never one that a process has mapped.
"""

from __future__ import annotations

import bisect
import contextlib
import errno
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import filelock

from reducer.errors import StorageError, TargetError
from reducer.oracle.cachedir import CACHE_VARIABLE, cache_root, make_folder
from reducer.oracle.target import RELEASE, release_order

QUOTA = 20 << 30
"""Most bytes of releases kept, some forty of them."""
LIBRARY = "libtpu.so"
_RECENT = 3600.0
"""Seconds for which a release that was asked for counts as in use: its worker may not have started yet."""
_TAGS: tuple[tuple[str, ...], ...] = (
    (),  # this Python's own
    ("--python-version", "3.11"),
    ("--python-version", "3.12"),
    ("--python-version", "3.13"),
    ("--python-version", "3.10"),
)
# The library does not depend on the Python tag, and one release carries the wheels of a few Pythons only.
_PLATFORMS = ("manylinux_2_31_x86_64", "manylinux_2_27_x86_64", "manylinux2014_x86_64", "linux_x86_64")
_LOCK_SECONDS = 1800.0


def releases_folder() -> Path:
    """Return the folder with one folder per release."""
    return cache_root() / "libtpu"


def cached_releases() -> list[str]:
    """Return the releases on disk, oldest first."""
    folder = releases_folder()
    found = [path.parent.name for path in folder.glob(f"*/{LIBRARY}")] if folder.is_dir() else []
    return sorted(found, key=release_order)


def list_releases() -> list[str]:
    """Return all releases known to pip, oldest first. Raises `TargetError` when pip cannot say."""
    done = _pip("index", "versions", "libtpu", "--disable-pip-version-check")
    match = re.search(r"^Available versions:(.*)$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or match is None:
        raise TargetError(f"pip cannot list the libtpu releases: {_last_line(done.stderr)}", hint="is there a network?")
    return sorted((version.strip() for version in match[1].split(",")), key=release_order)


def fetch_release(version: str) -> Path:
    """Return the path of release `version`'s libtpu.so, fetched if it is not in the cache.

    Raises `TargetError` for an unknown release or no network, `StorageError` when it cannot be kept.
    """
    if not RELEASE.match(version):  # it becomes a folder's name, and an argument of pip's
        raise TargetError(f"{version!r} is no libtpu release", hint='such as "0.0.50.1"')
    folder = releases_folder() / version
    library = folder / LIBRARY
    if _touch(library):
        return library
    make_folder(folder.parent)
    try:
        with filelock.FileLock(folder.parent / f".{version}.lock", timeout=_LOCK_SECONDS):
            if not _touch(library):
                _fetch(version, folder)
                keep_quota()
    except filelock.Timeout as error:
        raise StorageError(f"another process has been fetching libtpu {version} for long: {error}") from error
    except OSError as error:
        raise StorageError(
            f"cannot keep libtpu {version} in {folder.parent}: {error.strerror or error}",
            hint=f"some 700 MB are needed; {CACHE_VARIABLE} names another folder",
        ) from error
    return library


def keep_quota(quota: int = QUOTA) -> list[str]:
    """Remove the least recently used releases beyond `quota` bytes; return which. Never one in use."""
    entries = []
    for library in releases_folder().glob(f"*/{LIBRARY}"):
        with contextlib.suppress(OSError):
            stat = library.stat()
            entries.append((stat.st_atime, stat.st_size, library))
    total = sum(size for _, size, _ in entries)
    removed = []
    mapped = None
    for used, size, library in sorted(entries):
        if total <= quota:
            break
        mapped = _mapped_files() if mapped is None else mapped
        if time.time() - used < _RECENT or str(library.resolve()) in mapped:
            continue
        # One rename takes it out of sight: nobody resolves a release that is half gone.
        doomed = library.parent.with_name(f".gone-{library.parent.name}-{os.getpid()}")
        with contextlib.suppress(OSError):
            os.rename(library.parent, doomed)
            shutil.rmtree(doomed, ignore_errors=True)
            total -= size
            removed.append(library.parent.name)
    return removed


def _touch(library: Path) -> bool:
    """Mark a release as used now; say whether it is there. The time of change stays: hashes are kept by it."""
    try:
        os.utime(library, ns=(time.time_ns(), library.stat().st_mtime_ns))
    except FileNotFoundError:
        return False
    except OSError:
        return library.is_file()  # another user's cache can be read if not marked
    return True


def _fetch(version: str, folder: Path) -> None:
    parent = folder.parent
    for left_over in parent.glob(f".part-{version}-*"):
        shutil.rmtree(left_over, ignore_errors=True)  # the lock is ours: whoever made it is dead
    part = Path(tempfile.mkdtemp(prefix=f".part-{version}-", dir=parent))
    try:
        wheel = _download(version, part)
        (part / "new").mkdir()
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(f"libtpu/{LIBRARY}") as source,
            (part / "new" / LIBRARY).open("wb") as target,
        ):
            shutil.copyfileobj(source, target, 1 << 20)
            target.flush()
            os.fsync(target.fileno())
        os.rename(part / "new", folder)
    except (zipfile.BadZipFile, KeyError) as error:
        raise TargetError(f"the wheel of libtpu {version} holds no {LIBRARY}: {error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _download(version: str, folder: Path) -> Path:
    complaint = ""
    for number, tags in enumerate(_variants()):
        if number == 1:
            _check_known(version)  # not before the first try: it costs a second, and nearly every release is
        done = _pip(
            *("download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check"),
            *("--quiet", "--dest", str(folder), *tags, f"libtpu=={version}"),
        )
        wheels = sorted(folder.glob("*.whl"))
        if done.returncode == 0 and wheels:
            return wheels[0]
        complaint = complaint or done.stderr
        if "No space left" in done.stderr:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    raise TargetError(f"pip cannot fetch libtpu {version}: {_last_line(complaint)}")


def _check_known(version: str) -> None:
    known = list_releases()
    if version not in known:
        place = bisect.bisect(known, release_order(version), key=release_order)
        near = known[max(min(place, len(known) - 2) - 2, 0) :][:4]
        raise TargetError(f"there is no libtpu release {version}", hint=f"near it: {', '.join(near)}")


def _variants() -> Iterator[Sequence[str]]:
    for tags in _TAGS:
        platforms = [part for name in _PLATFORMS for part in ("--platform", name)] if tags else []
        yield [*tags, *platforms]


@functools.cache
def _pip_command() -> tuple[str, ...]:
    command = (sys.executable, "-m", "pip")
    if subprocess.run([*command, "--version"], capture_output=True, check=False).returncode == 0:
        return command
    found = shutil.which("pip")  # an environment made without pip of its own
    if found is None:
        raise TargetError("there is no pip to fetch a libtpu with", hint="python -m ensurepip, or give a path")
    return (found,)


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*_pip_command(), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", check=False, stdin=subprocess.DEVNULL
    )


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.startswith("ERROR")] or text.split("\n")
    return lines[-1].strip() or "no reason given"


def _mapped_files() -> set[str]:
    """Return every libtpu that a process we may look at has mapped."""
    found = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            for line in maps.read_text(errors="surrogateescape").splitlines():
                if line.endswith(LIBRARY):
                    found.add(line.split(maxsplit=5)[5])
    return found
