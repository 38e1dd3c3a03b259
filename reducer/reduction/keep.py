"""`--keep`: what must survive a reduction, in a notation people can type.

::

    dot_general            an operation of this name, anywhere; regions too: scan, checkpoint, cond, while, jit, ...
    name=h                 a value named h;   policy=h: a policy that mentions it
    scan/checkpoint        a checkpoint directly in a scan;   scan//tanh: at any depth in it
    /scan[1]/dot_general   / at the beginning: from the top;  [1]: the second of those in one block
    input[1]               an input of the type that input 1 of the start has

A candidate is kept if each pattern still matches something. Names follow the printed program; those of a module's
operations may be given with their dialect or without.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import msgspec

from reducer.errors import InputError
from reducer.ir.equations import Block, Checkpoint, Equation, Name, Op, Program
from reducer.ir.policies import names_of
from reducer.ir.walk import children
from reducer.stablehlo import Block as Region
from reducer.stablehlo import Module
from reducer.words import counted

C = TypeVar("C")

_STEP = re.compile(r"(?P<word>[A-Za-z_][\w.-]*)(=(?P<value>[^/\[\]]+))?(\[(?P<index>\d{1,6})\])?")
_HINT = "such as dot_general, name=h, scan[0]/checkpoint or input[1]"


class _Step(msgspec.Struct, frozen=True):
    """One part of a pattern. `deep`: at any depth below the part before it, not only directly in it."""

    word: str
    value: str | None
    index: int | None
    deep: bool


@dataclass(frozen=True, slots=True)
class _Node:
    """An operation: what it is called, what it is known by (``name=h``), and the blocks in it."""

    words: frozenset[str]
    values: frozenset[tuple[str, str]]
    blocks: tuple[tuple[_Node, ...], ...]


@dataclass(frozen=True, slots=True)
class _Tree(Generic[C]):
    """How patterns see a candidate: the operations at the top, and the types of its inputs."""

    top: Callable[[C], tuple[_Node, ...]]
    inputs: Callable[[C], tuple[str, ...]]


def keeps(patterns: Sequence[str], start: Program) -> Callable[[Program], bool]:
    """Whether a program has all that `patterns` name.

    Raises:
        InputError: one cannot be read, or names nothing in the start.
    """
    return _all_of(patterns, start, _Tree(lambda p: _of_block(p.block), lambda p: _types(p)))


def keeps_in_module(patterns: Sequence[str], start: Module) -> Callable[[Module], bool]:
    """Whether a module has all that `patterns` name; the top is the bodies of all its functions.

    Raises:
        InputError: one cannot be read, or names nothing in the start.
    """

    def top(module: Module) -> tuple[_Node, ...]:
        return tuple(node for function in module.functions for node in _of_region(function.body))

    return _all_of(patterns, start, _Tree(top, lambda m: tuple(v.type for v in m.main.body.params)))


def _types(program: Program) -> tuple[str, ...]:
    return tuple(str(var.type) for var in program.block.params)


def _all_of(patterns: Sequence[str], start: C, tree: _Tree[C]) -> Callable[[C], bool]:
    checks = [_check(pattern, start, tree) for pattern in patterns]
    return lambda candidate: all(check(candidate) for check in checks)


def _check(pattern: str, start: C, tree: _Tree[C]) -> Callable[[C], bool]:
    steps = parse(pattern)
    if steps[0].word == "input":
        return _input(pattern, steps, start, tree)

    def found(candidate: C) -> bool:
        return _matches(tree.top(candidate), steps)

    if not found(start):
        words = sorted({min(node.words, key=len) for node in _all(tree.top(start))})
        hint = f"there are {', '.join(words)}" if words else "it has no equations"
        raise InputError(f"--keep {pattern}: names nothing in the start", hint=hint)
    return found


def _input(pattern: str, steps: Sequence[_Step], start: C, tree: _Tree[C]) -> Callable[[C], bool]:
    step, types = steps[0], tree.inputs(start)
    if len(steps) > 1 or step.index is None or step.value is not None:
        raise InputError(f"--keep {pattern!r} cannot be read", hint="an input is named input[0], input[1], ...")
    if step.index >= len(types):
        raise InputError(
            f"--keep {pattern}: the start has {counted(len(types), 'inputs')}", hint="the first is input[0]"
        )
    wanted = types[step.index]
    return lambda candidate: wanted in tree.inputs(candidate)


_WORDS: Final = {
    "fill": "full",
    "call": "jit",
    "transfer": "device_put",
    "custom-vjp": "custom_vjp_call",
    "custom-jvp": "custom_jvp_call",
    "shard-map": "shard_map",
    "sharding-constraint": "sharding_constraint",
}


def _word(eqn: Equation) -> str:
    """What an equation is called where it is printed."""
    if isinstance(eqn, Op):
        return eqn.primitive
    tag = str(type(eqn).__struct_config__.tag)
    return _WORDS.get(tag, tag)


def _of_block(block: Block) -> tuple[_Node, ...]:
    return tuple(map(_of_equation, block.eqns))


def _of_equation(eqn: Equation) -> _Node:
    values = {("name", eqn.name)} if isinstance(eqn, Name) else set()
    if isinstance(eqn, Checkpoint):
        values = {("policy", name) for name in names_of(eqn.policy)}
    return _Node(frozenset({_word(eqn)}), frozenset(values), tuple(_of_block(block) for _, block in children(eqn)))


def _of_region(region: Region) -> tuple[_Node, ...]:
    return tuple(
        _Node(
            frozenset({operation.name, operation.name.partition(".")[2]}),
            frozenset(),
            tuple(map(_of_region, operation.regions)),
        )
        for operation in region.operations
    )


def _is(node: _Node, step: _Step) -> bool:
    if step.value is not None:
        return (step.word, step.value) in node.values
    return step.word in node.words


def _matches(block: Sequence[_Node], steps: Sequence[_Step]) -> bool:
    """Whether the pattern matches from this block on."""
    step, rest = steps[0], steps[1:]
    here = [node for node in block if _is(node, step)]
    if step.index is not None:
        here = here[step.index : step.index + 1]
    if any(not rest or any(_matches(inner, rest) for inner in node.blocks) for node in here):
        return True
    return step.deep and any(_matches(inner, steps) for node in block for inner in node.blocks)


def _all(block: Sequence[_Node]) -> Iterator[_Node]:
    for node in block:
        yield node
        for inner in node.blocks:
            yield from _all(inner)


def parse(pattern: str) -> tuple[_Step, ...]:
    """The parts of a pattern.

    Raises:
        InputError: it cannot be read.
    """
    rest, deep = pattern, not pattern.startswith("/") or pattern.startswith("//")
    rest = rest.lstrip("/") if pattern.startswith("/") else rest
    steps: list[_Step] = []
    while True:
        match = _STEP.match(rest)
        if match is None:
            raise InputError(f"--keep {pattern!r} cannot be read", hint=_HINT)
        index = match["index"]
        steps.append(_Step(match["word"], match["value"], int(index) if index else None, deep))
        rest = rest[match.end() :]
        if not rest:
            return tuple(steps)
        if not rest.startswith("/"):
            raise InputError(f"--keep {pattern!r} cannot be read", hint=_HINT)
        deep = rest.startswith("//")
        rest = rest[2:] if deep else rest[1:]
