"""Loops that count: how often they turn, and whether they end."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reducer.stablehlo.model import Operation, Value, attribute

_SCALAR = re.compile(r"dense<(-?\d+)> : tensor<u?i\d+>")


@dataclass(frozen=True, slots=True)
class Counter:
    """A loop that runs while its carry `at` is below `bound`, and adds `step` to it each time.

    `bound`, `step` and `start` are numbers where they are constants (`start` only if the caller knows what is defined
    around the loop); the operations are the ones of the loop that count.
    """

    at: int
    compare: Operation
    add: Operation
    limit: Value
    bound: int | None
    step: int


def scalar(operation: Operation | None) -> int | None:
    """The integer that a constant holds."""
    if operation is None or operation.name != "stablehlo.constant":
        return None
    match = _SCALAR.fullmatch(attribute(operation.attributes, "value") or "")
    return int(match[1]) if match else None


def counter(loop: Operation, around: dict[int, Operation]) -> Counter | None:
    """How a while loop counts; None if it does not, or not in this simple way.

    `around`: the operations that define what the loop captures, by the number of each result.
    """
    cond, body = loop.regions
    inside = {value.number: operation for operation in cond.operations for value in operation.results}
    last = inside.get(cond.operations[-1].operands[0].number)
    if (
        last is None
        or last.name != "stablehlo.compare"
        or "LT" not in (attribute(last.attributes, "comparison_direction") or "")
    ):
        return None
    places = {value.number: i for i, value in enumerate(cond.params)}
    counted, limit = last.operands
    at = places.get(counted.number)
    if at is None or not _steady(loop, limit, places, inside):
        return None
    steps = {value.number: operation for operation in body.operations for value in operation.results}
    add = steps.get(body.operations[-1].operands[at].number)
    if add is None or add.name != "stablehlo.add":
        return None
    param = body.params[at].number
    others = [value for value in add.operands if value.number != param]
    if len(others) != 1:
        return None
    step = scalar(steps.get(others[0].number) or around.get(others[0].number))
    if step is None or step < 1:
        return None
    bound = scalar(inside.get(limit.number) or around.get(limit.number))
    return Counter(at, last, add, limit, bound, step)


def _steady(loop: Operation, limit: Value, places: dict[int, int], inside: dict[int, Operation]) -> bool:
    """True if the limit is the same each time round."""
    if limit.number in inside:
        return inside[limit.number].name == "stablehlo.constant"
    if limit.number in places:
        at = places[limit.number]
        return loop.regions[1].operations[-1].operands[at] == loop.regions[1].params[at]
    return True
