"""A corpus: a folder of cases, safe for several hunts at once and for a crash at any moment."""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

import msgspec
from filelock import FileLock, Timeout

from reducer.corpus.atomic import NEW, OLD, recover, set_aside, storing, write_folder
from reducer.corpus.case import SLUG, Case, key_digest
from reducer.corpus.casefile import (
    CASE_FILE,
    REPORT_FILE,
    check_file_name,
    encode_case,
    load_case,
    read_regular,
)
from reducer.corpus.merge import merge, same_failure, same_target
from reducer.errors import InputError, StorageError
from reducer.files import write_file

LOCK_FILE = ".lock"
LOCK_SECONDS = 60.0
"""How long to wait for another process before giving up; it holds the lock for the time of some small writes."""

_LOOKS = 5

Files: TypeAlias = Mapping[str, bytes | str]


class Status(StrEnum):
    """What became of an added find."""

    NEW = "new"
    SMALLER = "smaller"
    KEPT = "kept"


class AddResult(msgspec.Struct, frozen=True):
    """`status`: a new case, a smaller (or further) minimum of a known one, or only counted. `case` is as stored."""

    status: Status
    case: Case
    path: Path


class Damaged(msgspec.Struct, frozen=True):
    """A folder of the corpus that cannot be read as a case, and why."""

    path: Path
    reason: str


