"""What a program is compiled for: libtpu release + TPU topology + compiler options, resolved once and for all.

A `Target` names the file that must be loaded, with its sha256; the worker verifies that it was. A wish that
cannot be met (an unknown release, a path that does not exist) is a `TargetError`, never a silent fallback.
"""

from __future__ import annotations

import difflib
import importlib.metadata
import importlib.util
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from reducer.errors import TargetError
from reducer.oracle.cachedir import sha256_of

OptionValue: TypeAlias = str | int | bool
Options: TypeAlias = tuple[tuple[str, OptionValue], ...]

DEFAULT_TOPOLOGY = "v5e:2x2"
TOPOLOGIES: tuple[str, ...] = (
    "v2:2x2",
    "v3:2x2",
    "v4:2x2x1",
    "v5e:1x1",
    "v5e:2x2",
    "v5p:1x1x1",
    "v5p:2x2x1",
    "v5p:2x2x2",
    "v6e:1x1",
    "v6e:2x2",
    "tpu7x:2x2x1",
)
"""Topology names that were seen to compile on a machine without a TPU."""
# Larger slices of these (v5e:16x16 has 256 devices) are described as readily; libtpu says which there are. Beyond 16
# chips a side it aborts.
_SIDE = "(?:1|2|4|8|12|16)"
_LARGER = re.compile(rf"(?:(?:v2|v3|v5e|v6e):{_SIDE}x{_SIDE}|(?:v4|v5p|tpu7x):{_SIDE}x{_SIDE}x{_SIDE})\Z")

RELEASE = re.compile(r"\d+(\.\d+)+([a-z.]+\d+)*\Z")
"""What a libtpu release is called."""
_FILE_WORDS = frozenset({"dump", "file", "files", "path", "paths", "dir", "dirs", "directory", "folder", "filename"})
_OPTION_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One libtpu file, one topology, one set of compiler options; build it with `resolve_target`.

    `libtpu` is what to call it: a release ("0.0.52") or the absolute path the user gave. `path` is the real path
    of the shared library, `sha256` its hash in hex. `options` are sorted by name.
    """

    libtpu: str
    path: str
    sha256: str
    topology: str = DEFAULT_TOPOLOGY
    options: Options = ()

    def as_json(self) -> dict[str, Any]:
        """Return what machines read: ``{"libtpu", "sha256", "topology", "options"}``."""
        return {
            "libtpu": self.libtpu,
            "sha256": self.sha256,
            "topology": self.topology,
            "options": dict(self.options),
        }

    def __str__(self) -> str:
        options = "".join(f" {name}={value}" for name, value in self.options)
        return f"libtpu {self.libtpu} ({self.sha256[:12]}), {self.topology}{options}"


def resolve_target(
    spec: str | None = None,
    topology: str = DEFAULT_TOPOLOGY,
    options: Mapping[str, OptionValue] | Iterable[tuple[str, OptionValue]] = (),
) -> Target:
    """Return the target named by `spec`: None or "installed", a release such as "0.0.50.1", or a path.

    A release that is not installed is looked for in the cache and fetched through pip if need be (some 150 MB).
    Raises `TargetError` for an unknown release, path, topology or malformed option.
    """
    _check_topology(topology)
    chosen = check_options(options)
    name, path = _find_library(spec)
    try:
        digest = sha256_of(path)
    except OSError as error:
        raise TargetError(f"cannot read {path}: {error.strerror or error}") from error
    return Target(libtpu=name, path=str(path.resolve()), sha256=digest, topology=topology, options=chosen)


def release_order(libtpu: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that puts 0.0.9 before 0.0.42.1, and names that are no release last."""
    parts = re.findall(r"\d{1,9}|[A-Za-z]+", libtpu)
    return tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in parts)


def installed_libtpu() -> tuple[str, Path] | None:
    """Return version and path of the libtpu installed beside this Python, or None. Does not import it."""
    spec = importlib.util.find_spec("libtpu")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).with_name("libtpu.so")
    try:
        return importlib.metadata.version("libtpu"), path
    except importlib.metadata.PackageNotFoundError:
        return "unknown", path


def parse_option(text: str) -> tuple[str, OptionValue]:
    """Read ``name=value`` as typed on a command line; true/false and integers get their type.

    Raises `TargetError` when it has no ``=`` or the name is no identifier.
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise TargetError(f"compiler option {text!r} has no value", hint="write it as NAME=VALUE")
    return _check_option(name.strip().lstrip("-"), _typed(value.strip()))


def check_options(options: Mapping[str, OptionValue] | Iterable[tuple[str, OptionValue]]) -> Options:
    """Return `options` sorted by name, each checked. Raises `TargetError` on a bad or repeated one."""
    pairs = list(options.items()) if isinstance(options, Mapping) else list(options)
    checked: dict[str, OptionValue] = {}
    for pair in pairs:
        name, value = _check_option(*pair)
        if checked.setdefault(name, value) != value:
            raise TargetError(f"compiler option {name} is given twice, as {checked[name]!r} and {value!r}")
    return tuple(sorted(checked.items()))


def options_with_files(options: Iterable[str]) -> list[str]:
    """The names of options that name files or folders: XLA writes its dumps wherever such a one says.

    A user may give one; a case or capture, which may come from anybody, may not.
    """
    return sorted(name for name in options if _FILE_WORDS & set(name.lower().split("_")))


def _check_option(name: str, value: OptionValue) -> tuple[str, OptionValue]:
    if not _OPTION_NAME.match(name):
        raise TargetError(f"{name!r} is no name of a compiler option", hint="such as xla_tpu_scoped_vmem_limit_kib=1")
    if not isinstance(value, str | int | bool):
        raise TargetError(f"compiler option {name} must be text, an integer or true/false, not {value!r}")
    return name, value


def _typed(value: str) -> OptionValue:
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    return int(value) if re.fullmatch(r"-?\d{1,18}", value) else value


def _check_topology(topology: str) -> None:
    if topology not in TOPOLOGIES and not _LARGER.match(topology):
        near = difflib.get_close_matches(topology, TOPOLOGIES, n=1)
        known = ", ".join(TOPOLOGIES)
        raise TargetError(
            f"unknown topology {topology!r}",
            hint=(f"did you mean {near[0]}? " if near else "") + f"known: {known}",
        )


def _find_library(spec: str | None) -> tuple[str, Path]:
    installed = installed_libtpu()
    if spec is None or spec == "installed":
        if installed is None or not installed[1].is_file():
            raise TargetError("no libtpu is installed", hint="pip install libtpu, or name a release or a path")
        return installed
    looks_like_a_path = os.sep in spec or spec.endswith(".so") or spec.startswith("~")
    if not looks_like_a_path and RELEASE.match(spec):
        if installed is not None and installed[0] == spec and installed[1].is_file():
            return installed
        from reducer.oracle.releases import fetch_release

        return spec, fetch_release(spec)
    path = Path(os.path.expanduser(spec)).absolute()  # leaves the ~ of an unknown user as it is
    if path.is_dir():
        path = path / "libtpu.so"
    if not path.is_file():
        raise TargetError(
            f"no libtpu at {path}" if looks_like_a_path else f"{spec!r} is neither a libtpu release nor a file",
            hint='give an existing libtpu.so, a release such as "0.0.50.1", or "installed"',
        )
    return str(path), path
