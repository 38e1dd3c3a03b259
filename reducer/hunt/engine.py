"""The hunt: draw programs, compile them, keep the failures, shrink each new one, save it.

Two threads. The caller's keeps the workers fed with generated programs; the other confirms and reduces one new
failure at a time. Both put their candidates to one pool, where a reduction's go first. Nothing here knows JAX,
processes or files: the oracle, the reducer and the corpus are handed in.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Literal, Protocol

from reducer.hunt.finds import Find, Snapshot, Summary, Tally, row
from reducer.ir.codec import identity
from reducer.ir.equations import Checkpoint, Program
from reducer.ir.order import size
from reducer.ir.skeleton import skeleton
from reducer.ir.walk import equations
from reducer.oracle.base import Oracle
from reducer.oracle.outcome import Incompatible, Invalid, Result, Skipped, message_of
from reducer.oracle.signature import Signature, is_out_of_memory, is_user_error, signature

#: Jobs waiting per worker beside the one it runs: enough that it never idles, few enough that a new failure's
#: reduction need not wait.
_AHEAD = 2


class Stopped(Exception):
    """Raised inside a reduction when the hunt ends before it."""


class Programs(Protocol):
    """Where programs come from: `hunt.source.Source`, or a list in tests."""

    def poll(self) -> Program | None:
        """A program, or None if none is ready."""
        ...

    def close(self) -> None:
        """Stop drawing."""
        ...


class Workshop(Protocol):
    """What happens to a new failure: the part of a hunt that needs a reducer and a corpus."""

    def known(self, signature: str) -> bool:
        """True if the user asked not to hunt for this signature."""
        ...

    def confirm(self, find: Find) -> bool:
        """Repeat the failure in fresh workers."""
        ...

    def keep(self, find: Find) -> None:
        """Save the find as it is now; sets `find.case`. Called again as it gets smaller."""
        ...

    def reduce(self, find: Find, step: Callable[[Find], None]) -> list[tuple[Program, Result]]:
        """Shrink the find in place, calling `step` on progress; returns other failures met on the way.

        `step` may raise `Stopped`; the best so far is then in the find.
        """
        ...


class Hunt:
    """One hunt; `run` it once."""

    def __init__(
        self,
        programs: Programs,
        oracle: Oracle[Program],
        workshop: Workshop,
        *,
        seconds: float,
        grace: float = 60.0,
        seed: int = 0,
        corpus: str = "",
        notify: Callable[[str], None] = lambda _: None,
        progress: Callable[[Snapshot], None] = lambda _: None,
        busy_seconds: Callable[[], float] = lambda: 0.0,
        backlog: Sequence[Find] = (),
    ) -> None:
        """Hunt for `seconds`; reductions under way at the end get up to `grace` seconds more.

        `notify` gets one line per event, `progress` a snapshot several times a second, `busy_seconds` is read for
        the summary's worker-busy fraction. `backlog` are finds of an earlier hunt still to be reduced.
        """
        self._programs = programs
        self._oracle = oracle
        self._workshop = workshop
        self._seconds, self._grace = seconds, grace
        self._seed, self._corpus = seed, corpus
        self._notify, self._progress, self._busy = notify, progress, busy_seconds
        self.tally = Tally()
        self._modules: set[str] = set()
        self._identities: set[str] = set()
        self._todo: queue.Queue[Find] = queue.Queue()
        self._generated = threading.Event()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._reducing: Find | None = None
        self._trouble: BaseException | None = None
        self._begun = time.monotonic()
        self._shown = 0.0
        self._busy_fraction = 0.0
        for find in backlog:
            self.tally.finds[find.signature, find.tier] = find
            self._todo.put(find)

    @property
    def elapsed(self) -> float:
        """Seconds since the hunt was made."""
        return time.monotonic() - self._begun

    def run(self) -> Summary:
        """Hunt until time is up or Ctrl-C; everything found so far is saved either way.

        Raises:
            ScanshrinkError: the workers, the generator or the corpus gave up; what was found before is saved.
        """
        reducer = threading.Thread(target=self._reduce_finds, name="hunt-reducer", daemon=True)
        reducer.start()
        interrupted = False
        try:
            self._generate()
            self._generated.set()
            self._wait_for(reducer)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self._stop.set()
            self._programs.close()
            reducer.join(timeout=30.0)
        if self._trouble is not None:
            raise self._trouble
        return self.summary(interrupted=interrupted)

    # -- generating ----------------------------------------------------------------------------------------------

    def _generate(self) -> None:
        flying: dict[Future[Result], Program] = {}
        room = self._oracle.workers * (1 + _AHEAD)
        try:
            while self.elapsed < self._seconds and not self._stop.is_set():
                self._submit(flying, room)
                done, _ = wait(flying, timeout=0.1, return_when=FIRST_COMPLETED)
                for future in done:
                    self._take(flying.pop(future), future.result())
                if not flying:
                    time.sleep(0.005)
                self._show()
        finally:
            self._busy_fraction = self._busy() / max(self.elapsed * self._oracle.workers, 1e-9)
            for future in flying:
                future.cancel()

    def _submit(self, flying: dict[Future[Result], Program], room: int) -> None:
        while len(flying) < room and (program := self._programs.poll()) is not None:
            self.tally.generated += 1
            key = identity(program)
            if key in self._identities:
                self.tally.skipped["duplicate program"] += 1
                continue
            self._identities.add(key)
            flying[self._oracle.submit(program)] = program

    def _take(self, program: Program, result: Result) -> None:
        answer = result.answer
        if isinstance(answer, Skipped):
            self.tally.skipped[answer.reason] += 1
            return
        if isinstance(answer, Invalid | Incompatible):
            self.tally.skipped["invalid" if isinstance(answer, Invalid) else "incompatible"] += 1
            return
        if result.module_key in self._modules:
            self.tally.skipped["duplicate module"] += 1
            return
        self._modules.add(result.module_key)
        self.tally.compiled += 1
        self.tally.skeletons.add(skeleton(program))
        if is_user_error(answer):
            self.tally.excused["user error"] += 1
        elif is_out_of_memory(answer):
            self.tally.excused["out of memory"] += 1
        elif (found := signature(answer)) is not None:
            self._found(program, found, message_of(answer))

    def _found(self, program: Program, found: Signature, message: str, strategy: str = "") -> None:
        tier = tier_of(program)
        with self._lock:
            find = self.tally.finds.get((found.text, tier))
            if find is not None:
                find.finds += 1
                return
            find = Find(
                signature=found.text,
                family=found.family,
                slug=found.slug,
                start=program,
                program=program,
                message=message,
                strategy=strategy or dict(program.meta).get("strategy", ""),
                tier=tier,
                started_size=size(program),
                size=size(program),
                first_seconds=self.elapsed,
            )
            self.tally.finds[found.text, tier] = find
        if self._workshop.known(found.text):
            find.state = "known"
            return
        self._notify(f"new failure {found.slug} after {find.first_seconds:.1f} s, {find.size} equations: {found.text}")
        self._todo.put(find)

    # -- reducing ------------------------------------------------------------------------------------------------

    def _reduce_finds(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    find = self._todo.get(timeout=0.1)
                except queue.Empty:
                    if self._generated.is_set():
                        return
                    continue
                self._reduce_one(find)
        except BaseException as error:  # raised again in the hunt's own thread
            self._trouble = error
            self._stop.set()

    def _reduce_one(self, find: Find) -> None:
        if not self._workshop.confirm(find):
            find.state = "flaky"
            self._notify(f"{find.slug} did not repeat in a fresh worker: not counted")
            return
        find.state = "confirmed"
        self._workshop.keep(find)
        self._reducing, find.state = find, "reducing"
        begun = time.monotonic()
        try:
            others = self._workshop.reduce(find, self._step)
        except Stopped:
            self._workshop.keep(find)
            return
        finally:
            self._reducing = None
        find.reduced_seconds = round(time.monotonic() - begun, 2)
        find.state = "saved"
        self._workshop.keep(find)
        self._notify(
            f"{find.slug}: {find.started_size} -> {find.size} equations in {find.compiles} compiles: {find.case}"
        )
        for program, result in others:
            if (other := signature(result.outcome)) is not None:
                self._found(program, other, message_of(result.answer), strategy=f"shrinking {find.slug}")

    def _step(self, _: Find) -> None:
        if self._stop.is_set():
            raise Stopped

    def _wait_for(self, reducer: threading.Thread) -> None:
        """Let finds be confirmed and reduced after generating has ended, within the grace."""
        end = time.monotonic() + self._grace
        while reducer.is_alive() and time.monotonic() < end:
            reducer.join(timeout=0.1)
            self._show()

    # -- showing -------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        if self.elapsed - self._shown < 0.2:
            return
        self._shown = self.elapsed
        reducing = self._reducing
        self._progress(
            Snapshot(
                seconds=self.elapsed,
                generated=self.tally.generated,
                compiled=self.tally.compiled,
                failing=self.tally.failing,
                skipped=dict(self.tally.skipped + self.tally.excused),
                signatures=tuple((f.slug, f.state, f.finds, f.size) for f in list(self.tally.finds.values())),
                reducing=(reducing.slug, reducing.size, reducing.compiles) if reducing else None,
                compiles_per_second=self.tally.compiled / max(self.elapsed, 1e-9),
            )
        )

    def pending(self) -> list[Find]:
        """Finds that were not confirmed or not fully reduced when the hunt ended: the backlog of a resumed one."""
        return [find for find in self.tally.finds.values() if find.state in ("new", "confirmed", "reducing")]

    def summary(self, *, interrupted: bool = False) -> Summary:
        """What the hunt came to so far."""
        finds = [find for find in self.tally.finds.values() if find.state not in ("new", "flaky")]
        return Summary(
            generated=self.tally.generated,
            compiled=self.tally.compiled,
            failing=self.tally.failing,
            skipped=dict(self.tally.skipped),
            excused=dict(self.tally.excused),
            skeletons=len(self.tally.skeletons),
            signatures=tuple(map(row, finds)),
            seconds=round(self.elapsed, 2),
            worker_busy_fraction=round(self._busy_fraction, 3),
            corpus=self._corpus,
            seed=self._seed,
            interrupted=interrupted,
        )


def tier_of(program: Program) -> Literal["program", "placement"]:
    """`program` if the failure is reached through a gradient or a checkpoint policy, else `placement`."""
    undifferentiated = any(isinstance(eqn, Checkpoint) and not eqn.differentiated for _, _, eqn in equations(program))
    return "program" if program.gradient is not None or undifferentiated else "placement"
