"""Names a person might have chosen: by role first (x, w, c, h, key), by dtype then.

A nested function may reuse a name of the function around it, as hand-written code does, except the names it takes
from there: blocks are closed, so these are known before the function is written.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable
from typing import Final

from reducer.ir.equations import Block, Equation, Name, Op, Scan, Transfer
from reducer.ir.types import DTYPES, Type
from reducer.ir.walk import args_of
from reducer.lowering.texts import identifier

#: Names the text itself uses; no variable may hide them.
RESERVED: Final = frozenset(
    (
        *keyword.kwlist,
        *("jax", "jnp", "np", "lax", "checkpoint_name", "set_xla_metadata"),
        *("Mesh", "NamedSharding", "P", "SingleDeviceSharding", "TypeError", "complex", "map", "str"),
        *("program", "loss", "fn", "lower", "check", "varying", "device", "host", "mesh", "devices"),
    )
)

_POOLS: Final = {
    "f": ["y", "z", "u", "v", "a", "b", "d", "e", "g"],
    "c": ["y", "z", "u", "v", "a", "b", "d", "e", "g"],
    "i": ["i", "j", "k", "n", "m"],
    "b": ["p", "q"],
    "k": ["key"],
}

#: Names nobody gives an integer.
_INEXACT: Final = frozenset(("x", "w", "c", "y", "z"))

#: Unary functions whose result a person names after the function.
_CALLED: Final = {"dot_general": "y", "iota": "i", "argmax": "i", "argmin": "i", "reduce_sum": "s"}


class Scope:
    """The names of one Python function: those it defines, and those it may not hide."""

    def __init__(self, closed_over: Iterable[str] = (), policies: Iterable[str] = ()) -> None:
        self._used = {*RESERVED, *closed_over, *policies}
        self._numbered: dict[str, int] = {}

    def new(self, *hints: str) -> str:
        """The first hint that is free, or the last one numbered."""
        for hint in hints:
            if hint not in self._used:
                self._used.add(hint)
                return hint
        base = hints[-1]
        n = self._numbered.get(base, 1)
        while f"{base}{n}" in self._used:
            n += 1
        self._numbered[base] = n + 1
        self._used.add(f"{base}{n}")
        return f"{base}{n}"

    def variable(self, type_: Type, *hints: str) -> str:
        """A name for a value: a hint, or the next free letter of its kind, or a numbered one."""
        pool = _POOLS[DTYPES[type_.dtype][2]]
        last = {"f": "v", "c": "v", "b": "p", "k": "key"}.get(DTYPES[type_.dtype][2], "i")
        fitting = (h for h in hints if h and (type_.inexact or h not in _INEXACT))
        return self.new(*fitting, *pool, last)


def stem(name: str) -> str:
    """``w`` of ``w2``: what a copy of a value is called in another function."""
    return name.rstrip("0123456789") if name[-1:].isdigit() else name


def plural(name: str) -> str:
    """What a stack of values is called: ``hs`` of ``h``."""
    return f"{stem(name)}s"


def roles(block: Block) -> dict[int, str]:
    """Names for the parameters of a block by what is done with them; parameters that say nothing are absent."""
    found: dict[int, str] = {}
    for eqn in block.eqns:
        for arg, role in _roles(eqn):
            if isinstance(arg, int):
                found.setdefault(arg, role)
    return found


def _roles(eqn: Equation) -> list[tuple[object, str]]:
    match eqn:
        case Scan(carry=carry, xs=xs, consts=consts, body=body):
            inner = roles(body)
            n, m = len(consts), len(consts) + len(carry)
            named = [inner.get(p.id, "") for p in body.params]
            out: list[tuple[object, str]] = [(a, "x") for a in carry]
            out += [(a, role or "w") for a, role in zip(xs, named[m:], strict=False)]
            return out + [(a, role) for a, role in zip(consts, named[:n], strict=False) if role]
        case Op(primitive="dot_general", args=args) if len(args) == 2:
            return [(args[0], "x"), (args[1], "w")]
        case Op(primitive="random_bits", args=args):
            return [(args[0], "key")] if args else []
        case _:
            block = getattr(eqn, "body", None)
            if not isinstance(block, Block):
                return []
            inner = roles(block)
            # Constants of a while loop's condition come first; its body does not see them.
            args = args_of(eqn)
            pairs = zip(args[len(args) - len(block.params) :], block.params, strict=False)
            return [(a, inner[p.id]) for a, p in pairs if p.id in inner]


def hint(eqn: Equation) -> str:
    """A name for the one result of an equation, or ""."""
    match eqn:
        case Name(name=name):
            return identifier(name, "")
        case Transfer(memory="host"):
            return "h_host"
        case Op(primitive=primitive):
            return _CALLED.get(primitive, "")
        case _:
            return ""
