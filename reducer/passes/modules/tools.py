"""What several passes for modules need."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import msgspec

from reducer.stablehlo.edit import Rewriter, with_main
from reducer.stablehlo.hosted import hosted
from reducer.stablehlo.loops import counter
from reducer.stablehlo.model import (
    ISOLATED,
    TERMINATORS,
    Attributes,
    Block,
    Module,
    Operation,
    all_operations,
)
from reducer.stablehlo.sense import divisors
from reducer.stablehlo.shardings import sharding_of

_ALIASING = "tf.aliasing_output"


def keep_results(module: Module, keep: Collection[int]) -> Module:
    """The module with only these results; arguments that were donated to others are donated no more."""
    main = module.main
    last = main.body.operations[-1]
    places = {at: i for i, at in enumerate(sorted(keep))}
    last = msgspec.structs.replace(last, operands=tuple(last.operands[at] for at in places))
    return with_main(
        module,
        msgspec.structs.replace(
            main,
            body=Block(main.body.params, (*main.body.operations[:-1], last)),
            param_attributes=tuple(tuple(_moved(each, places)) for each in main.param_attributes),
            result_attributes=tuple(main.result_attributes[at] for at in places),
        ),
    )


def _moved(attributes: Attributes, places: dict[int, int]) -> Iterator[tuple[str, str]]:
    for name, text in attributes:
        if name == _ALIASING:
            match = re.match(r"\d+", text)
            place = places.get(int(match[0])) if match else None
            if place is not None:
                yield name, f"{place} : i32"
        else:
            yield name, text


def control(module: Module) -> set[int]:
    """The ids of the operations that make loops end."""
    found: set[int] = set()

    def walk(block: Block, around: dict[int, Operation]) -> None:
        around = dict(around)
        for operation in block.operations:
            if operation.name == "stablehlo.while":
                counts = counter(operation, around)
                if counts is not None:
                    found.update((id(counts.compare), id(counts.add)))
            for region in operation.regions:
                walk(region, around)
            around.update((value.number, operation) for value in operation.results)

    for function in module.functions:
        walk(function.body, {})
    return found


def editable(module: Module) -> list[Operation]:
    """Operations that could go, in order: without constants, terminators, and what makes loops end."""
    kept = control(module)
    found: list[Operation] = []

    def walk(block: Block) -> None:
        for operation in block.operations:
            if operation.name in TERMINATORS or operation.name == "stablehlo.constant" or id(operation) in kept:
                continue
            if operation.results:
                found.append(operation)
            if operation.name in ("stablehlo.while", "sdy.manual_computation", "stablehlo.case", "stablehlo.if"):
                for region in operation.regions:
                    walk(region)

    for function in module.functions:
        walk(function.body)
    return found


class Cutter:
    """Cuts operations off: their results become arguments, or zeros where no argument is seen."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._sharding = sharding_of(module)
        self._hosted = hosted(module)
        self._divisors = divisors(module)
        self._hidden: set[int] = set()
        for function in module.functions:
            for operation in all_operations(function.body):
                if function is not module.main:
                    self._hidden.add(id(operation))
                elif operation.name in ISOLATED:
                    self._hidden.update(id(one) for region in operation.regions for one in all_operations(region))

    def cut(self, change: Rewriter, operation: Operation, *, zeros: bool = False) -> None:
        """Plan it. Raises `ProgramError` if there are neither arguments nor zeros of its types."""
        made = []
        for value in operation.results:
            if zeros or id(operation) in self._hidden:
                made.append(change.constant(value, int(value.number in self._divisors)))
            else:
                memory = (("mhlo.memory_kind", '"pinned_host"'),) if value.number in self._hosted else ()
                change.argument(value, tuple(sorted((*memory, *self._sharding(value)))))
        change.swap(operation, made)
