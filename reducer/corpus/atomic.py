"""Writing so that a crash at any moment, or a full disk, leaves the old or the new state and nothing between.

A file is written beside its place, flushed to disk, and renamed over it. A folder cannot be renamed over another
one, so the old one steps aside first: `.new-NAME` is written, NAME becomes `.old-NAME`, `.new-NAME` becomes NAME,
`.old-NAME` goes. `recover` brings any interruption of this to an end. All of it happens under the corpus's lock, so
whatever such folder is met by a holder of the lock was left by a process that died.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from reducer.errors import StorageError
from reducer.files import sync_folder, write_through

NEW = ".new-"
OLD = ".old-"

_HINTS = {
    errno.ENOSPC: "the disk is full: make room, or choose another folder",
    errno.EDQUOT: "the disk quota is used up: make room, or choose another folder",
    errno.EACCES: "choose a folder you may write to",
    errno.EPERM: "choose a folder you may write to",
    errno.EROFS: "choose a folder you may write to",
    errno.ENOTDIR: "it, or what should hold it, is a file: choose another folder",
    errno.EEXIST: "it, or what should hold it, is a file: choose another folder",
}


@contextlib.contextmanager
def storing(what: Path) -> Iterator[None]:
    """Turn an `OSError` inside into a `StorageError` that names `what` and says what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise StorageError(f"cannot write {what}: {reason}", hint=_HINTS.get(error.errno or 0, "")) from error


def _copy(folder: Path, new: Path) -> None:
    """Copy a folder. `shutil.Error` lists every file with its error as text: one of them, as an `OSError`, says enough."""
    try:
        shutil.copytree(folder, new, symlinks=True)
    except shutil.Error as error:
        number = re.search(r"\[Errno (\d+)\]", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


def write_folder(folder: Path, files: Mapping[str, bytes], *, drop: frozenset[str] = frozenset()) -> None:
    """Write `folder` anew, or replace it, in one step; other files in it stay, except those named in `drop`.

    Raises `OSError`; then `folder` is as before.
    """
    new = folder.with_name(f"{NEW}{folder.name}")
    try:
        remove(new)
        if folder.exists():
            # A person's own notes beside a case are theirs: they move along. Links stay links, never followed.
            _copy(folder, new)
        else:
            new.mkdir()
        for name in sorted(drop | set(files)):
            remove(new / name)
        for name, data in files.items():
            write_through(new / name, data)
        sync_folder(new)
        _take_place(new, folder)
    except BaseException:
        # Also for Ctrl-C: the process may live on, and a reader should not meet the half of it.
        with contextlib.suppress(OSError):
            recover(folder.parent)
        raise


def _take_place(new: Path, folder: Path) -> None:
    old = folder.with_name(f"{OLD}{folder.name}")
    if folder.exists():
        remove(old)
        os.rename(folder, old)
    os.rename(new, folder)
    sync_folder(folder.parent)
    # The new state is reached; a leftover that cannot be removed now goes with the next `recover`.
    with contextlib.suppress(OSError):
        remove(old)


def recover(parent: Path) -> None:
    """End what a dead process left half-done in `parent` and in the folders in it. The caller holds the lock.

    Raises `OSError` if it cannot.
    """
    for entry in sorted(parent.iterdir()):
        if entry.name.startswith(OLD):
            place = parent / entry.name.removeprefix(OLD)
            if place.exists():
                remove(entry)
            else:
                os.rename(entry, place)
    for entry in sorted(parent.iterdir()):
        if entry.name.startswith(NEW):
            remove(entry)
        elif entry.is_dir() and not entry.is_symlink():
            for file in entry.glob(f"{NEW}*"):
                remove(file)


def set_aside(parent: Path) -> dict[str, Path]:
    """Folders that stand aside without their place being taken: what a reader without the lock should read."""
    waiting = {e.name.removeprefix(OLD): e for e in parent.glob(f"{OLD}*")}
    return {name: entry for name, entry in waiting.items() if not (parent / name).exists()}


def remove(path: Path) -> None:
    """Remove a file, link or folder if it is there; what a link points to stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


__all__ = ["NEW", "OLD", "recover", "remove", "set_aside", "storing", "write_folder"]
