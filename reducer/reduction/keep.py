"""`--keep`: what must survive a reduction, in a notation people can type.

::

    dot_general            an operation of this name, anywhere; regions too: scan, checkpoint, cond, while, jit, ...
    name=h                 a value named h;   policy=h: a policy that mentions it
    scan/checkpoint        a checkpoint directly in a scan;   scan//tanh: at any depth in it
    /scan[1]/dot_general   / at the beginning: from the top;  [1]: the second of those in one block
    input[1]               an input of the type that input 1 of the start has

A candidate is kept if each pattern still matches something. Names follow the printed program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from reducer.errors import InputError
from reducer.ir.equations import Block, Checkpoint, Equation, Name, Op, Program
from reducer.ir.policies import names_of
from reducer.ir.types import Type
from reducer.ir.walk import children

_STEP = re.compile(r"(?P<word>[A-Za-z_][\w.-]*)(=(?P<value>[^/\[\]]+))?(\[(?P<index>\d{1,6})\])?")
_HINT = "such as dot_general, name=h, scan[0]/checkpoint or input[1]"


class _Step(msgspec.Struct, frozen=True):
    """One part of a pattern. `deep`: at any depth below the part before it, not only directly in it."""

    word: str
    value: str | None
    index: int | None
    deep: bool


def keeps(patterns: Sequence[str], start: Program) -> Callable[[Program], bool]:
    """Whether a program has all that `patterns` name.

    Raises:
        InputError: one cannot be read, or names nothing in the start.
    """
    checks = [_check(pattern, start) for pattern in patterns]
    return lambda program: all(check(program) for check in checks)


def _check(pattern: str, start: Program) -> Callable[[Program], bool]:
    steps = parse(pattern)
    if steps[0].word == "input":
        return _input(pattern, steps, start)

    def found(program: Program) -> bool:
        return _matches(program.block, steps)

    if not found(start):
        raise InputError(f"--keep {pattern}: names nothing in the start", hint=_nearest(start))
    return found


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


def _input(pattern: str, steps: Sequence[_Step], start: Program) -> Callable[[Program], bool]:
    step = steps[0]
    params = start.block.params
    if len(steps) > 1 or step.index is None or step.value is not None:
        raise InputError(f"--keep {pattern!r} cannot be read", hint="an input is named input[0], input[1], ...")
    if step.index >= len(params):
        raise InputError(f"--keep {pattern}: the start has {len(params)} inputs", hint="the first is input[0]")
    wanted: Type = params[step.index].type
    return lambda program: any(var.type == wanted for var in program.block.params)


_WORDS: Final = {
    "fill": "full",
    "call": "jit",
    "transfer": "device_put",
    "custom-vjp": "custom_vjp_call",
    "custom-jvp": "custom_jvp_call",
    "shard-map": "shard_map",
    "sharding-constraint": "sharding_constraint",
}


def word_of(eqn: Equation) -> str:
    """What an equation is called where it is printed."""
    if isinstance(eqn, Op):
        return eqn.primitive
    tag = str(type(eqn).__struct_config__.tag)
    return _WORDS.get(tag, tag)


def _is(eqn: Equation, step: _Step) -> bool:
    if step.word == "policy":
        return isinstance(eqn, Checkpoint) and step.value in names_of(eqn.policy)
    if step.word != word_of(eqn):
        return False
    return step.value is None or (isinstance(eqn, Name) and eqn.name == step.value)


def _matches(block: Block, steps: Sequence[_Step]) -> bool:
    """Whether the pattern matches from this block on."""
    step, rest = steps[0], steps[1:]
    here = [eqn for eqn in block.eqns if _is(eqn, step)]
    if step.index is not None:
        here = here[step.index : step.index + 1]
    if any(not rest or _below(eqn, rest) for eqn in here):
        return True
    return step.deep and any(_matches(inner, steps) for eqn in block.eqns for _, inner in children(eqn))


def _below(eqn: Equation, steps: Sequence[_Step]) -> bool:
    return any(_matches(inner, steps) for _, inner in children(eqn))


def _nearest(start: Program) -> str:
    words = sorted({word_of(eqn) for eqn in _all(start.block)})
    return f"there are {', '.join(words)}" if words else "it has no equations"


def _all(block: Block) -> Iterator[Equation]:
    for eqn in block.eqns:
        yield eqn
        for _, inner in children(eqn):
            yield from _all(inner)
