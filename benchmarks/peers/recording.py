"""The one outcome function of the comparison, `Recorder.outcome`: recorded where it is known, compiled where it is not.

A recording is a folder with one file of JSON lines for each libtpu release: program -> what happened, which failure it
was, which module it became, and what that took. A rerun reads it and needs no libtpu; only what is not in it is
compiled, by the real compiler, where that is allowed. `packed.py` puts recordings into the repository.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import msgspec

from reducer.errors import InputError, ProgramError
from reducer.ir.codec import identity
from reducer.ir.equations import Program
from reducer.oracle.cache import OutcomeCache
from reducer.oracle.outcome import (
    NO_HOST_PLACEMENT,
    Answer,
    Compiled,
    Invalid,
    Memory,
    Rejected,
    Result,
    Skipped,
    word,
)
from reducer.oracle.pool import Pool
from reducer.oracle.programs import program_job
from reducer.oracle.target import resolve_target
from reducer.oracle.verdict import failure

#: Seconds a program may take in each phase; the largest starts compile for half a minute on a busy machine.
LIMIT = 600.0
#: Hex digits of a program's identity, and of a module's hash, by which they are told apart here.
DIGITS = 16


class Recorded(msgspec.Struct, frozen=True, omit_defaults=True):
    """What happens to the program of identity `key`.

    `word` is the compiler's outcome (`reducer.oracle.outcome.word`), `label` the signature of a failure ("": none),
    `module` the hash of the lowered module ("" if there is none), `lower` and `compile` seconds of a worker. Files have
    whole hashes, or their first `DIGITS` digits, which are what is compared.
    """

    key: str
    word: str
    label: str = ""
    module: str = ""
    lower: float = 0.0
    compile: float = 0.0

    @property
    def costs_a_compile(self) -> bool:
        """True if the compiler was put to work."""
        return self.word not in ("skipped", "invalid")

    @property
    def question(self) -> str:
        """What was compiled: different programs can be one module, which is paid for once."""
        return self.module or self.key

    def shortened(self) -> Recorded:
        """With so many digits of its hashes as are compared."""
        return msgspec.structs.replace(self, key=self.key[:DIGITS], module=self.module[:DIGITS])


def key_of(program: Program) -> str:
    """By which a recording knows a program in normal form."""
    return identity(program)[:DIGITS]


class Missing(InputError):
    """A program is not in the recording, and nothing may be compiled."""


class Recorder:
    """Outcomes of programs on one release. Programs that place nothing on the host are skipped, for everybody.

    `packed` are lines known beforehand; what is not among them is in the folder's file, or asked, and then put there.
    """

    def __init__(self, folder: Path, libtpu: str, *, live: bool = True, packed: bytes = b"") -> None:
        self.libtpu = libtpu
        self._path = folder / f"{libtpu}.jsonl"
        self._live = live
        self._known: dict[str, Recorded] = {}
        self._modules: dict[str, float] = {}
        self._pool: Pool | None = None
        self._stack = contextlib.ExitStack()
        #: Seconds of workers spent by this process.
        self.seconds = 0.0
        own = self._path.read_bytes() if self._path.exists() else b""
        decoder = msgspec.json.Decoder(Recorded)
        for line in (*packed.splitlines(), *own.splitlines()):
            self._note(decoder.decode(line))

    def _note(self, recorded: Recorded) -> Recorded:
        recorded = recorded.shortened()
        self._known[recorded.key] = recorded
        if recorded.compile:
            self._modules.setdefault(recorded.module, recorded.compile)
        return recorded

    def outcome(self, program: Program) -> Recorded:
        """What happens to a program in normal form.

        Raises:
            Missing: it is not in the recording, and nothing may be compiled.
        """
        whole = identity(program)
        known = self._known.get(whole[:DIGITS])
        if known is None:
            asked = self._ask(program, whole)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(asked) + b"\n")
            known = self._note(asked)
        return known

    def seconds_of(self, recorded: Recorded, *, first: bool) -> float:
        """Seconds of a worker; a module that was compiled before (not `first`) is only lowered."""
        return recorded.lower + (self._modules.get(recorded.module, recorded.compile) if first else 0.0)

    def _ask(self, program: Program, key: str) -> Recorded:
        if not self._live:
            raise Missing(f"no outcome of program {key[:12]} in {self._path}", hint="record it: leave out --replay")
        try:
            job = program_job(program, require_host_placement=True)
        except ProgramError:
            return Recorded(key, "invalid")  # an operation that has no text
        result = self._workers().submit(job).result()
        self.seconds += result.seconds_lower + result.seconds_compile
        return Recorded(
            key,
            word(result.answer),
            failure(result) or "",
            result.module_key,
            round(result.seconds_lower, 4),
            round(result.seconds_compile, 4),
        )

    def _workers(self) -> Pool:
        if self._pool is None:
            # A cache of its own: what another run compiled would have taken no time here.
            cache = self._stack.enter_context(OutcomeCache(self._path.with_suffix(".sqlite3")))
            target = resolve_target(self.libtpu)
            self._pool = self._stack.enter_context(Pool(target, 1, timeout=LIMIT, cache=cache))
        return self._pool

    def close(self) -> None:
        """End the worker, if there is one."""
        self._stack.close()
        self._pool = None


class RecordedOracle:
    """`Oracle[Program]` over a recorder, one question at a time; `asked` is told each one."""

    workers = 1

    def __init__(self, recorder: Recorder, asked: Callable[[Program, Recorded], object]) -> None:
        self._recorder = recorder
        self._asked = asked

    def submit(self, candidate: Program, *, fresh: bool = False) -> Future[Result]:  # noqa: ARG002
        """Answer now."""
        future: Future[Result] = Future()
        recorded = self._recorder.outcome(candidate)
        self._asked(candidate, recorded)
        future.set_result(result_of(recorded))
        return future


def result_of(recorded: Recorded) -> Result:
    """The result a driver sees; a failure's message is its signature."""
    answer: Answer
    match recorded.word:
        case "compiled":
            answer = Compiled(Memory())
        case "skipped":
            answer = Skipped(NO_HOST_PLACEMENT)
        case "invalid":
            answer = Invalid("")
        case _:
            answer = Rejected(recorded.label)
    return Result(answer, recorded.lower, recorded.compile, recorded.module)


def fails_as(label: str) -> Callable[[Result], bool]:
    """Tells results with this signature."""
    return lambda result: isinstance(result.answer, Rejected) and result.answer.message == label


def label_of(result: Result) -> str | None:
    """The signature of a failure, None for anything else."""
    return result.answer.message or None if isinstance(result.answer, Rejected) else None


@contextlib.contextmanager
def recorders(
    folder: Path, *, live: bool, packed: Callable[[str], bytes] = lambda _: b""
) -> Iterator[Callable[[str], Recorder]]:
    """The recorder of each release, made when it is first wanted; `packed` gives what is known of one beforehand."""
    made: dict[str, Recorder] = {}

    def of(libtpu: str) -> Recorder:
        if libtpu not in made:
            made[libtpu] = Recorder(folder, libtpu, live=live, packed=packed(libtpu))
        return made[libtpu]

    try:
        yield of
    finally:
        for one in made.values():
            one.close()


def versions() -> str:
    """What a recording depends on beside libtpu."""
    return f"jax {importlib.metadata.version('jax')}"
