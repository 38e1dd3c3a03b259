"""How far each operation is from host memory, in steps from a value to what makes or uses it.

Loop counters, constants and indices are no bridges: everything in a loop would be near everything else.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterator

from reducer.stablehlo.hosted import hosted, placement
from reducer.stablehlo.loops import counter
from reducer.stablehlo.model import TERMINATORS, Block, Module, Operation, Value, all_operations
from reducer.stablehlo.types import tensor

#: Operations whose regions are walked into; the others are one thing with all that is in them.
ENTERED = frozenset({"stablehlo.while", "sdy.manual_computation", "stablehlo.case", "stablehlo.if"})


class Distances:
    """Distances in the function that is compiled. `far` is more than any distance."""

    def __init__(self, module: Module) -> None:
        self._operations: dict[Hashable, Operation] = {}
        self._owner: dict[int, Hashable] = {}
        self._uses: dict[int, set[Hashable]] = defaultdict(set)
        self._counters: set[Hashable] = set()
        self._defined: dict[int, Operation] = {
            value.number: operation for operation in all_operations(module.main.body) for value in operation.results
        }
        on_host = hosted(module)
        self._walk(module.main.body, {})
        seeds = [
            node
            for node, operation in self._operations.items()
            if any(value.number in on_host for value in _values_of(node, operation))
            or (placement(operation) == "device" and operation.operands[0].number in on_host)
        ]
        self._near = self._spread(seeds, on_host)
        self.far = max(self._near.values(), default=0) + 1

    def of(self, operation: Operation) -> int:
        """The distance of an operation; of a loop, that of its nearest carry."""
        if operation.name in ENTERED:
            carries = (self._near.get((id(operation), at), self.far) for at in range(len(operation.results)))
            return min(carries, default=self.far)
        return self._near.get(id(operation), self.far)

    def of_carry(self, loop: Operation, at: int) -> int:
        """The distance of one carry of a loop."""
        return self._near.get((id(loop), at), self.far)

    def _walk(self, block: Block, around: dict[int, Operation]) -> None:
        around = dict(around)
        for operation in block.operations:
            if operation.name in ENTERED:
                self._ports(operation, around)
                for region in operation.regions:
                    self._walk(region, around)
            elif operation.name not in TERMINATORS:
                self._operations[id(operation)] = operation
                for value in operation.results:
                    self._owner[value.number] = id(operation)
                for one in (operation, *(o for region in operation.regions for o in all_operations(region))):
                    for value in one.operands:
                        self._uses[value.number].add(id(operation))
            around.update((value.number, operation) for value in operation.results)

    def _ports(self, operation: Operation, around: dict[int, Operation]) -> None:
        loop = operation.name == "stablehlo.while"
        counts = counter(operation, around) if loop else None
        for at, result in enumerate(operation.results):
            node = (id(operation), at)
            self._operations[node] = operation
            self._owner[result.number] = node
            if counts is not None and counts.at == at:
                self._counters.add(node)
            for region in operation.regions:
                if not loop or region is operation.regions[1]:
                    self._uses[region.operations[-1].operands[at].number].add(node)
                if loop:
                    self._owner[region.params[at].number] = node
            if loop:
                self._uses[operation.operands[at].number].add(node)
        if operation.name == "sdy.manual_computation":
            for at, param in enumerate(operation.regions[0].params):
                node = (id(operation), -1 - at)
                self._operations[node] = operation
                self._owner[param.number] = node
                self._uses[operation.operands[at].number].add(node)

    def _spread(self, seeds: list[Hashable], on_host: frozenset[int]) -> dict[Hashable, int]:
        links: dict[Hashable, set[Hashable]] = defaultdict(set)
        for number, users in self._uses.items():
            owner = self._owner.get(number)
            if owner is None or owner in self._counters or self._is_index(number):
                continue
            for user in users - self._counters:
                links[owner].add(user)
                links[user].add(owner)
        found = dict.fromkeys(seeds, 0)
        for seed in seeds:
            self._support(seed, found, on_host)
        queue = deque(found)
        while queue:
            node = queue.popleft()
            for other in links[node]:
                if other not in found:
                    found[other] = found[node] + 1
                    queue.append(other)
        return found

    def _is_index(self, number: int) -> bool:
        operation = self._defined.get(number)
        if operation is None:
            return False
        if operation.name == "stablehlo.constant":
            return True
        return is_index(next(value for value in operation.results if value.number == number))

    def _support(self, seed: Hashable, found: dict[Hashable, int], on_host: frozenset[int]) -> None:
        """Index arithmetic and filled arrays that a near operation needs are as near."""
        operation = self._operations[seed]
        operands = list(operation.operands)
        if isinstance(seed, tuple):
            operands = [operation.operands[seed[1]]] if 0 <= seed[1] < len(operation.operands) else []
        while operands:
            value = operands.pop()
            maker = self._defined.get(value.number)
            if maker is None or maker.regions or id(maker) in found or value.number in on_host:
                continue
            if is_index(value) or self._filled(maker):
                found[id(maker)] = 0
                operands.extend(maker.operands)

    def _filled(self, operation: Operation) -> bool:
        if operation.name == "stablehlo.constant":
            return True
        return operation.name in ("stablehlo.broadcast_in_dim", "stablehlo.iota") and all(
            value.number in self._defined and self._filled(self._defined[value.number]) for value in operation.operands
        )


def is_index(value: Value) -> bool:
    """True for a scalar integer or boolean."""
    found = tensor(value.type)
    return found is not None and not found.shape and found.element.lstrip("u").startswith("i")


def _values_of(node: Hashable, operation: Operation) -> Iterator[Value]:
    if not isinstance(node, tuple):
        yield from operation.results
    elif node[1] >= 0:
        yield operation.results[node[1]]
