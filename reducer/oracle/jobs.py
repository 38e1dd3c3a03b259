"""What can be put to the oracle: a program's text, a script's function, or a StableHLO module.

Jobs are plain data: they cross a pipe to a worker process, which lowers them and then, if the parent agrees,
compiles them.
"""

from __future__ import annotations

import hashlib
import re
from typing import TypeAlias

import msgspec


class ProgramJob(msgspec.Struct, frozen=True, tag="program"):
    """Python text which, executed in an empty namespace, defines ``lower(devices) -> jax.stages.Lowered``.

    `devices` are the topology's TPU devices. `key` is the program's identity: two jobs of one key must lower to
    one module under one JAX and topology, so it has to cover the code that wrote the text. An empty key means
    that the program is always lowered again.
    """

    source: str
    key: str = ""
    require_host_placement: bool = False


class ScriptJob(msgspec.Struct, frozen=True, tag="script"):
    """``script.py:function``, where the function returns ``(fn, abstract_args)``.

    A function with one required parameter gets the topology's devices. `fn` is jitted if it is not; arguments
    without sharding get one TPU device. Lowered anew each time (what it imports may have changed), in a
    worker that is not used again (it may have changed JAX's configuration).
    """

    path: str
    function: str
    require_host_placement: bool = False


class ModuleJob(msgspec.Struct, frozen=True, tag="module"):
    """A StableHLO module, as text or as bytecode; build it with `ModuleJob.of` to read the counts from the text."""

    module: bytes
    partitions: int = 1
    replicas: int = 1
    require_host_placement: bool = False

    @classmethod
    def of(
        cls,
        module: str | bytes,
        *,
        partitions: int | None = None,
        replicas: int | None = None,
        require_host_placement: bool = False,
    ) -> ModuleJob:
        """Return a job for `module`; counts not given are read from its attributes, or are 1."""
        data = module.encode() if isinstance(module, str) else module
        read_partitions, read_replicas = module_partitions(data.decode("utf-8", "replace"))
        return cls(
            module=data,
            partitions=read_partitions if partitions is None else partitions,
            replicas=read_replicas if replicas is None else replicas,
            require_host_placement=require_host_placement,
        )


Job: TypeAlias = ProgramJob | ScriptJob | ModuleJob

_COUNT = {name: re.compile(rf"mhlo\.{name}\s*=\s*(\d{{1,9}})\s*:") for name in ("num_partitions", "num_replicas")}
_HEAD = 64 * 1024


def module_partitions(text: str) -> tuple[int, int]:
    """Return (num_partitions, num_replicas) from a module's attributes, 1 where the text does not say."""
    start = text.find("module")
    # Attributes end where the first operation begins; a later string that looks like one must not count.
    end = text.find("func.func", start)
    head = text[max(start, 0) : end if end > 0 else _HEAD]
    counts = [int(match[1]) if (match := _COUNT[name].search(head)) else 1 for name in _COUNT]
    return max(counts[0], 1), max(counts[1], 1)


def job_key(job: Job) -> str:
    """Return what identifies the job's module before it is lowered, or "" when nothing does."""
    if isinstance(job, ProgramJob):
        return f"program:{job.key}" if job.key else ""
    if isinstance(job, ModuleJob):
        digest = hashlib.sha256(job.module).hexdigest()
        return f"module:{digest}:{job.partitions}:{job.replicas}"
    return ""


def compiled_as(job: Job, module_key: str) -> str:
    """Return what identifies the compilation of a lowered job within one target.

    A module that was given is compiled with other options than the same text lowered by ``jax.jit``.
    """
    if isinstance(job, ModuleJob):
        return f"{module_key}:{job.partitions}:{job.replicas}"
    return module_key


_PLACEMENT = re.compile(r'"(?:un)?pinned_host"')


_MAIN = re.compile(r"func\.func public @main\(.*?\) -> (.*) \{$", re.MULTILINE)


def returns_host(module_text: str) -> bool:
    """Say whether the entry of a module that was lowered by ``jax.jit`` declares a result to lie in host memory."""
    main = _MAIN.search(module_text)
    return main is not None and _PLACEMENT.search(main[1]) is not None


def has_host_placement(module_text: str) -> bool:
    """Say whether a module's text places any value in host memory: an argument, a result or a transfer."""
    return _PLACEMENT.search(module_text) is not None
