"""The worker process: one libtpu, warm, taking jobs until its parent goes. Run by the pool, never imported by it.

It may be killed, aborted, hung or flooded by what it compiles; it defends nothing but the protocol's two pipes
and its parent: it must not outlive it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.metadata
import os
import resource
import select
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from reducer.oracle import protocol
from reducer.oracle.jobs import Job, ScriptJob, has_host_placement
from reducer.oracle.outcome import Compiled, Incompatible, Invalid, Rejected, clip

if TYPE_CHECKING:
    from reducer.oracle.backend import Backend, Lowering

_PR_SET_PDEATHSIG = 1
_CLEAR_EVERY = 64
"""Jobs between two clearings of JAX's caches: each program is traced once, so they only grow."""


class Unfit(Exception):
    """The worker cannot start."""

    def __init__(self, stage: protocol.StageName, message: str) -> None:
        super().__init__(message)
        self.stage = stage


class Worker:
    """The conversation with the pool."""

    def __init__(self, set_up: protocol.SetUp) -> None:
        self._set_up = set_up
        self._input: BinaryIO = os.fdopen(set_up.read_fd, "rb")
        self._output = set_up.write_fd

    def say(self, message: protocol.FromWorker) -> None:
        """Write one message, whole."""
        view = memoryview(protocol.encode(message))
        while view:
            view = view[os.write(self._output, view) :]

    def run(self) -> None:
        """Start up, then take jobs until told to stop or the pool's end of the pipe closes."""
        try:
            backend, library = self._start()
        except Unfit as error:
            self.say(protocol.Unfit(error.stage, clip(str(error))))
            return
        versions = {name: importlib.metadata.version(name) for name in ("jax", "jaxlib")}
        self.say(
            protocol.Ready(
                version=protocol.VERSION, pid=os.getpid(), library=library, mapped=_mapped_at(library), **versions
            )
        )
        served = 0
        for line in self._input:
            message = protocol.decode_to_worker(line)
            if isinstance(message, protocol.Stop):
                return
            if isinstance(message, protocol.Lower):
                self.say(protocol.Started(message.id))
                self._serve(backend, message)
                served += 1
                if served % _CLEAR_EVERY == 0:
                    _clear_caches()

    def _start(self) -> tuple[Backend, str]:
        set_up = self._set_up
        stage: protocol.StageName = "import"

        def enter(name: protocol.StageName) -> None:
            nonlocal stage
            stage = name
            self.say(protocol.Stage(name))

        try:
            enter("import")
            _import_jax()
            from reducer.oracle.backend import Backend

            enter("load")
            library = _load_library(set_up.library)
            enter("topology")
            backend = Backend(set_up.topology, set_up.options)
            enter("probe")
            backend.probe(with_options=False)
            if set_up.options:
                enter("options")
                backend.probe(with_options=True)
        except Unfit:
            raise
        except Exception as error:
            raise Unfit(stage, f"{type(error).__name__}: {error}") from error
        # What is alive now stays: a collector that walks all of JAX at each full pass costs more than it frees.
        gc.collect()
        gc.freeze()
        return backend, library

    def _serve(self, backend: Backend, message: protocol.Lower) -> None:
        started = time.perf_counter()
        try:
            lowering = backend.lower(message.job)
            owed = lowering.owed() if message.want_ledger else None
            lowered = protocol.Lowered(
                id=message.id,
                module_key=lowering.key,
                host_placement=has_host_placement(lowering.text),
                seconds=time.perf_counter() - started,
                module=lowering.text if message.want_module else "",
                owed=owed,
                lines=lowering.text.count("\n"),
            )
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            outcome = Invalid(clip(_described(error, message.job)))
            self.say(protocol.Answered(message.id, outcome, time.perf_counter() - started))
            return
        self.say(lowered)
        decision = protocol.decode_to_worker(self._input.readline())
        if isinstance(decision, protocol.Compile):
            started, before = time.perf_counter(), time.process_time()
            answer = _compile(lowering, message.job, want_buffers=owed is not None and owed.anything)
            seconds, cpu = time.perf_counter() - started, time.process_time() - before
            self.say(protocol.Answered(message.id, answer, seconds, cpu))


