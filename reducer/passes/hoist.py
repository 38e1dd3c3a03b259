"""Moving equations out of regions: what is done in a loop or a checkpoint may as well be done outside."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from reducer.ir.edit import rewrite
from reducer.ir.equations import Program
from reducer.ir.hoist import movable, moved_after, moved_before
from reducer.ir.order import size
from reducer.ir.walk import blocks
from reducer.passes.base import Candidate
from reducer.passes.relevance import LARGE


def hoist_equations(program: Program) -> Iterator[Candidate[Program]]:
    """One equation of one value moved behind its region, or before it; for small programs only."""
    if size(program) >= LARGE:
        return
    for place in blocks(program):
        for i in range(len(place.block.eqns)):
            for j in movable(place.block, i):
                for move in (moved_after, moved_before):
                    yield partial(rewrite, program, {place.path: partial(move, i=i, j=j)})
