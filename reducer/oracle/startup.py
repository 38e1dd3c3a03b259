"""Starting a worker, and saying why it could not be.

A failure that may pass (killed, a busy machine) is tried again; what is then left is one of: the target's fault
(`TargetError`), this installation's (`WorkerError`), or a jaxlib and a libtpu that do not fit (`Incompatible`).
"""

from __future__ import annotations

import time

from reducer.errors import ScanshrinkError, TargetError, WorkerError
from reducer.oracle import protocol
from reducer.oracle.outcome import Incompatible, clip
from reducer.oracle.process import Gone, WorkerProcess
from reducer.oracle.target import Target

START_SECONDS = 120.0
ATTEMPTS = 3
_LOCK_WORDS = ("libtpu_lockfile", "lockfile", "already in use by")
_DOCTOR = "run `scanshrink doctor`"


class Unfit(Exception):
    """No worker can be had for this target: `reason` is an error to raise, or the answer to every job."""

    def __init__(self, reason: ScanshrinkError | Incompatible) -> None:
        super().__init__(reason)
        self.reason = reason


def greet(process: WorkerProcess, deadline: float) -> protocol.Ready | tuple[protocol.StageName, str, str]:
    """Listen until the worker is ready. Otherwise return stage, how it ended ("" for an error), and the text."""
    stage: protocol.StageName = "import"
    try:
        while True:
            message = process.receive(deadline)
            if isinstance(message, protocol.Ready):
                return message
            if isinstance(message, protocol.Unfit):
                return message.stage, "", message.message
            if isinstance(message, protocol.Stage):
                stage = message.name
    except Gone as gone:
        if gone.cause == "closed":
            raise
        how = "ran out of time" if gone.cause == "deadline" else f"died ({gone.signal})"
        if gone.cause == "garbled":
            how = "wrote something else than the protocol"
        return stage, how, gone.message


def start_worker(
    process: WorkerProcess, target: Target, *, attempt: int, seconds: float = START_SECONDS
) -> protocol.Ready | None:
    """Bring a new process to readiness. Returns None when another attempt is worth its time; else raises `Unfit`."""
    answer = greet(process, time.monotonic() + seconds)
    if isinstance(answer, protocol.Ready):
        if answer.version == protocol.VERSION and answer.library == target.path:
            process.mapped = answer.mapped
            return answer
        raise Unfit(WorkerError(f"the worker is of another version, or loaded {answer.library}", hint=_DOCTOR))
    # A compiler that cannot compile x + 1 dies the same way each time; a kill may be the machine's doing.
    if answer[1] and attempt < (ATTEMPTS if "SIGKILL" in answer[1] else 2):
        return None
    raise Unfit(explain(target, *answer))


def explain(target: Target, stage: protocol.StageName, how: str, text: str) -> ScanshrinkError | Incompatible:
    """Say why a worker that ended in `stage`, by dying (`how`) or by an error, cannot be had."""
    what = clip(": ".join(part for part in (how, text) if part), 4000)
    if stage in ("load", "topology") and any(sign in text for sign in _LOCK_WORDS):
        return WorkerError(
            f"libtpu's lock is held: {what}",
            hint="end the other process that uses libtpu, or delete /tmp/libtpu_lockfile",
        )
    if stage == "import":
        return WorkerError(f"a worker process cannot import JAX: {what}", hint=_DOCTOR)
    if stage == "load":
        return TargetError(f"{target.path} does not load as a libtpu: {what}", hint="give another release or file")
    if stage == "topology" and not how:
        return TargetError(
            f"libtpu {target.libtpu} does not know topology {target.topology}: {what}",
            hint="give another --topology",
        )
    if stage == "options":
        names = ", ".join(name for name, _ in target.options)
        return TargetError(f"libtpu {target.libtpu} does not take the compiler options ({names}): {what}")
    if how.startswith("ran out of time"):
        return WorkerError(f"a worker got no further than compiling x + 1: {what}", hint=_DOCTOR)
    doing = "x + 1 does not compile" if stage == "probe" else f"topology {target.topology} cannot be described"
    return Incompatible(f"libtpu {target.libtpu} does not work with this jaxlib: {doing}: {what}")
