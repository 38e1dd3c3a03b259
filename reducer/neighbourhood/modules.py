"""The documented neighbourhood of a StableHLO module: every single step after which it could be smaller.

As `reducer.neighbourhood` for programs, and as independent of the passes. The kinds of steps:

===========  =========================================================================================================
delete       one operation with what only it needs; its results become an operand of it of their type, zeros (ones
             where something is divided by them), or new arguments,
             in host memory where they were
replace      one value by every earlier value of its type that is seen where it is defined; an argument also by zeros
unwrap       one loop by what it does the first time, a branching by each branch, a manual computation by its body
carry        one carry of a loop kept as it is at first
result       one dropped, or replaced by an operand of the operation that makes it
length       one loop turns once, half as often, or once less
size         one, wherever it flows: 1, half, one less, the next lower multiples of 8 and 128
dtype        all floating types f32
attribute    one of an operation (not a placement's), an argument, a result or the module dropped
scalar       the number that fills a constant made 0 or 1
devices      one device, with the sizes that it sees or with all of them
===========  =========================================================================================================

Some steps lead to no module (a manual computation that was given parts cannot be unwrapped), some to one that is not
smaller, some to one nobody could run (`reducer.stablehlo.sense`); such are no neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from reducer.errors import ProgramError
from reducer.neighbourhood import Neighbour
from reducer.neighbourhood.module_steps import Scope, scopes
from reducer.stablehlo.check import check
from reducer.stablehlo.devices import is_sharded, on_one_device
from reducer.stablehlo.dims import Dims
from reducer.stablehlo.edit import Rewriter, with_main
from reducer.stablehlo.hosted import hosted, placement
from reducer.stablehlo.loops import scalar
from reducer.stablehlo.model import (
    Attributes,
    Block,
    Function,
    Module,
    Operation,
    Value,
    attribute,
    operations_of,
    without,
)
from reducer.stablehlo.normal import inlined
from reducer.stablehlo.order import identity, order_key
from reducer.stablehlo.retype import retyped
from reducer.stablehlo.sense import divisors, nonsense
from reducer.stablehlo.types import fill, is_filled

#: Names this neighbourhood in certificates. Its number rises with every step that comes or goes.
MODULE_NAME: Final = "module-1"

_ON_HOST: Final[Attributes] = (("mhlo.memory_kind", '"pinned_host"'),)

Step = tuple[str, str, Callable[[], Module]]


def module_neighbours(module: Module, form: Callable[[Module], Module] = inlined) -> Iterator[Neighbour[Module]]:
    """Every smaller neighbour of a module in normal form, each once, in a fixed order.

    Args:
        module: in the normal form `form`.
        form: brings neighbours to the form in which modules are compared and compiled.
    """
    mine = order_key(module)
    sensible = nonsense(module) is None
    seen: set[str] = set()
    for kind, description, build in module_steps(module):
        try:
            candidate = form(build())
            check(candidate)
        except ProgramError:
            continue
        key = identity(candidate)
        if key in seen or not order_key(candidate) < mine or (sensible and nonsense(candidate) is not None):
            continue
        seen.add(key)
        yield Neighbour(kind, description, candidate)


def module_steps(module: Module) -> Iterator[Step]:
    """All steps in a fixed order, the ones that can remove most first. Building one may raise `ProgramError`."""
    found = scopes(module)
    yield from _results(module)
    for scope in found:
        yield from _unwrappings(module, scope)
    divided, there = divisors(module), hosted(module)
    for scope in found:
        yield from _deletions(module, scope, divided, there)
    for scope in found:
        yield from _carries(module, scope)
    yield from _devices(module)
    yield from _lengths(module, found)
    yield from _sizes(module)
    yield "dtype", "all floating types f32", lambda: retyped(module)
    yield from _attributes(module)
    yield from _scalars(module, found)
    for scope in found:
        yield from _replacements(module, scope)


def _named(operation: Operation) -> str:
    return f"{operation.name} %{operation.results[0].number}" if operation.results else operation.name


def _results(module: Module) -> Iterator[Step]:
    main = module.main
    last = main.body.operations[-1]
    makers = {value.number: one for one in main.body.operations for value in one.results}

    def with_results(values: tuple[Value, ...], attributes: tuple[Attributes, ...]) -> Module:
        ended = msgspec.structs.replace(last, operands=values)
        body = Block(main.body.params, (*main.body.operations[:-1], ended))
        params = tuple(without(each, "tf.aliasing_output") for each in main.param_attributes)
        return with_main(module, Function(main.name, body, params, attributes, main.attributes))

    count = len(last.operands)
    for at in range(count):
        rest = tuple(i for i in range(count) if i != at)
        if rest:
            yield (
                "result",
                f"result {at} dropped",
                lambda rest=rest: with_results(  # type: ignore[misc]
                    tuple(last.operands[i] for i in rest), tuple(main.result_attributes[i] for i in rest)
                ),
            )
        maker = makers.get(last.operands[at].number)
        for value in maker.operands if maker is not None else ():
            values = (*last.operands[:at], value, *last.operands[at + 1 :])
            yield (
                "result",
                f"result {at} is %{value.number} instead",
                lambda values=values: with_results(values, main.result_attributes),  # type: ignore[misc]
            )


def _unwrappings(module: Module, scope: Scope) -> Iterator[Step]:
    operation = scope.operation
    if operation.name == "stablehlo.while":
        choices = [(operation.regions[1], operation.operands)]
    elif operation.name == "sdy.manual_computation":
        choices = [(operation.regions[0], operation.operands)]
    elif operation.name in ("stablehlo.case", "stablehlo.if"):
        choices = [(region, ()) for region in operation.regions]
    else:
        return
    for i, (body, values) in enumerate(choices):

        def build(body: Block = body, values: tuple[Value, ...] = values) -> Module:
            change = Rewriter(module)
            for param, value in zip(body.params, values, strict=True):
                change.replace(param, value)
            for result, value in zip(operation.results, body.operations[-1].operands, strict=True):
                change.replace(result, value)
            change.swap(operation, body.operations[:-1])
            return change.finish()

        yield "unwrap", f"{_named(operation)} by region {i}", build


def _deletions(module: Module, scope: Scope, divided: frozenset[int], there: frozenset[int]) -> Iterator[Step]:
    operation = scope.operation
    if not operation.results or operation.name == "stablehlo.constant":
        return

    def by_operand() -> Module:
        change = Rewriter(module)
        for result in operation.results:
            same = next((value for value in operation.operands if value.type == result.type), None)
            if same is None:
                raise ProgramError("no operand of the type")
            change.replace(result, same)
        change.swap(operation, ())
        return change.finish()

    def by_constant() -> Module:
        change = Rewriter(module)
        change.swap(operation, [change.constant(result, int(result.number in divided)) for result in operation.results])
        return change.finish()

    def by_argument() -> Module:
        change = Rewriter(module)
        for result in operation.results:
            change.argument(result, _ON_HOST if result.number in there else ())
        change.swap(operation, ())
        return change.finish()

    yield "delete", f"{_named(operation)}: an operand instead", by_operand
    yield "delete", f"{_named(operation)}: zeros instead", by_constant
    if scope.sees_arguments:
        yield "delete", f"{_named(operation)}: an argument instead", by_argument


def _carries(module: Module, scope: Scope) -> Iterator[Step]:
    loop = scope.operation
    if loop.name != "stablehlo.while" or len(loop.operands) < 2:
        return
    for at in range(len(loop.operands)):

        def build(at: int = at) -> Module:
            def some(values: tuple[Value, ...]) -> tuple[Value, ...]:
                return values[:at] + values[at + 1 :]

            cond, body = loop.regions
            last = msgspec.structs.replace(body.operations[-1], operands=some(body.operations[-1].operands))
            change = Rewriter(module)
            for value in (cond.params[at], body.params[at], loop.results[at]):
                change.replace(value, loop.operands[at])
            regions = (
                Block(some(cond.params), cond.operations),
                Block(some(body.params), (*body.operations[:-1], last)),
            )
            change.swap(loop, [Operation(loop.name, some(loop.operands), some(loop.results), loop.attributes, regions)])
            return change.finish()

        yield "carry", f"carry {at} of {_named(loop)}", build


def _devices(module: Module) -> Iterator[Step]:
    if is_sharded(module):
        yield "devices", "one device, with its sizes", lambda: on_one_device(module, local=True)
        yield "devices", "one device, with all sizes", lambda: on_one_device(module, local=False)


def _lengths(module: Module, found: list[Scope]) -> Iterator[Step]:
    for scope in found:
        loop, counts = scope.operation, scope.counts
        if counts is None or counts.bound is None:
            continue
        start = scalar(scope.around.get(loop.operands[counts.at].number)) or 0
        turns = max(-((start - counts.bound) // counts.step), 0)
        for wanted in dict.fromkeys(n for n in (1, turns // 2, turns - 1) if 0 < n < turns):

            def build(bound: int = start + wanted * counts.step, compare: Operation = counts.compare) -> Module:
                change = Rewriter(module)
                limit = change.new(compare.operands[1].type)
                made = Operation("stablehlo.constant", (), (limit,), (("value", f"dense<{bound}> : {limit.type}"),))
                by = msgspec.structs.replace(compare, operands=(compare.operands[0], limit))
                change.swap(compare, [made, by])
                return change.finish()

            yield "length", f"{_named(loop)} turns {wanted} times", build


def _sizes(module: Module) -> Iterator[Step]:
    dims = Dims(module)
    for leaf in dims.free():
        size = dims.atoms.sizes[leaf]
        tiles = ((size - 1) // tile * tile for tile in (8, 128))
        for smaller in dict.fromkeys(n for n in (1, size // 2, size - 1, *tiles) if 0 < n < size):
            yield (
                "size",
                f"size {size} to {smaller}",
                lambda leaf=leaf, smaller=smaller: dims.resized({leaf: smaller}),  # type: ignore[misc]
            )


def _attributes(module: Module) -> Iterator[Step]:
    for operation in operations_of(module):
        if not operation.results or placement(operation) is not None:
            continue
        for name, _ in operation.attributes:
            if "." in name or name == "precision_config":
                slim = msgspec.structs.replace(operation, attributes=without(operation.attributes, name))
                yield "attribute", f"{name} of {_named(operation)}", _swapped(module, operation, slim)
    for name, _ in module.attributes:
        slim_module = msgspec.structs.replace(module, attributes=without(module.attributes, name))
        yield "attribute", f"{name} of the module", lambda slim_module=slim_module: slim_module  # type: ignore[misc]
    main = module.main
    for field in ("param_attributes", "result_attributes"):
        sets: tuple[Attributes, ...] = getattr(main, field)
        for at, each in enumerate(sets):
            for name, _ in each:
                changed = (*sets[:at], without(each, name), *sets[at + 1 :])
                by = msgspec.structs.replace(main, **{field: changed})
                yield (
                    "attribute",
                    f"{name} of {field.partition('_')[0]} {at}",
                    lambda by=by: with_main(module, by),  # type: ignore[misc]
                )


def _swapped(module: Module, operation: Operation, by: Operation) -> Callable[[], Module]:
    def build() -> Module:
        change = Rewriter(module)
        change.swap(operation, [by])
        return change.finish()

    return build


def _scalars(module: Module, found: list[Scope]) -> Iterator[Step]:
    limits = {scope.counts.limit.number for scope in found if scope.counts is not None}
    for operation in operations_of(module):
        if operation.name != "stablehlo.constant" or operation.results[0].number in limits:
            continue
        text = attribute(operation.attributes, "value") or ""
        for number in (0, 1):
            if number == 1 and is_filled(text):
                continue
            try:
                other = fill(operation.results[0].type, number)
            except ProgramError:
                continue
            by = msgspec.structs.replace(operation, attributes=(("value", other),))
            yield "scalar", f"%{operation.results[0].number} is {number}", _swapped(module, operation, by)


def _replacements(module: Module, scope: Scope) -> Iterator[Step]:
    for value in scope.operation.results:
        for other in reversed(scope.seen):
            if other.type == value.type and other.number != value.number:

                def build(value: Value = value, other: Value = other) -> Module:
                    change = Rewriter(module)
                    change.replace(value, other)
                    return change.finish()

                yield "replace", f"%{value.number} by %{other.number}", build
    if scope.first:
        yield from _arguments(module)


def _arguments(module: Module) -> Iterator[Step]:
    params = module.main.body.params
    for at, param in enumerate(params):
        for other in params[:at]:
            if other.type == param.type:

                def build(param: Value = param, other: Value = other) -> Module:
                    change = Rewriter(module)
                    change.replace(param, other)
                    return change.finish()

                yield "replace", f"argument {at} by %{other.number}", build

        def zeros(param: Value = param) -> Module:
            change = Rewriter(module)
            made = change.new(param.type)
            change.replace(param, made)
            changed = change.finish()
            main = changed.main
            body = Block(main.body.params, (change.constant(made), *main.body.operations))
            return with_main(changed, msgspec.structs.replace(main, body=body))

        yield "replace", f"argument {at} by zeros", zeros