class Corpus:
    """The cases in `folder`, which need not exist yet; reading never creates it.

    `report` renders a case's `report.md`; without it, a report comes with the files of `add`.
    """

    def __init__(
        self, folder: Path, *, report: Callable[[Case], str] | None = None, lock_seconds: float = LOCK_SECONDS
    ) -> None:
        self.folder = Path(folder)
        self._report = report
        self._lock_seconds = lock_seconds

    def __iter__(self) -> Iterator[Case | Damaged]:
        return self.cases()

    def cases(self) -> Iterator[Case | Damaged]:
        """Every case by name, and in its place in the order what could not be read.

        Raises:
            InputError: the folder exists and cannot be listed.
        """
        for name, path in self._folders():
            yield self._load(name, path)

    def slugs(self) -> list[str]:
        """Names of the folders of the corpus, damaged ones included."""
        return [name for name, _ in self._folders()]

    def is_one(self) -> bool:
        """Whether the folder can be a corpus: it holds a case, damaged perhaps, or nothing but what is hidden.

        Raises:
            InputError: as `cases`.
        """
        if any(os.path.lexists(path / CASE_FILE) for _, path in self._folders()):
            return True
        return not os.path.lexists(self.folder) or all(e.name[0] in "._" for e in self.folder.iterdir())

    def path(self, slug: str) -> Path:
        """The folder of a case.

        Raises:
            InputError: `slug` could lead out of the corpus.
        """
        if not SLUG.fullmatch(slug):
            raise InputError(f"{slug!r} is not the name of a case", hint="a case is named by its folder")
        return self.folder / slug

    def get(self, slug: str) -> Case:
        """One case.

        Raises:
            InputError: there is none of that name, or it is damaged.
        """
        path = self.path(slug)
        entry = self._load(slug, path) if path.is_dir() or slug in self.slugs() else None
        if entry is None:
            near = difflib.get_close_matches(slug, self.slugs(), n=1)
            raise InputError(f"no case {slug} in {self.folder}", hint=f"did you mean {near[0]}?" if near else "")
        if isinstance(entry, Damaged):
            raise InputError(entry.reason)
        return entry

    def find(self, kind: str, signature: str, tier: str) -> list[Case]:
        """The cases with that key: usually one, more if they were found on different releases."""
        digest = key_digest(kind, signature, tier)
        loaded = (self._load(name, path) for name, path in self._folders() if digest in name)
        return [c for c in loaded if isinstance(c, Case) and c.key == (kind, signature, tier)]

    def read(self, slug: str, name: str) -> bytes:
        """A file of a case: its script, module or report.

        Raises:
            InputError: missing, or not a regular file of the case's folder.
        """
        return read_regular(self.path(slug) / check_file_name(name))

    def add(self, case: Case, files: Files, *, count: bool = True) -> AddResult:
        """Store a find, with the files its tiers name. Safe against other processes, and all or nothing.

        A new failure becomes a case. Another find of a known one adds to its count, and replaces what it has smaller
        of. The stored slug can differ from the given one when the name is taken. `count` is false for a smaller form
        of a find that was added before.

        Raises:
            InputError: the case or a file name breaks a rule of the format, or a named file is not given.
            StorageError: the folder cannot be written, the disk is full, or the lock is held for too long.
        """
        encode_case(case)
        for tier in case.tiers.values():
            _require(tier.files, files)
        if case.start is not None and case.start.file:
            _require((case.start.file,), files)
        with self._locked():
            same = [c for c in self.find(*case.key) if same_failure(c, case)]
            # The case of the find's own target first, before one of another that fails so there too.
            known = min(same, key=lambda c: not same_target(c, case), default=None)
            if known is None:
                case = msgspec.structs.replace(case, slug=self._free_slug(case))
                self._write(case, dict(files))
                return AddResult(Status.NEW, case, self.path(case.slug))
            merged = merge(known, case, count=count)
            path = self.path(merged.case.slug)
            if merged.case == known:
                return AddResult(Status.KEPT, known, path)
            if not merged.changed:
                with storing(path):
                    write_file(path / CASE_FILE, encode_case(merged.case), mark=NEW)
                return AddResult(Status.KEPT, merged.case, path)
            names = [name for tier in merged.taken for name in case.tiers[tier].files]
            if case.start is not None and merged.case.start == case.start and case.start.file:
                names.append(case.start.file)
            if case.tier in merged.taken and REPORT_FILE in files:
                names.append(REPORT_FILE)
            self._write(merged.case, {name: files[name] for name in names}, before=known)
            return AddResult(Status.SMALLER if merged.taken else Status.KEPT, merged.case, path)

    def update(self, slug: str, change: Callable[[Case], Case], files: Files | None = None) -> Case:
        """Replace a case by `change(case)`, under the lock; record an outcome or a certificate this way.

        Raises:
            InputError: no such case, or the result breaks a rule of the format.
            StorageError: as `add`.
        """
        with self._locked():
            known = self.get(slug)
            case = msgspec.structs.replace(change(known), slug=slug)
            if case != known or files:
                self._write(case, dict(files or {}), before=known)
            return case

    def _write(self, case: Case, files: dict[str, bytes | str], *, before: Case | None = None) -> None:
        owned = _owned(case)
        stale = frozenset(_owned(before) - owned) if before is not None else frozenset()
        data = {check_file_name(n): t if isinstance(t, bytes) else _utf8(t) for n, t in files.items()}
        data[CASE_FILE] = encode_case(case)
        if self._report is not None:
            data[REPORT_FILE] = _utf8(self._report(case))
        path = self.path(case.slug)
        with storing(path):
            write_folder(path, data, drop=stale)

    def _free_slug(self, case: Case) -> str:
        # A folder of this name that is not this failure is damaged, or of another release: never overwritten.
        release = case.target.libtpu.replace(".", "-").replace("_", "-").replace("+", "-").lower()
        room = 100 - len(release) - 5
        names = [case.slug, f"{case.slug[:room]}-{release}".strip("-")]
        names += [f"{names[1]}-{n}" for n in range(2, 1000)]
        return next(name for name in names if not os.path.lexists(self.path(name)))

    def _folders(self) -> list[tuple[str, Path]]:
        try:
            entries = sorted(self.folder.iterdir()) if os.path.lexists(self.folder) else []
        except OSError as error:
            raise InputError(f"cannot list {self.folder}: {error.strerror}", hint="a corpus is a folder") from None
        if any(e.name.startswith(OLD) for e in entries) and set_aside(self.folder):
            # A writer died between two renames, or is between them now: wait for it and put things right.
            with contextlib.suppress(StorageError), self._locked():
                entries = sorted(self.folder.iterdir())
        found = {e.name: e for e in entries if e.is_dir() and e.name[0] not in "._"}
        return sorted((found | set_aside(self.folder)).items())

    def _load(self, name: str, path: Path) -> Case | Damaged:
        aside = self.folder / f"{OLD}{name}"
        for _ in range(_LOOKS):
            try:
                if path.is_symlink():
                    raise InputError(f"{path}: is a symbolic link", hint="a case is a folder of its own")
                case = load_case(path)
                if case.slug != name:
                    raise InputError(f"{path}: the case calls itself {case.slug}", hint="rename the folder to that")
                return case
            except InputError as error:
                damaged = Damaged(path, _utf8(str(error)).decode())  # a file name can hold undecodable bytes
                if (path / CASE_FILE).exists():
                    break
            # Perhaps it was being replaced while it was read: it is in one of the two places.
            path = self.folder / name
            if not path.exists() and aside.is_dir():
                path = aside
        return damaged

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with storing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / LOCK_FILE)
            try:
                lock.acquire(timeout=self._lock_seconds)
            except Timeout:
                raise StorageError(
                    f"{self.folder} is held by another process for {self._lock_seconds:g} s",
                    hint=f"end it, or choose another folder; the lock is {self.folder / LOCK_FILE}",
                ) from None
        try:
            with storing(self.folder):
                recover(self.folder)
            yield
        finally:
            lock.release()


def _owned(case: Case) -> set[str]:
    names = {name for tier in case.tiers.values() for name in tier.files}
    return names | ({case.start.file} if case.start is not None and case.start.file else set())


def _require(names: tuple[str, ...], files: Files) -> None:
    missing = [name for name in names if name not in files]
    if missing:
        raise InputError(f"the case names {missing[0]}, which is not among its files")


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
