"""Loops: fewer turns, fewer carries, or what is in them instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reducer.errors import ProgramError
from reducer.passes.base import Candidate, Edits
from reducer.stablehlo.edit import Rewriter
from reducer.stablehlo.loops import Counter, counter, scalar
from reducer.stablehlo.model import Block, Module, Operation, Value


def _loops(module: Module) -> list[tuple[Operation, Counter | None, dict[int, Operation]]]:
    """All loops, the inner ones first, how each counts, and what is defined around each."""
    found: list[tuple[Operation, Counter | None, dict[int, Operation]]] = []

    def walk(block: Block, around: dict[int, Operation]) -> None:
        around = dict(around)
        for operation in block.operations:
            for region in operation.regions:
                walk(region, around)
            if operation.name == "stablehlo.while":
                found.append((operation, counter(operation, around), dict(around)))
            around.update((value.number, operation) for value in operation.results)

    for function in module.functions:
        walk(function.body, {})
    return found


def unwrap_all(module: Module) -> Edits[Module]:
    """Loops by what they do the first time, inner ones first."""
    loops = [operation for operation, _, _ in _loops(module)]
    return Edits(len(loops), lambda chosen: _unwrapped(module, [loops[at] for at in chosen]))


def _unwrapped(module: Module, loops: Sequence[Operation]) -> Module:
    change = Rewriter(module)
    for loop in loops:
        body = loop.regions[1]
        for param, value in zip(body.params, loop.operands, strict=True):
            change.replace(param, value)
        for result, value in zip(loop.results, body.operations[-1].operands, strict=True):
            change.replace(result, value)
        change.swap(loop, body.operations[:-1])
    return change.finish()


def freeze_carries(module: Module) -> Edits[Module]:
    """Carries of loops kept as they are at first; the ones that count stay."""
    carries = [
        (loop, at)
        for loop, counts, _ in _loops(module)
        for at in range(len(loop.operands))
        if counts is None or at != counts.at
    ]

    def apply(chosen: Sequence[int]) -> Module:
        change = Rewriter(module)
        frozen: dict[int, set[int]] = {}
        loops: dict[int, Operation] = {}
        for position in chosen:
            loop, at = carries[position]
            loops[id(loop)] = loop
            frozen.setdefault(id(loop), set()).add(at)
            for value in (loop.regions[0].params[at], loop.regions[1].params[at], loop.results[at]):
                change.replace(value, loop.operands[at])
        for key, gone in frozen.items():
            change.swap(loops[key], [_without_carries(loops[key], gone)])
        return change.finish()

    return Edits(len(carries), apply)


def _without_carries(loop: Operation, gone: set[int]) -> Operation:
    keep = [at not in gone for at in range(len(loop.operands))]
    if not any(keep):
        raise ProgramError("a loop without carries")

    def some(values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(value for value, stays in zip(values, keep, strict=True) if stays)

    cond, body = loop.regions
    last = body.operations[-1]
    last = Operation(last.name, some(last.operands), (), last.attributes)
    # The first result names the operation for the rest of the change: it may be one that goes.
    return Operation(
        loop.name,
        some(loop.operands),
        some(loop.results),
        loop.attributes,
        (Block(some(cond.params), cond.operations), Block(some(body.params), (*body.operations[:-1], last))),
    )


def shorten_loops(module: Module) -> Iterator[Candidate[Module]]:
    """Loops that turn once, or twice: all of them, then one by one."""
    loops = [(loop, counts, around) for loop, counts, around in _loops(module) if counts is not None]
    for turns in (1, 2):
        yield lambda turns=turns: _shortened(module, loops, turns)  # type: ignore[misc]
    if len(loops) > 1:
        for one in loops:
            for turns in (1, 2):
                yield lambda one=one, turns=turns: _shortened(module, [one], turns)  # type: ignore[misc]


def _shortened(
    module: Module, loops: Sequence[tuple[Operation, Counter | None, dict[int, Operation]]], turns: int
) -> Module:
    change = Rewriter(module)
    for loop, counts, around in loops:
        assert counts is not None
        start = scalar(around.get(loop.operands[counts.at].number)) or 0
        bound = start + turns * counts.step
        if counts.bound is None or counts.bound <= bound:
            continue
        limit = change.new(counts.limit.type)
        text = f"dense<{bound}> : {limit.type}"
        made = Operation("stablehlo.constant", (), (limit,), (("value", text),))
        compare = Operation(
            counts.compare.name,
            (counts.compare.operands[0], limit),
            counts.compare.results,
            counts.compare.attributes,
        )
        change.swap(counts.compare, [made, compare])
    return change.finish()


__all__ = ["freeze_carries", "shorten_loops", "unwrap_all"]
