"""Hypothesis strategies for nested scan and checkpoint programs that place values in host memory.

`st.from_type(reducer.ir.Program)` finds these without importing this package. Hypothesis keeps the choices of one
example in 8 KiB, so programs are small; that is what a hunt wants anyway.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strategies._embedding import embedded
    from strategies._hunting import hunting
    from strategies._placements import placements
    from strategies._policies import policies
    from strategies._programs import programs
    from strategies._stacks import layer_stacks
    from strategies._types import dtypes, shapes, types

# Hypothesis imports this package in every process, for the entry point; nobody should pay for what is not used.
_HOMES = {
    "dtypes": "_types",
    "embedded": "_embedding",
    "hunting": "_hunting",
    "layer_stacks": "_stacks",
    "placements": "_placements",
    "policies": "_policies",
    "programs": "_programs",
    "shapes": "_types",
    "types": "_types",
}

__all__ = ["dtypes", "embedded", "hunting", "layer_stacks", "placements", "policies", "programs", "shapes", "types"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"strategies.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
