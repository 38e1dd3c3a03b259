"""Coupled edits: several neighbouring equations changed at once, exhaustively, when a program is small already.

A single step can be impossible where two together are possible: a loop and the loop around it, a value and the only
use of it. Within a window of four equations in program order every choice of two or more is tried, each of them
deleted or, if it is a region, unwrapped. Of a program of sixteen equations that are some eighty questions; in somewhat
larger ones only pairs of neighbours are tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from reducer.ir.edit import BlockEdit, delete, rewrite
from reducer.ir.equations import Block, Equation, Fill, Program
from reducer.ir.unwrap import main_fields, unwrap
from reducer.ir.walk import Path, equations
from reducer.passes.base import Candidate

WINDOW = 4
#: Up to so many equations windows are of that size, then of two, and above the second number there are none.
LARGEST, LARGER = 16, 32

#: What is done to one equation: None deletes it, else the field of the block that takes its place.
_Step = tuple[Path, int, str | None]


def windows(program: Program) -> Iterator[Candidate[Program]]:
    """Two to four of four consecutive equations (or two) deleted or unwrapped together; large choices first."""
    places = [(path, i, eqn) for path, i, eqn in equations(program) if not isinstance(eqn, Fill)]
    if len(places) > LARGER:
        return
    width = WINDOW if len(places) <= LARGEST else 2
    seen: set[frozenset[_Step]] = set()
    for size in range(width, 1, -1):
        for start in range(max(len(places) - width, 0) + 1):
            window = places[start : start + width]
            for choice in product(*(_options(path, i, eqn) for path, i, eqn in window)):
                steps = frozenset(step for step in choice if step is not None)
                if len(steps) == size and steps not in seen:
                    seen.add(steps)
                    yield partial(_taken, program, steps)


def _options(path: Path, i: int, eqn: Equation) -> list[_Step | None]:
    return [None, (path, i, None), *((path, i, field) for field in main_fields(eqn))]


def _taken(program: Program, steps: frozenset[_Step]) -> Program:
    deleted: dict[Path, set[int]] = {}
    unwrapped: dict[Path, dict[int, str]] = {}
    for path, i, field in steps:
        if field is None:
            deleted.setdefault(path, set()).add(i)
        else:
            unwrapped.setdefault(path, {})[i] = field

    def editor(path: Path) -> BlockEdit:
        def edit(block: Block) -> Block:
            return _without(block, deleted.get(path, set()), unwrapped.get(path, {}))

        return edit

    return rewrite(program, {path: editor(path) for path in {*deleted, *unwrapped}})


def _without(block: Block, deleted: set[int], unwrapped: dict[int, str]) -> Block:
    """Unwrap and delete by the positions of the given block: from the last one on, so that positions stay right."""
    for i in sorted({*deleted, *unwrapped}, reverse=True):
        block = delete(block, {i}) if i in deleted else unwrap(block, {i: unwrapped[i]})
    return block
