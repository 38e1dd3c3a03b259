"""Replacing a file in one step: a crash at any moment, or a full disk, leaves the old content or the new.

The content is written beside its place, flushed to disk, and renamed over it. Several processes may do that to one
file at once: each writes a neighbour of its own, and the last rename counts.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from pathlib import Path
from typing import Final

#: What a file that is being written is called before it takes its place: this, its name, and what tells writers apart.
PART: Final = ".part-"
_numbers = itertools.count()


def write_file(file: Path, data: bytes, *, mark: str = PART) -> None:
    """Write `file` anew, or replace it, in one step. Raises `OSError`; then `file` is as before.

    `mark` begins the name of what a process that dies meanwhile leaves behind.
    """
    beside = file.with_name(f"{mark}{file.name}.{os.getpid():x}-{next(_numbers):x}")
    try:
        write_through(beside, data)
        os.replace(beside, file)
        sync_folder(file.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def write_through(file: Path, data: bytes) -> None:
    """Write a file that nobody reads yet, and flush it to disk. Raises `OSError`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(file, flags, 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, so that a rename survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot; the rename itself has happened.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
