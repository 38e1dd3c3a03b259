"""From StableHLO modules to programs: `raise_module` undoes what JAX's lowering did, as far as the IR can say it."""

from __future__ import annotations

from reducer.raising.entry import raise_module

__all__ = ["raise_module"]
