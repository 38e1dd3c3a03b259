"""The programs of a hunt that are also compared with others that mean the same: a share of those that are fine.

Compiling a twin costs as much as compiling another program, so only one in `SHARE` of the programs that compile and
keep their offload is compared, with one other way to write it, or with itself without the offload. Which ones, and
with what, follows from the program, so that a hunt with the same seed compares the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Final

from reducer.errors import ProgramError
from reducer.ir.codec import identity
from reducer.ir.equations import Program
from reducer.oracle.base import Oracle
from reducer.oracle.beside import Comparison, Costs, Twinned
from reducer.oracle.outcome import Result
from reducer.oracle.verdict import Kind
from reducer.twins import saved_on_device, twins

#: One in so many programs that are fine is compared.
SHARE: Final = 5
#: Comparisons under way at once: enough to use what is asked, few enough that generated programs go on.
_AT_ONCE = 4


class Besides:
    """Comparisons under way. `open_oracle` gives the oracle of one; `kinds` says which sorts are wanted."""

    def __init__(
        self, open_oracle: Callable[[Comparison], Oracle[Program]], kinds: Collection[Kind], *, share: int = SHARE
    ) -> None:
        self._open = open_oracle
        self._kinds = frozenset(kinds)
        self._share = share
        self._flying: dict[Future[Result], Program] = {}
        self._queue: deque[tuple[Program, Comparison]] = deque()

    @property
    def waiting(self) -> bool:
        """Whether any comparison is under way or to come."""
        return bool(self._flying or self._queue)

    def consider(self, program: Program) -> None:
        """Compare a program that is fine, if it is one of the share."""
        number = int(identity(program)[:12], 16)
        if number % self._share:
            return
        comparison = self._choice(program, number // self._share)
        if comparison is not None:
            self._queue.append((program, comparison))
            self._submit()

    def _submit(self) -> None:
        while self._queue and len(self._flying) < _AT_ONCE:
            program, comparison = self._queue.popleft()
            self._flying[self._open(comparison).submit(program)] = program

    def _choice(self, program: Program, number: int) -> Comparison | None:
        """One of the comparisons that this program allows."""
        choices: list[Comparison] = []
        if "pair-differs" in self._kinds:
            choices += [Twinned(twin.name) for twin in twins(program)]
        if "offload-costs" in self._kinds and _offloads(program):
            choices.append(Costs())
        return choices[number % len(choices)] if choices else None

    def done(self) -> list[tuple[Program, Result]]:
        """What has been compared since it was last asked, in the order of asking. Raises what a worker's end raises."""
        ended = [future for future in self._flying if future.done()]
        found = [(self._flying.pop(future), future.result()) for future in ended]
        self._submit()
        return found

    def cancel(self) -> None:
        """Drop what is not compared yet."""
        for future in self._flying:
            future.cancel()
        self._flying.clear()
        self._queue.clear()


def _offloads(program: Program) -> bool:
    try:
        saved_on_device(program)
    except ProgramError:
        return False
    return True