#: A module in a StableHLO newer than this libtpu reads: jaxlib's and libtpu's matter, not the program's.
_NEWER_STABLEHLO = "Failed to parse using StableHLO"


def _compile(lowering: Lowering, job: Job, *, want_buffers: bool) -> Compiled | Rejected | Invalid | Incompatible:
    from jax.errors import JaxRuntimeError

    try:
        return lowering.compile(want_buffers=want_buffers)
    except JaxRuntimeError as error:
        # The plain text: its first line is what a signature is read from. It can be empty.
        message = clip(str(error))
        return Incompatible(message) if _NEWER_STABLEHLO in message else Rejected(message)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        # Python code on the way to the compiler (JAX's, MLIR's): the compiler was not reached.
        return Invalid(clip(_described(error, job)))


def _described(error: BaseException, job: Job) -> str:
    from reducer.oracle.sources import PROGRAM_FILE, describe_error

    return describe_error(error, files=[job.path if isinstance(job, ScriptJob) else PROGRAM_FILE])


def _clear_caches() -> None:
    import jax

    jax.clear_caches()


def _import_jax() -> None:
    import jax
    from jax._src import source_info_util

    jax.config.update("jax_enable_compilation_cache", False)
    # Whole tracebacks: the filter costs time on each error, and adds a note about itself to the text.
    jax.config.update("jax_traceback_filtering", "off")
    # A compiler's message lists the frames an operation was traced from; ours say nothing of the program.
    for name in ("worker.py", "backend.py", "sources.py"):
        source_info_util.register_exclusion(str(Path(__file__).with_name(name)))
    source_info_util.register_exclusion("<string>")


def _load_library(wanted: str) -> str:
    """Load exactly this file as JAX's TPU plugin; return the real path the memory map then shows.

    Left to itself JAX falls back to the installed libtpu when a path does not exist, with a mere warning.
    """
    from jax._src.lib import xla_client

    xla_client.load_pjrt_plugin_dynamically("tpu", wanted)
    mapped = libraries_mapped()
    if wanted not in mapped:
        raise Unfit("load", f"wanted {wanted}, but the process has loaded {', '.join(mapped) or 'no libtpu'}")
    return wanted


def libraries_mapped() -> list[str]:
    """Return the paths of all files mapped into this process whose name says libtpu."""
    found = set()
    for line in Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and "libtpu" in os.path.basename(fields[5]):
            found.add(fields[5])
    return sorted(found)


def _mapped_at(library: str) -> tuple[int, int]:
    """Return the lowest and the highest address of a file's mapping: a crash's addresses mean nothing without."""
    spans = [
        tuple(int(address, 16) for address in line.split(maxsplit=1)[0].split("-"))
        for line in Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines()
        if line.endswith(library)
    ]
    return min(span[0] for span in spans), max(span[1] for span in spans)


def _follow_parent(set_up: protocol.SetUp) -> None:
    """See to it that this process ends with its parent, even while the compiler holds every lock."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != set_up.parent:
        os._exit(0)  # it went before prctl was in force

    def watch() -> None:
        # Hang-up is reported without asking; nothing else is waited for. Helps where prctl is not (a debugger).
        poll = select.poll()
        poll.register(set_up.read_fd, 0)
        poll.poll()
        os._exit(0)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def main() -> None:
    """Entry point: the first argument is a `protocol.SetUp` as JSON."""
    set_up = msgspec.json.decode(sys.argv[1], type=protocol.SetUp)
    del sys.argv[1:]  # a script that reads its arguments finds none
    _follow_parent(set_up)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash is an outcome, not a file of gigabytes
    with contextlib.suppress(BrokenPipeError):
        Worker(set_up).run()
    # Not sys.exit: a program's atexit handlers and non-daemon threads are none of ours, and libtpu may hang in its own.
    os._exit(0)


if __name__ == "__main__":
    main()
