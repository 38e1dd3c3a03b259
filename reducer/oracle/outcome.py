"""What can happen to a program on a target: a closed union of frozen, tagged values.

`Outcome` is what the compiler (or the lowering before it) did. `Skipped` is not an outcome: it says that the
question was never put to the compiler, and why. Nothing here knows JAX, processes or files.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from reducer.ledger.buffers import Buffers
from reducer.ledger.judge import Ledger

Phase: TypeAlias = Literal["lower", "compile"]
"""Where a job was when its worker died or its time ran out: before or in the compiler."""

MESSAGE_CAP = 64 * 1024
"""Longest message kept, in characters; a longer one keeps its head and its tail (`clip`)."""


def clip(message: str, cap: int = MESSAGE_CAP) -> str:
    """Return `message` cut to at most `cap` characters: the first three quarters and the last quarter.

    A compiler error names its invariant first and its suspected location last, and dumps tuples between.
    """
    if len(message) <= cap:
        return message
    mark = f"\n... [{len(message) - cap} characters left out] ...\n"
    room = max(cap - len(mark), 0)
    head = room - room // 4
    tail = room - head
    return message[:head] + mark + (message[-tail:] if tail else "")


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes of one compiled module in bytes per device, as `Compiled.memory_analysis()` reports them.

    A field is None where the libtpu is too old to report it. Arrays that fit in VMEM cost no HBM, so figures of
    small programs mislead: `host_temp` above 0 does say that something was offloaded.
    """

    argument: int | None = None
    output: int | None = None
    alias: int | None = None
    temp: int | None = None
    host_argument: int | None = None
    host_output: int | None = None
    host_alias: int | None = None
    host_temp: int | None = None
    generated_code: int | None = None


class Compiled(msgspec.Struct, frozen=True, tag="compiled", tag_field="outcome"):
    """The compiler produced an executable.

    `buffers` says where its buffers lie, and `carried` which of them loops carry, if that was wanted; `unread` why it
    could not be told.
    """

    memory: Memory
    buffers: Buffers | None = None
    unread: str = ""
    carried: Buffers | None = None

    @property
    def looked_at(self) -> bool:
        """Whether it was asked where the buffers lie."""
        return (self.buffers is not None and self.carried is not None) or self.unread != ""


class Rejected(msgspec.Struct, frozen=True, tag="rejected", tag_field="outcome"):
    """The compiler returned an error; `message` is the exception's text, possibly empty."""

    message: str


class Crashed(msgspec.Struct, frozen=True, tag="crashed", tag_field="outcome"):
    """The compiler took its process down: `signal` is "SIGABRT", "SIGSEGV", ..., "exit 1" or "memory-cap".

    `message` is the last fatal log line with what follows it, or the tail of the log when there is none.
    """

    signal: str
    message: str
    phase: Phase = "compile"


class TimedOut(msgspec.Struct, frozen=True, tag="timed-out", tag_field="outcome"):
    """There was no answer within `limit` seconds."""

    limit: float
    phase: Phase = "compile"


class Invalid(msgspec.Struct, frozen=True, tag="invalid", tag_field="outcome"):
    """The program did not trace or lower. The program's (or our) fault; never a finding."""

    message: str


class Incompatible(msgspec.Struct, frozen=True, tag="incompatible", tag_field="outcome"):
    """This jaxlib and this libtpu cannot work together: ``x + 1`` fails too. Never a finding."""

    message: str


class Skipped(msgspec.Struct, frozen=True, tag="skipped", tag_field="outcome"):
    """The compiler was not asked. Not an `Outcome`. `reason` is a short phrase, e.g. "no host placement"."""

    reason: str


NO_HOST_PLACEMENT = "no host placement"
"""The reason of a `Skipped` module that places nothing in host memory."""

Outcome: TypeAlias = Compiled | Rejected | Crashed | TimedOut | Invalid | Incompatible
Answer: TypeAlias = Outcome | Skipped


def word(answer: Answer) -> str:
    """Return the JSON word: compiled, rejected, crashed, timed-out, invalid, incompatible (or skipped)."""
    tag = type(answer).__struct_config__.tag
    assert isinstance(tag, str)
    return tag


def message_of(answer: Answer) -> str:
    """Return the answer's text for people; empty for a compiled program."""
    if isinstance(answer, Compiled):
        return ""
    if isinstance(answer, Crashed):
        signal = answer.signal + (" while lowering" if answer.phase == "lower" else "")
        return f"{signal}: {answer.message}" if answer.message else signal
    if isinstance(answer, TimedOut):
        return f"no answer within {answer.limit:g} s" + (" while lowering" if answer.phase == "lower" else "")
    if isinstance(answer, Skipped):
        return answer.reason
    return answer.message


class Beside(msgspec.Struct, frozen=True):
    """How a program compares with others that mean the same; `what` is what was compared.

    `differs` is what a signature says of the difference, "" without one; `text` says it to people, and `results` are
    those of the other programs.
    """

    what: Literal["pair-differs", "offload-costs"]
    differs: str = ""
    text: str = ""
    results: tuple[Result, ...] = ()


class Result(msgspec.Struct, frozen=True):
    """One job's answer with what it cost.

    `module_key` is the sha256 (hex) of the lowered module's text, "" when the job did not get that far.
    `module` is that text where the job asked for it (and the cache did not answer), else "".
    `ledger` is the memory ledger of a compiled program where it was wanted; then it is also known whether the program
    `returns_host`, a value in host memory.
    `seconds_*` are seconds of a worker's time, 0 for a cached answer. `worker_pid` is 0 when no worker answered.
    `cpu_compile` are seconds of CPU time of the worker for compiling, which other processes do not lengthen, and
    `lines` those of the lowered module's text. `slow_limit` is what compiling was expected to take less than, where
    that is asked; `beside` compares with other programs, where that is asked.
    `compiles` is how often the compiler was asked for it: more than once where a flaky failure is voted on.
    """

    answer: Answer
    seconds_lower: float = 0.0
    seconds_compile: float = 0.0
    module_key: str = ""
    cached: bool = False
    worker_pid: int = 0
    module: str = ""
    ledger: Ledger | None = None
    compiles: int = 1
    returns_host: bool = True
    cpu_compile: float = 0.0
    lines: int = 0
    slow_limit: float | None = None
    beside: Beside | None = None

    @property
    def slow(self) -> bool:
        """Whether compiling took longer than expected, on the clock and of the CPU. A cached answer took no time."""
        took = min(self.seconds_compile, self.cpu_compile)
        return self.slow_limit is not None and not self.cached and took > self.slow_limit

    @property
    def outcome(self) -> Outcome:
        """The answer, known to be an outcome. It is a bug to ask this of a skipped job."""
        assert not isinstance(self.answer, Skipped), self.answer
        return self.answer
