"""HLO text, as ``--xla_dump_to`` writes it, -> StableHLO. The conversion is jaxlib's, in a process of its own."""

from __future__ import annotations

import re
import subprocess

import msgspec

from reducer.aside import run_aside
from reducer.errors import InputError
from reducer.oracle.jobs import ModuleJob

_SECONDS = 300.0
_MEMORY = 16 << 30
_COUNTS = {name: re.compile(rf"\b{name}=(\d{{1,6}})\b") for name in ("num_partitions", "replica_count")}
_MARK = b"HloModule "


class Converted(msgspec.Struct, frozen=True):
    """What the process answers: a module's text and what was left out of the HLO, or in one line what is wrong."""

    module: str = ""
    dropped: tuple[str, ...] = ()
    error: str = ""


def is_hlo(data: bytes) -> bool:
    """Whether this is the text of an HLO module."""
    return data.lstrip().startswith(_MARK)


def convert_hlo(data: bytes, name: str) -> tuple[ModuleJob, tuple[str, ...]]:
    """Convert HLO text; also what the user should know of it, one line each.

    Raises:
        InputError: it is no HLO text, optimised already, or of a kind that this jaxlib cannot read or convert.
    """
    if not is_hlo(data):
        raise InputError(f"{name}: is no HLO text", hint="*.before_optimizations.txt begins with HloModule")
    text = data.decode("utf-8", "replace")
    head = text.lstrip().partition("\n")[0]
    if "is_scheduled=true" in head:
        raise InputError(
            f"{name}: is optimised already, and cannot be compiled again",
            hint="give the dump's *.before_optimizations.txt",
        )
    try:
        done = run_aside("reducer.oracle.hlo_process", data, seconds=_SECONDS, memory=_MEMORY)
    except subprocess.TimeoutExpired:
        raise InputError(f"{name}: was not converted within {_SECONDS:.0f} s") from None
    if not done.answer:
        raise InputError(f"{name}: jaxlib's conversion {done.ended()}")
    answer = msgspec.json.decode(done.answer, type=Converted)
    if answer.error:
        raise InputError(f"{name}: {answer.error}", hint="the StableHLO module itself can be given, too: .mlir")
    partitions, replicas = (max(int(found[1]), 1) if (found := p.search(head)) else 1 for p in _COUNTS.values())
    notes = (f"{name} is newer than this jaxlib, and was read without {what}" for what in answer.dropped)
    return ModuleJob.of(answer.module, partitions=partitions, replicas=replicas), tuple(notes)
