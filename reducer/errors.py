"""The errors a user can meet. Few, typed, carrying data; each message says what to do next.

Anything else that escapes is a bug of ours: internal invariants are asserts, not errors. The command line turns
a `ScanshrinkError` into one line and exit code 2, and into ``{"error": {"kind", "message", "hint"}}`` with ``--json``.
"""

from __future__ import annotations


class ScanshrinkError(Exception):
    """Base class: `kind` is a stable word for machines, `hint` says what to do next."""

    kind = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InputError(ScanshrinkError):
    """A file, folder or argument cannot be used: missing, unreadable, of a newer format, not what it says."""

    kind = "input"


class ProgramError(ScanshrinkError):
    """A program breaks a rule of the IR. `where` is the path of the equation, e.g. ``block.eqns[2].body``."""

    kind = "program"

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message, hint=hint)
        self.where = where


class TargetError(ScanshrinkError):
    """A libtpu release, path, topology or compiler option does not exist or does not load on this machine."""

    kind = "target"


class WorkerError(ScanshrinkError):
    """Worker processes cannot be started or keep dying before they take a job; says why."""

    kind = "worker"


class StorageError(ScanshrinkError):
    """A corpus, cache or output folder cannot be written: permissions, a full disk, a held lock."""

    kind = "storage"
