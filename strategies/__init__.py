"""Hypothesis strategies for nested scan and checkpoint programs that place values in host memory.

`st.from_type(reducer.ir.Program)` finds these without importing this package. Hypothesis keeps the choices of one
example in 8 KiB, so programs are small; that is what a hunt wants anyway.
"""

from __future__ import annotations

from strategies._hunting import hunting
from strategies._placements import placements
from strategies._policies import policies
from strategies._programs import programs
from strategies._stacks import layer_stacks
from strategies._types import dtypes, shapes, types

__all__ = ["dtypes", "hunting", "layer_stacks", "placements", "policies", "programs", "shapes", "types"]
