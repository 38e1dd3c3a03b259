"""From JAX functions to programs.

`capture` traces a function and writes its jaxpr down in the IR. `differentiate` takes a program to the placement
tier: derivatives taken, policies applied, transfers explicit. `watch_grad` recovers the program tier from a function
that takes derivatives itself.

JAX is imported when one of them is called, not before.
"""

from __future__ import annotations

from reducer.lowering.capture.entry import Captured, capture, captured
from reducer.lowering.capture.tiers import differentiate
from reducer.lowering.capture.watch import Watched, watch_grad

__all__ = ["Captured", "Watched", "capture", "captured", "differentiate", "watch_grad"]
