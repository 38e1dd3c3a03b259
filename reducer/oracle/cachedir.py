"""Where this machine's caches lie (libtpu releases, outcomes, hashes of big files), and the hashes themselves.

``SCANSHRINK_CACHE`` overrides the root; otherwise it is the platform's cache folder for "scanshrink".
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec
import platformdirs

from reducer.errors import StorageError
from reducer.files import write_file

CACHE_VARIABLE = "SCANSHRINK_CACHE"
_MEMO_NAME = "sha256.json"
_MEMO_LIMIT = 256


def cache_root() -> Path:
    """Return the root of all caches; it need not exist yet."""
    override = os.environ.get(CACHE_VARIABLE, "").strip()
    if override:
        return Path(override).expanduser().absolute()
    return Path(platformdirs.user_cache_dir("scanshrink"))


def make_folder(folder: Path) -> Path:
    """Create `folder` with its parents and return it. Raises `StorageError` when it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot create {folder}: {error.strerror or error}",
            hint=f"free some space, or set {CACHE_VARIABLE} to a folder you can write",
        ) from error
    return folder


def sha256_of(path: Path) -> str:
    """Return the sha256 (hex) of a file, remembered on disk by (path, size, mtime in ns).

    A libtpu is some 500 MB: hashing it takes about a second, and every run asks. Raises OSError if unreadable.
    """
    path = path.resolve()
    stat = path.stat()
    identity = f"{path}|{stat.st_size}|{stat.st_mtime_ns}"
    memo = _read_memo()
    known = memo.get(identity)
    if known is not None:
        return known
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    # Read again: another process may have added its own meanwhile. Losing a race costs one more hashing.
    memo = _read_memo()
    memo[identity] = digest
    _write_memo(dict(list(memo.items())[-_MEMO_LIMIT:]))
    return digest


def _read_memo() -> dict[str, str]:
    try:
        return msgspec.json.decode((cache_root() / _MEMO_NAME).read_bytes(), type=dict[str, str])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}  # absent or damaged: it is only a memo, and is written anew


def _write_memo(memo: dict[str, str]) -> None:
    # A memo that cannot be kept (read-only home, full disk) costs a second per run and no answer.
    with contextlib.suppress(OSError):
        root = cache_root()
        root.mkdir(parents=True, exist_ok=True)
        write_file(root / _MEMO_NAME, msgspec.json.encode(memo))
