"""`hunting()`: the mixture a hunt draws from."""

from __future__ import annotations

from typing import Final

import msgspec
from hypothesis import strategies as st

from reducer.ir.equations import Program
from strategies._assemble import assemble
from strategies._draws import FEATURES
from strategies._placements import plan_placement
from strategies._programs import plan_any
from strategies._source import Draw, Source, often
from strategies._stacks import plan_stack

#: Share of each strategy, in tenths: model-shaped programs find the failures users report, explicit transfers the
#: smallest ones, and the general strategy what nobody thought of.
WEIGHTS: Final = {"layer_stacks": 5, "placements": 3, "programs": 2}
_DTYPES: Final = ("float32", "bfloat16")


def hunting(*, max_depth: int = 3) -> st.SearchStrategy[Program]:
    """Programs worth compiling: `WEIGHTS` of each strategy; `meta` says which one made a program."""

    @st.composite
    def hunted(draw: Draw) -> Program:
        source = Source(draw, FEATURES)
        kind = source.pick(often(**WEIGHTS))
        match kind:
            case "layer_stacks":
                plan = plan_stack(source, max_depth=max_depth, gradient=None, dtypes=_DTYPES)
            case "placements":
                plan = plan_placement(source, max_depth=max_depth, gradient=None, dtypes=_DTYPES)
            case _:
                plan = plan_any(
                    source,
                    max_depth=max_depth,
                    max_equations=40,
                    gradient=None,
                    dtypes=_DTYPES,
                    offload_only=True,
                )
        return msgspec.structs.replace(assemble(plan), meta=(("strategy", kind),))

    return hunted()
