"""Keeping what is near host memory, or one loop, or one result: most of a large module has nothing to do with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from reducer.passes.base import Candidate
from reducer.passes.modules.tools import keep_results
from reducer.stablehlo.dead_code import remove_dead_code
from reducer.stablehlo.distance import ENTERED, Distances, is_index
from reducer.stablehlo.extract import extract
from reducer.stablehlo.hosted import placements
from reducer.stablehlo.model import Block, Module, Operation, all_operations, operations_of
from reducer.stablehlo.order import size
from reducer.stablehlo.shardings import sharding_of
from reducer.stablehlo.support import with_support

#: A smaller module is quicker taken apart than searched for what matters.
LARGE = 60
_NEAR = (0, 1, 2, 4)


def keep_near(module: Module) -> Iterator[Candidate[Module]]:
    """Only what is at most some steps from a value in host memory; everything else is cut off, arguments instead."""
    if size(module) < LARGE:
        return
    distances = Distances(module)
    sharding = sharding_of(module)
    for reach in _NEAR:
        yield lambda reach=reach: _near(module, distances, reach, sharding)  # type: ignore[misc]


def _near(module: Module, distances: Distances, reach: int, sharding: Callable[..., object]) -> Module:
    kept = [
        operation
        for operation in all_operations(module.main.body)
        if operation.name not in ENTERED and distances.of(operation) <= reach
    ]
    found = with_support(module, kept)
    return extract(
        module,
        lambda operation: id(operation) in found,
        lambda loop, at: distances.of_carry(loop, at) <= reach or is_index(loop.results[at]),
        sharding,  # type: ignore[arg-type]
    )


def keep_one_loop(module: Module) -> Iterator[Candidate[Module]]:
    """One loop and nothing around it: the loops with placements first, the smaller ones first."""
    if size(module) < LARGE:
        return
    sharding = sharding_of(module)
    loops = [operation for operation in operations_of(module) if operation.name == "stablehlo.while"]

    def rank(loop: Operation) -> tuple[bool, int]:
        placed = any(True for region in loop.regions for _ in placements(region))
        return not placed, sum(1 for region in loop.regions for _ in all_operations(region))

    for loop in sorted(loops, key=rank):
        if not rank(loop)[0]:
            yield lambda loop=loop: _loop(module, loop, sharding)  # type: ignore[misc]


def _loop(module: Module, loop: Operation, sharding: Callable[..., object]) -> Module:
    inner = {id(operation) for region in loop.regions for operation in all_operations(region)}
    return extract(module, lambda operation: id(operation) in inner, sharding=sharding)  # type: ignore[arg-type]


def keep_one_result(module: Module) -> Iterator[Candidate[Module]]:
    """One result with what it needs: the ones that need most placements first, the smaller ones first."""
    count = len(module.main.result_attributes)
    if count < 2:
        return

    def rank(at: int) -> tuple[int, int]:
        slim = remove_dead_code(keep_results(module, [at]))
        return -sum(1 for _ in placements(Block((), slim.main.body.operations))), size(slim)

    ranks = {at: rank(at) for at in range(count)}
    most = min(placed for placed, _ in ranks.values())
    seen: set[tuple[int, int]] = set()
    for at in sorted(ranks, key=lambda at: ranks[at]):
        # Of those that need about the same, one is enough: the others are no likelier.
        if ranks[at] not in seen and ranks[at][0] == most and len(seen) < 4:
            seen.add(ranks[at])
            yield lambda at=at: keep_results(module, [at])  # type: ignore[misc]
