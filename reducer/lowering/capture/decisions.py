"""A user's own policy, recorded: what it answers for every equation of a body, written down as names.

A policy is code, and code is no data. But all it ever does is answer, per equation, save | offload | recompute. So
capture asks first, puts a `name` equation behind every value the policy wants to keep, and replaces the policy by
one on these names. It is asked about the body before differentiation: values that only exist in the derivative
(the `cos` of a `sin`) are recomputed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from reducer.errors import ProgramError
from reducer.ir.policies import OffloadNames, Policy, SaveNames


@dataclass
class Decisions:
    """Answers of one policy for one body; `number` tells its names from those of other policies."""

    policy: Callable[..., Any]
    number: int
    used: set[str] = field(default_factory=set)
    places: set[tuple[str, str]] = field(default_factory=set)

    @property
    def saved(self) -> str:
        """Name of the values that stay on the device."""
        return f"saved_{self.number}"

    @property
    def offloaded(self) -> str:
        """Name of the values that go to host memory."""
        return f"offloaded_{self.number}"

    def ask(self, eqn: Any) -> str | None:
        """The name for an equation's results, or None if they are recomputed.

        Raises:
            ProgramError: it answers differently when asked twice, or with something JAX would not accept.
        """
        avals = [v.aval for v in eqn.invars]
        first, second = (self._answer(self.policy(eqn.primitive, *avals, **eqn.params)) for _ in range(2))
        if first != second:
            raise ProgramError("the checkpoint policy answers differently when it is asked twice")
        if first is not None:
            self.used.add(first)
        return first

    def _answer(self, answer: Any) -> str | None:
        if isinstance(answer, bool):
            return self.saved if answer else None
        kind = answer.__name__ if isinstance(answer, type) else type(answer).__name__
        if kind in ("SaveableType", "Saveable"):
            return self.saved
        if kind in ("RecomputeType", "Recompute"):
            return None
        if kind == "Offloadable":
            self.places.add((str(answer.src), str(answer.dst)))
            return self.offloaded
        raise ProgramError(f"the checkpoint policy answers {answer!r:.80}")

    def as_policy(self) -> Policy:
        """The policy on names that keeps what was decided.

        Raises:
            ProgramError: values go to different memories.
        """
        if len(self.places) > 1:
            raise ProgramError(f"the checkpoint policy offloads to several places: {sorted(self.places)}")
        saved = (self.saved,) if self.saved in self.used else ()
        if not self.places:
            return SaveNames(saved)
        ((src, dst),) = self.places
        return OffloadNames(offloaded=(self.offloaded,), saved=saved, src=src, dst=dst)
