"""What an answer about a generated program comes to: a count, a failure, or a comparison with other programs."""

from __future__ import annotations

from collections.abc import Callable

from reducer.hunt.besides import Besides
from reducer.hunt.ledger import Ledger
from reducer.hunt.pace import Pace
from reducer.ir.equations import Program
from reducer.ir.skeleton import skeleton
from reducer.oracle.beside import timed
from reducer.oracle.outcome import Compiled, Crashed, Incompatible, Invalid, Result, Skipped, TimedOut
from reducer.oracle.verdict import Kind, said_of, verdict


class Intake:
    """Judges answers. `ledger` takes the failures of `kinds`; `besides` compares programs that are fine."""

    def __init__(
        self, ledger: Ledger, kinds: frozenset[Kind], besides: Besides | None, notify: Callable[[str], None]
    ) -> None:
        self._ledger = ledger
        self._tally = ledger.tally
        self._kinds = kinds
        self._besides = besides
        self._notify = notify
        self._pace = Pace()
        self._modules: set[str] = set()

    @property
    def comparing(self) -> bool:
        """Whether any comparison is under way or to come."""
        return self._besides is not None and self._besides.waiting

    def cancel(self) -> None:
        """Drop what is not compared yet."""
        if self._besides is not None:
            self._besides.cancel()

    def take(self, program: Program, result: Result) -> None:
        """Count the answer about a generated program, and hand on what failed."""
        answer = result.answer
        if isinstance(answer, Skipped):
            self._tally.skipped[answer.reason] += 1
        elif isinstance(answer, Incompatible):
            self._tally.skipped["incompatible"] += 1
        elif isinstance(answer, Invalid) or (isinstance(answer, Crashed | TimedOut) and answer.phase == "lower"):
            # What happened before the compiler was reached says nothing about it.
            self._tally.skipped["invalid"] += 1
        elif result.module_key in self._modules:
            self._tally.skipped["duplicate module"] += 1
        else:
            if result.module_key:
                self._modules.add(result.module_key)
            self._tally.compiled += 1
            self._tally.skeletons.add(skeleton(program))
            found = verdict(result)
            if found.word == "user-error":
                self._tally.excused["user error"] += 1
            elif found.word == "not-measurable" and not isinstance(answer, Compiled):
                self._tally.excused[found.reason] += 1
            elif found.kind is not None and found.kind not in self._kinds:
                self._tally.excused["of another kind"] += 1
            else:
                self._note_ledger(result)
                self._ledger.meet(program, found, said_of(result), generated=True)
                self._measure(program, result)
                if self._besides is not None and found.word == "ok" and result.ledger and result.ledger.lines:
                    self._besides.consider(program)

    def _measure(self, program: Program, result: Result) -> None:
        """A program that takes much longer to compile than others of its size is a failure, if it does so again."""
        if "slow-compile" not in self._kinds or result.cached or not isinstance(result.answer, Compiled):
            return
        limit = self._pace.limit(result.lines)
        self._pace.note(result.lines, min(result.seconds_compile, result.cpu_compile))
        if limit is not None:
            judged = timed(result, limit)
            if judged.slow:
                self._ledger.meet(program, verdict(judged), said_of(judged), limit=limit)

    def take_compared(self) -> None:
        """As `take`, of programs that have been compared since it was last called."""
        for program, result in self._besides.done() if self._besides is not None else ():
            self._tally.compared += result.beside is not None
            self._ledger.meet(program, verdict(result), said_of(result))

    def _note_ledger(self, result: Result) -> None:
        """Say once why memory ledgers cannot be had here; counted each time."""
        if result.ledger is not None and result.ledger.reason:
            self._tally.unjudged += 1
            if self._tally.unjudged == 1:
                self._notify(f"lost offloads are not judged where the ledger cannot be had: {result.ledger.reason}")
