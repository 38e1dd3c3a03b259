"""Capture folders: a module that did not compile in somebody's own run, with how it was to be compiled.

``scanshrink capture`` writes them (see `reducer.hook`). A folder from elsewhere is hostile until read: nothing in it
is executed, every value is validated, and only files of fixed names are opened.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from reducer.corpus.casefile import read_regular
from reducer.errors import InputError, TargetError
from reducer.oracle.jobs import ModuleJob
from reducer.oracle.target import Options, check_options, installed_libtpu, options_with_files

FORMAT: Final = 1
CAPTURE_FILE: Final = "capture.json"
TEXT_FILE: Final = "module.mlir"
BYTECODE_FILE: Final = "module.mlirbc"
PORTABLE_FILE: Final = "portable.mlirbc"
JAXPR_FILE: Final = "jaxpr.txt"
#: Larger modules than any real train step (the 7,000-operation one is 1 MB).
MODULE_LIMIT: Final = 64 << 20
_RECORD_LIMIT: Final = 4 << 20
_TOPOLOGY = re.compile(r"(?:[a-z0-9]{2,8}:\d{1,4}(?:x\d{1,4}){1,2})?")
_HINT: Final = "expected the capture.json that scanshrink capture writes"
#: Variables that change what libtpu or XLA makes of a module.
_FLAGS: Final = ("LIBTPU_INIT_ARGS", "XLA_FLAGS")

Count = Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]
Text = Annotated[str, msgspec.Meta(max_length=1 << 20)]
Word = Annotated[str, msgspec.Meta(max_length=2000)]


class Environment(msgspec.Struct, frozen=True):
    """Where a module was captured. Versions are empty where there was no such package."""

    python: Word = ""
    jax: Word = ""
    jaxlib: Word = ""
    libtpu: Word = ""
    platform_version: Word = ""
    variables: dict[str, Text] = {}


class Failure(msgspec.Struct, frozen=True):
    """What the compiler answered: the exception's type and text, or how the process ended."""

    type: Word = ""
    message: Text = ""


class Capture(msgspec.Struct, frozen=True):
    """One captured module. `outcome`: "failed" (an error came back), "died" (the process ended), "compiled".

    `topology` is what libtpu calls the devices it was compiled for, or empty if they were no TPUs. `assignment` are the
    devices of replica 0's partitions, then replica 1's, ... `seconds` is how long the compiler took.
    """

    name: Word
    outcome: Literal["failed", "died", "compiled"]
    partitions: Count = 1
    replicas: Count = 1
    platform: Word = ""
    device_kind: Word = ""
    topology: Word = ""
    assignment: tuple[int, ...] = ()
    options: dict[str, str | int | bool | float] = {}
    error: Failure = Failure()
    environment: Environment = Environment()
    seconds: float = 0.0
    pid: int = 0
    #: Filled in by `load_capture`: the text where there is one, else the bytecode.
    module: bytes = b""
    folder: str = ""

    @property
    def job(self) -> ModuleJob:
        """The module as a job for a worker."""
        return ModuleJob.of(self.module, partitions=self.partitions, replicas=self.replicas)

    @property
    def compiler_options(self) -> Options:
        """The options it was compiled with, as a target's, but those that have files written."""
        refused = options_with_files(self.options)
        return _options({name: value for name, value in self.options.items() if name not in refused})

    @property
    def portable(self) -> Path | None:
        """The StableHLO portable artifact beside the module, if there is one."""
        path = Path(self.folder) / PORTABLE_FILE
        return path if path.is_file() else None

    @property
    def jaxpr(self) -> Path | None:
        """The text of the jaxpr, if it could be had."""
        path = Path(self.folder) / JAXPR_FILE
        return path if path.is_file() else None

    def notes(self, libtpu: str | None = None, variables: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """What is different here from where it was captured, one line each.

        Args:
            libtpu: the release that will compile it; default: the installed one.
            variables: the environment; default: this process's.
        """
        notes = []
        for package, there in (("jaxlib", self.environment.jaxlib), ("libtpu", self.environment.libtpu)):
            here = libtpu if package == "libtpu" and libtpu else _version(package)
            # A libtpu that was not installed is known by its path; ours lie in folders named as the release.
            if there and here and here not in (there, Path(there).parent.name):
                advice = f"; --libtpu {there} compiles with that one" if package == "libtpu" else ""
                notes.append(f"{self.name} was captured with {package} {there}, and this is {here}{advice}")
        notes += [f"compiler option {name} names a file; it is left out" for name in options_with_files(self.options)]
        now = os.environ if variables is None else variables
        for flag in _FLAGS:
            value = self.environment.variables.get(flag, "")
            if value != now.get(flag, ""):
                notes.append(f"{self.name} was captured with {flag}={value!r}; set that to compile it alike")
        if self.platform and self.platform != "tpu":
            notes.append(f"{self.name} was compiled for {self.platform}; here it is compiled for TPU")
        return tuple(notes)


class _Header(msgspec.Struct):
    format: int


class _State(msgspec.Struct):
    outcome: str = ""


_header = msgspec.json.Decoder(_Header)
_state = msgspec.json.Decoder(_State)
_capture = msgspec.json.Decoder(Capture)


def is_capture(path: Path) -> bool:
    """Whether this is a capture's folder or its `capture.json`."""
    return path.name == CAPTURE_FILE or (path.is_dir() and os.path.lexists(path / CAPTURE_FILE))


def captures_in(folder: Path) -> list[Path]:
    """The capture folders directly in `folder`, by name; those being written are left out."""
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if not p.name.startswith(".") and p.is_dir() and is_capture(p))


