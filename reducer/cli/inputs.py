"""Reading what a user points at: a case, a program, a StableHLO module, or a function of a script."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from pathlib import Path

import msgspec

from reducer.captures import MODULE_LIMIT, Capture, captures_in, is_capture, load_capture
from reducer.corpus import Case, Corpus
from reducer.corpus.casefile import CASE_FILE, load_case, read_regular
from reducer.errors import InputError, ProgramError
from reducer.ir.check import check as check_program
from reducer.ir.codec import decode
from reducer.ir.equations import Program
from reducer.oracle.hlo import convert_hlo
from reducer.oracle.jobs import Job, ModuleJob, ScriptJob
from reducer.oracle.programs import program_job
from reducer.oracle.target import Options

_CORPUS = "a corpus is a folder of cases, made by `scanshrink hunt`"
#: How each gzip file begins.
_GZIP = b"\x1f\x8b"
_SCRIPT = re.compile(r"(?P<path>.+\.py):(?P<function>[A-Za-z_]\w*)")


class Item(msgspec.Struct, frozen=True):
    """One thing to compile: what the user called it, the job, and what is behind it, if any: program, case, capture.

    `notes` are lines that the user should read before what becomes of it.
    """

    name: str
    job: Job
    program: Program | None = None
    case: Case | None = None
    capture: Capture | None = None
    notes: tuple[str, ...] = ()

    @property
    def topology(self) -> str | None:
        """The topology it comes with, or None."""
        if self.case is not None:
            return self.case.target.topology
        return (self.capture.topology or None) if self.capture is not None else None

    @property
    def options(self) -> Options:
        """The compiler options it comes with."""
        if self.case is not None:
            return tuple(sorted(self.case.target.options.items()))
        return self.capture.compiler_options if self.capture is not None else ()


def read(name: str) -> Item:
    """Read one argument of `check`, `reduce` or `bisect`.

    Raises:
        InputError: missing, unreadable, too large, of a newer format, or of no known kind; says what to do.
    """
    if not name:
        raise InputError("the program's name is empty", hint="name a file, a folder or script.py:function")
    script = _SCRIPT.fullmatch(name)
    if script is not None:
        path = Path(script["path"])
        _require(path)
        return Item(name, ScriptJob(path=str(path.absolute()), function=script["function"]))
    path = Path(name)
    _require(path)
    if is_capture(path):
        capture = load_capture(path)
        return Item(name, capture.job, capture=capture)
    if path.is_dir() and (captures := captures_in(path)):
        raise InputError(f"{name}: is a folder of captures", hint=f"name one, such as {captures[0]}")
    if path.is_dir() and not os.path.lexists(path / "case.json") and (cases := sorted(path.glob("*/case.json"))):
        raise InputError(f"{name}: is a folder of cases", hint=f"name one, such as {cases[0].parent}")
    if path.is_dir() or path.name == "case.json":
        return _case(name, path if path.is_dir() else path.parent)
    if path.name.endswith((".mlir", ".mlir.gz", ".mlirbc")):
        return Item(name, ModuleJob.of(_module(path)))
    if path.name.endswith((".txt", ".hlo")):
        hlo, notes = convert_hlo(_module(path), name)
        return Item(name, hlo, notes=notes)
    if path.suffix == ".json":
        return _program(name, path)
    if path.suffix == ".py":
        raise InputError(f"{name}: which function?", hint=f"name it as {name}:function, returning (fn, abstract args)")
    raise InputError(
        f"{name}: not a kind of input",
        hint="give a case or capture folder, case.json, program.json, .mlir[.gz], *.before_optimizations.txt or "
        "script.py:function",
    )


def existing(folder: Path) -> Path:
    """The folder of a corpus, which must be there.

    Raises:
        InputError: it is not, or holds other things than cases.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder", hint=_CORPUS)
    if not Corpus(folder).is_one():
        itself = (folder / CASE_FILE).exists()
        raise InputError(f"{folder}: holds no case", hint="it is a case itself: name its corpus" if itself else _CORPUS)
    return folder


def _require(path: Path) -> None:
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")


def _read_bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > MODULE_LIMIT:
            raise InputError(f"{path}: {path.stat().st_size >> 20} MiB is beyond the limit of {MODULE_LIMIT >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def _module(path: Path) -> bytes:
    data = _read_bytes(path)
    if path.suffix == ".gz":
        try:
            with gzip.open(path) as stream:
                data = stream.read(MODULE_LIMIT + 1)
        except EOFError:
            raise InputError(f"{path}: is cut short", hint="copy or write it again") from None
        except (OSError, zlib.error) as error:
            what = "is damaged" if data.startswith(_GZIP) else "not a gzip file"
            raise InputError(f"{path}: {what}: {error}") from None
        if len(data) > MODULE_LIMIT:
            raise InputError(f"{path}: unpacks to more than {MODULE_LIMIT >> 20} MiB")
    if not data.strip():
        raise InputError(f"{path}: is empty")
    return data


def _program(name: str, path: Path) -> Item:
    try:
        program = decode(_read_bytes(path))
        check_program(program)
    except (InputError, ProgramError) as error:
        named = error.message if error.message.startswith(str(path)) else f"{name}: {error.message}"
        raise InputError(named, hint=error.hint) from None
    return Item(name, program_job(program), program=program)


def _case(name: str, folder: Path) -> Item:
    case = load_case(folder)
    minimum = case.minimum
    if minimum.program is None:
        # A case may come from anybody: no link out of its folder is followed.
        return Item(name, ModuleJob.of(read_regular(folder / minimum.module, cap=MODULE_LIMIT)), case=case)
    return Item(name, program_job(minimum.program), program=minimum.program, case=case)
