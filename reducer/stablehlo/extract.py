"""A part of a module as a module of its own: some operations with the loops around them, and nothing else.

What the part needs from outside becomes an argument (zeros, where no argument can be seen), and what it computes and
does not use becomes a result: a value in the body of a loop leaves it as one more carry, the last one wins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from reducer.errors import ProgramError
from reducer.stablehlo.edit import last_number
from reducer.stablehlo.hosted import hosted
from reducer.stablehlo.loops import counter
from reducer.stablehlo.model import (
    Attributes,
    Block,
    Module,
    Operation,
    Value,
    all_operations,
)
from reducer.stablehlo.types import fill, tensor

_ENTERED = frozenset({"stablehlo.while", "sdy.manual_computation"})
_ON_HOST: Attributes = (("mhlo.memory_kind", '"pinned_host"'),)


def extract(
    module: Module,
    keep: Callable[[Operation], bool],
    carried: Callable[[Operation, int], bool] = lambda *_: True,
    sharding: Callable[[Value], Attributes] = lambda _: (),
) -> Module:
    """The part of the compiled function that `keep` says, operation by operation.

    A loop stays if something in it does; of its carries stay those that count, and those that `carried` says, by loop
    and position. Other carries are frozen to what they are at first. Other regions stay as they are.

    Raises:
        ProgramError: nothing is kept, or a value can neither become an argument nor zeros.
    """
    return _Extraction(module, keep, carried, sharding).module()


class _Extraction:
    def __init__(
        self,
        module: Module,
        keep: Callable[[Operation], bool],
        carried: Callable[[Operation, int], bool],
        sharding: Callable[[Value], Attributes],
    ) -> None:
        self._sharding = sharding
        self._module = module
        self._keep = keep
        self._carried = carried
        self._last = last_number(module)
        self._hosted = hosted(module)
        self._alias: dict[int, Value] = {}
        self._defined: set[int] = set()
        self._used: set[int] = set()
        self._params: dict[int, tuple[Value, Attributes]] = {}
        self._zeros: dict[int, Operation] | None = None
        self._around: dict[int, Operation] = {}
        self._inner = {
            id(operation): any(keep(inner) for region in operation.regions for inner in all_operations(region))
            for operation in all_operations(module.main.body)
            if operation.name in _ENTERED
        }

    def _new(self, like: Value) -> Value:
        self._last += 1
        if like.number in self._hosted:
            self._hosted |= {self._last}
        return Value(self._last, like.type)

    def module(self) -> Module:
        main = self._module.main
        self._defined.update(value.number for value in main.body.params)
        operations, left = self._block(main.body.operations)
        if not left:
            raise ProgramError("nothing is left")
        last = msgspec.structs.replace(main.body.operations[-1], operands=tuple(left))
        added = list(self._params.values())
        function = msgspec.structs.replace(
            main,
            body=Block((*main.body.params, *(value for value, _ in added)), (*operations, last)),
            param_attributes=(
                *(tuple(item for item in each if item[0] != "tf.aliasing_output") for each in main.param_attributes),
                *(each for _, each in added),
            ),
            result_attributes=tuple(_ON_HOST if value.number in self._hosted else () for value in left),
        )
        functions = tuple(function if one is main else one for one in self._module.functions)
        return msgspec.structs.replace(self._module, functions=functions)

    def _use(self, value: Value) -> Value:
        """What a use of `value` becomes in the part."""
        while value.number in self._alias:
            value = self._alias[value.number]
        if value.number not in self._defined:
            value = self._outside(value)
        self._used.add(value.number)
        return value

    def _outside(self, value: Value) -> Value:
        if self._zeros is not None:
            # No argument is seen in here.
            zeros = self._zeros.get(value.number)
            if zeros is None:
                zeros = self._zeros[value.number] = _constant(self._new(value))
            return zeros.results[0]
        if value.number not in self._params:
            if tensor(value.type) is None:
                raise ProgramError(f"no argument of type {value.type}")
            attributes = _ON_HOST if value.number in self._hosted else ()
            attributes = tuple(sorted((*attributes, *self._sharding(value))))
            self._params[value.number] = self._new(value), attributes
        return self._params[value.number][0]

    def _block(self, operations: Sequence[Operation]) -> tuple[list[Operation], list[Value]]:
        """What stays of a block, and the values in it that nothing in it uses."""
        made: list[Operation] = []
        for operation in operations[:-1]:
            if operation.name == "stablehlo.constant":
                made.append(operation)
                self._defined.add(operation.results[0].number)
                self._around[operation.results[0].number] = operation
                self._used.add(operation.results[0].number)
            elif operation.name in _ENTERED:
                if self._inner[id(operation)]:
                    made.extend(
                        self._loop(operation) if operation.name == "stablehlo.while" else self._manual(operation)
                    )
            elif self._keep(operation):
                made.append(self._whole(operation))
                self._defined.update(value.number for value in operation.results)
        defined = [value for operation in made for value in operation.results]
        return made, [value for value in defined if value.number not in self._used]

    def _whole(self, operation: Operation) -> Operation:
        """An operation with all of its regions."""
        operands = tuple(self._use(value) for value in operation.operands)
        regions = []
        for region in operation.regions:
            self._defined.update(value.number for value in region.params)
            inner = []
            for one in region.operations:
                inner.append(self._whole(one))
                self._defined.update(value.number for value in one.results)
            regions.append(Block(region.params, tuple(inner)))
        return Operation(operation.name, operands, operation.results, operation.attributes, tuple(regions))

    def _loop(self, loop: Operation) -> list[Operation]:
        cond, body = loop.regions
        counts = counter(loop, self._around)
        steady = {i for i, v in enumerate(body.params) if body.operations[-1].operands[i] == v}
        # Of a loop that counts in no known way, everything that may decide when it ends stays.
        control = {counts.at} if counts else set(range(len(body.params))) - steady
        kept = [i for i in range(len(body.params)) if i in control or (i not in steady and self._carried(loop, i))]
        for i in set(range(len(body.params))) - set(kept):
            for value in (cond.params[i], body.params[i], loop.results[i]):
                self._alias[value.number] = loop.operands[i]
        inits = [self._use(loop.operands[i]) for i in kept]
        self._defined.update(region.params[i].number for region in (cond, body) for i in kept)
        test = self._whole(Operation("", (), (), (), (Block((), cond.operations),))).regions[0]
        if counts:
            keep = self._keep
            self._keep = lambda operation: operation is counts.add or keep(operation)
        inside, left = self._block(body.operations)
        if counts:
            self._keep = keep
        last = body.operations[-1]
        yields = [self._use(last.operands[i]) for i in kept]
        left = [value for value in left if value.number not in self._used]
        zeros = [_constant(self._new(value)) for value in left]
        results = [loop.results[i] for i in kept] + [self._new(value) for value in left]
        made = Operation(
            loop.name,
            (*inits, *(one.results[0] for one in zeros)),
            tuple(results),
            loop.attributes,
            (
                Block((*(cond.params[i] for i in kept), *map(self._new, left)), test.operations),
                Block(
                    (*(body.params[i] for i in kept), *map(self._new, left)),
                    (*inside, msgspec.structs.replace(last, operands=(*yields, *left))),
                ),
            ),
        )
        self._used.update(loop.results[i].number for i in control & set(kept))
        self._used.update(one.results[0].number for one in zeros)
        self._defined.update(value.number for value in results)
        return [*zeros, made]

    def _manual(self, manual: Operation) -> list[Operation]:
        body = manual.regions[0]
        operands = tuple(self._use(value) for value in manual.operands)
        outer, self._zeros = self._zeros, {}
        defined, self._defined = self._defined, {value.number for value in body.params}
        inside, _ = self._block(body.operations)
        last = self._whole(body.operations[-1])
        inside = [*self._zeros.values(), *inside]
        self._zeros, self._defined = outer, defined
        self._defined.update(value.number for value in manual.results)
        return [msgspec.structs.replace(manual, operands=operands, regions=(Block(body.params, (*inside, last)),))]


def _constant(value: Value) -> Operation:
    return Operation("stablehlo.constant", (), (value,), (("value", fill(value.type)),))


__all__ = ["extract"]
