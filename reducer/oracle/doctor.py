"""Can this machine compile for a TPU, with what, and if not, what to do about it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from reducer.errors import ScanshrinkError, StorageError, TargetError
from reducer.oracle.cachedir import CACHE_VARIABLE, cache_root, make_folder, sha256_of
from reducer.oracle.outcome import Incompatible
from reducer.oracle.pool import Pool
from reducer.oracle.releases import cached_releases
from reducer.oracle.target import DEFAULT_TOPOLOGY, TOPOLOGIES, Target, resolve_target

_START_SECONDS = 120.0


class Problem(msgspec.Struct, frozen=True):
    """Something in the way, and what to do about it. `fatal`: nothing can be compiled."""

    message: str
    hint: str
    fatal: bool = True


class Diagnosis(msgspec.Struct, frozen=True):
    """What was found. Versions are "" where a package is missing; `topologies` are those that compile ``x + 1``.

    `loaded_path` and `loaded_sha256` are of the library that a worker process really mapped, "" if none did.
    `tpu_library_path` is the user's own TPU_LIBRARY_PATH, which a worker's replaces.
    """

    python: str
    platform: str
    jax: str
    jaxlib: str
    libtpu: str
    loaded_path: str
    loaded_sha256: str
    tpu_library_path: str
    topologies: tuple[str, ...]
    cached_releases: tuple[str, ...]
    cache: str
    problems: tuple[Problem, ...]

    @property
    def can_compile(self) -> bool:
        """Whether programs can be compiled for a TPU here."""
        return not any(problem.fatal for problem in self.problems)


def diagnose(libtpu: str | None = None, topologies: Sequence[str] = TOPOLOGIES, *, workers: int = 2) -> Diagnosis:
    """Look at versions, then start one worker for each of `topologies`, `workers` at a time (about 2 s each).

    `libtpu` is as for `resolve_target`. Raises nothing: what is wrong is in `problems`.
    """
    problems = _environment_problems()
    target: Target | None = None
    try:
        target = resolve_target(libtpu, DEFAULT_TOPOLOGY)
    except ScanshrinkError as error:
        problems.append(Problem(error.message, error.hint))
    working: list[str] = []
    if target is not None and not any(problem.fatal for problem in problems):
        working, found = _probe(target, topologies, workers)
        problems += found
    loaded = target is not None and bool(working)
    return Diagnosis(
        python=platform.python_version(),
        platform=f"{sys.platform} {platform.machine()}",
        jax=_version("jax"),
        jaxlib=_version("jaxlib"),
        libtpu=target.libtpu if target is not None else _version("libtpu"),
        loaded_path=target.path if target is not None and loaded else "",
        loaded_sha256=sha256_of(Path(target.path)) if target is not None and loaded else "",
        tpu_library_path=os.environ.get("TPU_LIBRARY_PATH", ""),
        topologies=tuple(working),
        cached_releases=tuple(cached_releases()),
        cache=str(cache_root()),
        problems=tuple(problems),
    )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _environment_problems() -> list[Problem]:
    problems = []
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        problems.append(
            Problem(f"libtpu does not exist for {sys.platform} {platform.machine()}", "use Linux on x86-64")
        )
    problems.extend(
        Problem(f"{package} is not installed", f"pip install {package}")
        for package in ("jax", "jaxlib")
        if not _version(package)
    )
    try:
        with tempfile.TemporaryFile(dir=make_folder(cache_root())):
            pass
    except (OSError, StorageError):
        problems.append(
            Problem(
                f"the cache folder {cache_root()} cannot be written",
                f"set {CACHE_VARIABLE} to a folder you can write; outcomes are not kept, and no libtpu can be fetched",
                fatal=False,
            )
        )
    own = os.environ.get("TPU_LIBRARY_PATH", "")
    if own:
        missing = "" if os.path.isfile(own) else ", and the file does not exist"
        problems.append(
            Problem(
                f"TPU_LIBRARY_PATH is set to {own}{missing}; it is not used here",
                "pass that path as --libtpu if you want it",
                fatal=False,
            )
        )
    return problems


def _probe(target: Target, topologies: Sequence[str], workers: int) -> tuple[list[str], list[Problem]]:
    """Return which topologies a worker gets ready for, and why the others do not."""

    def one(topology: str) -> ScanshrinkError | Incompatible | None:
        try:
            with Pool(msgspec.structs.replace(target, topology=topology), start_seconds=_START_SECONDS) as pool:
                return pool.wait_ready()
        except ScanshrinkError as error:
            return error

    with ThreadPoolExecutor(workers) as threads:
        answers = dict(zip(topologies, threads.map(one, topologies), strict=True))
    working = [topology for topology, answer in answers.items() if answer is None]
    problems = []
    for topology, answer in answers.items():
        if answer is None:
            continue
        fatal = not working
        if isinstance(answer, Incompatible):
            problems.append(Problem(answer.message, "give another libtpu, or install another jax", fatal=fatal))
        else:
            hint = answer.hint
            if isinstance(answer, TargetError):
                these = f"leave {topology} out; these work: {', '.join(working)}"
                hint = these if working else "none works with it: give another --libtpu"
            problems.append(Problem(answer.message, hint, fatal=fatal))
    if working or not problems:
        return working, problems
    # Nothing works, for one reason: a libtpu that compiles nothing, whatever it says of topologies it does not know.
    unfit = next((n for n, answer in enumerate(answers.values()) if isinstance(answer, Incompatible)), 0)
    return working, [problems[unfit]]
