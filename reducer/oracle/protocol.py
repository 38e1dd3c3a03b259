"""What a pool and a worker process say to each other: versioned JSON, one message a line, over two pipes of their own.

::

    worker: Stage*  Ready | Unfit                   once, at start
    pool:   Lower                                   then, for each job
    worker: Started  Lowered | Answered
    pool:   Compile | Drop                          after Lowered: the pool may know the module's outcome already
    worker: Answered                                after Compile only
    pool:   Stop

Standard input, output and error are no part of it: a program may print what it likes.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from reducer.ledger.owed import Owed
from reducer.oracle.jobs import Job
from reducer.oracle.outcome import Compiled, Incompatible, Invalid, Rejected
from reducer.oracle.target import Options

VERSION = 1

StageName = Literal["import", "load", "topology", "probe", "options"]
"""What a starting worker is about to do: import JAX, load libtpu, describe the topology, compile ``x + 1``
without and with the options. The last one announced is where a worker that died had been."""


class Lower(msgspec.Struct, frozen=True, tag="lower"):
    """Lower this job. `want_module`: send the module's text back. `want_ledger`: say what the program owes to host
    memory, and once it is compiled where its buffers lie.
    """

    id: int
    job: Job
    want_module: bool = False
    want_ledger: bool = False


class Compile(msgspec.Struct, frozen=True, tag="compile"):
    """Compile what was just lowered."""

    id: int


class Drop(msgspec.Struct, frozen=True, tag="drop"):
    """Forget what was just lowered."""

    id: int


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """Leave."""


class Stage(msgspec.Struct, frozen=True, tag="stage"):
    """The worker is about to do `name`."""

    name: StageName


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The worker takes jobs. `library` is the real path of the libtpu that its memory map shows, `mapped` where."""

    version: int
    pid: int
    library: str
    jax: str
    jaxlib: str
    mapped: tuple[int, int] = (0, 0)


class Unfit(msgspec.Struct, frozen=True, tag="unfit"):
    """The worker cannot take jobs: what it was doing, and the error's text."""

    stage: StageName
    message: str


class Started(msgspec.Struct, frozen=True, tag="started"):
    """The job was read: from now on the worker's death is this job's doing."""

    id: int


class Lowered(msgspec.Struct, frozen=True, tag="lowered"):
    """The job is a module now: sha256 of its text, whether it places anything on the host, seconds it took.

    `owed` is what the program owes to host memory, where that was wanted; `lines` those of the text.
    """

    id: int
    module_key: str
    host_placement: bool
    seconds: float
    module: str = ""
    owed: Owed | None = None
    lines: int = 0


class Answered(msgspec.Struct, frozen=True, tag="answered"):
    """The end of a job. `seconds` is what the last phase took, `cpu` this process's CPU time in it."""

    id: int
    outcome: Compiled | Rejected | Invalid | Incompatible
    seconds: float
    cpu: float = 0.0


class SetUp(msgspec.Struct, frozen=True):
    """What a worker is told on its command line, as JSON."""

    parent: int
    library: str
    topology: str
    options: Options
    read_fd: int
    write_fd: int
    version: int = VERSION


ToWorker: TypeAlias = Lower | Compile | Drop | Stop
FromWorker: TypeAlias = Stage | Ready | Unfit | Started | Lowered | Answered

_encoder = msgspec.json.Encoder()
_to_worker: msgspec.json.Decoder[ToWorker] = msgspec.json.Decoder(ToWorker)
_from_worker: msgspec.json.Decoder[FromWorker] = msgspec.json.Decoder(FromWorker)


def encode(message: ToWorker | FromWorker) -> bytes:
    """Return the message's line. JSON escapes line breaks, so the newline at the end is its only one."""
    return _encoder.encode(message) + b"\n"


def decode_to_worker(line: bytes) -> ToWorker:
    """Read one line written by the pool. Raises `msgspec.MsgspecError` for anything else."""
    return _to_worker.decode(line)


def decode_from_worker(line: bytes) -> FromWorker:
    """Read one line written by a worker. Raises `msgspec.MsgspecError` for anything else."""
    return _from_worker.decode(line)
