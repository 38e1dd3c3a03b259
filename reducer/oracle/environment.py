"""The environment a worker process is given: which libtpu, no TPU asked for, nothing left over from the user's shell.

Everything here must be set before JAX loads libtpu, so the pool sets it before the process exists.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

FIXED: dict[str, str] = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    # Without it a second process fails on libtpu's lock file.
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    # libtpu would write a log file per process and never delete one.
    "TPU_LOG_DIR": "disabled",
    "JAX_ENABLE_COMPILATION_CACHE": "false",
    "PYTHONUNBUFFERED": "1",
    "PYTHONIOENCODING": "utf-8:backslashreplace",
}

_RELEVANT = ("LIBTPU_INIT_ARGS", "XLA_FLAGS")
_OURS = frozenset(FIXED) | {"JAX_COMPILATION_CACHE_DIR"}


def worker_environment(library: str, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return `base` (default: this process's environment) made fit to compile with the libtpu at `library`."""
    environment = dict(os.environ if base is None else base)
    environment.update(FIXED)
    environment["TPU_LIBRARY_PATH"] = library
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    environment.pop("PYTHONSTARTUP", None)
    return environment


def relevant_environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables that can change what a program lowers or compiles to: part of every cache key."""
    environment = os.environ if base is None else base
    return {
        name: value
        for name, value in sorted(environment.items())
        if name in _RELEVANT or (name.startswith("JAX_") and name not in _OURS)
    }