def load_capture(path: Path) -> Capture:
    """Read a capture's folder (or its `capture.json`); never follows a symbolic link out of it.

    Raises:
        InputError: missing, damaged, of a newer format, or interrupted before it was complete; says which.
    """
    folder = path.parent if path.name == CAPTURE_FILE else path
    file = folder / CAPTURE_FILE
    data = read_regular(file, cap=_RECORD_LIMIT)
    try:
        version = _header.decode(data).format
        if version > FORMAT:
            raise InputError(
                f"{file}: written by a newer scanshrink (format {version}, this one reads up to {FORMAT})",
                hint="upgrade scanshrink",
            )
        if version < 1:
            raise InputError(f"{file}: there is no format {version}", hint=_HINT)
        if _state.decode(data).outcome == "compiling":
            raise InputError(
                f"{folder}: is not complete: its process was still compiling, or was killed with its `capture`",
                hint="run scanshrink capture again",
            )
        capture = _capture.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: {error}", hint=_HINT) from None
    except RecursionError:
        raise InputError(f"{file}: nested too deeply", hint=_HINT) from None
    _validate(capture, file)
    return msgspec.structs.replace(capture, module=_module(folder), folder=str(folder.absolute()))


def _validate(capture: Capture, file: Path) -> None:
    if not _TOPOLOGY.fullmatch(capture.topology):
        raise InputError(f"{file}: $.topology: {capture.topology[:80]!r} is no topology", hint=_HINT)
    if capture.partitions * capture.replicas > 1 << 20:
        raise InputError(f"{file}: $.partitions: too many", hint=_HINT)
    try:
        _options(capture.options)
    except TargetError as error:
        raise InputError(f"{file}: $.options: {error.message}", hint=_HINT) from None


def _options(options: Mapping[str, str | int | bool | float]) -> Options:
    return check_options({name: str(v) if isinstance(v, float) else v for name, v in options.items()})


def _module(folder: Path) -> bytes:
    # Text first: it is what another jaxlib is most likely to read, since bytecode of shardings has no versions.
    names = [name for name in (TEXT_FILE, BYTECODE_FILE, PORTABLE_FILE) if os.path.lexists(folder / name)]
    if not names:
        raise InputError(f"{folder}: holds no module", hint=f"a capture has {TEXT_FILE} or {BYTECODE_FILE}")
    data = read_regular(folder / names[0], cap=MODULE_LIMIT)
    if not data.strip():
        raise InputError(f"{folder / names[0]}: is empty")
    return data


def _version(package: str) -> str:
    if package == "libtpu":
        found = installed_libtpu()
        return found[0] if found is not None else ""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
