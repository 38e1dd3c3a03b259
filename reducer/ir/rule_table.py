"""The table of type rules, and what rules are written with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from reducer.errors import ProgramError
from reducer.ir.types import Type

Attributes = dict[str, Any]
#: (argument types, attributes, recorded result types) -> result types. Raises ProgramError.
Rule = Callable[[tuple[Type, ...], Attributes, tuple[Type, ...]], tuple[Type, ...]]

RULES: Final[dict[str, Rule]] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Enter the decorated rule into the table under these names."""

    def register(rule: Rule) -> Rule:
        for name in names:
            RULES[name] = rule
        return rule

    return register


def one(recorded: tuple[Type, ...]) -> Type:
    """The type of an equation that has one result."""
    need(len(recorded) == 1, f"has one result, got {len(recorded)}")
    return recorded[0]


def need(condition: bool, message: str) -> None:
    """Raise ProgramError with `message` unless `condition` holds."""
    if not condition:
        raise ProgramError(message)


def arity(args: tuple[Type, ...], n: int) -> None:
    """Raise ProgramError unless there are `n` arguments."""
    need(len(args) == n, f"takes {n} arguments, got {len(args)}")


def broadcast(args: tuple[Type, ...]) -> tuple[int, ...]:
    """Common shape of elementwise arguments: equal ranks with axes of size 1 stretched; scalars fit anything.

    Raises:
        ProgramError: the shapes do not fit.
    """
    shapes = [a.shape for a in args if a.shape]
    if not shapes:
        return ()
    need(len({len(s) for s in shapes}) == 1, f"ranks differ: {', '.join(map(str, args))}")
    out = []
    for sizes in zip(*shapes, strict=True):
        wide = {n for n in sizes if n != 1}
        need(len(wide) <= 1, f"shapes do not fit: {', '.join(map(str, args))}")
        out.append(wide.pop() if wide else 1)
    return tuple(out)
