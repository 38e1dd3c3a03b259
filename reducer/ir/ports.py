"""Ports of regions: one argument or result of a region in all its guises.

A port has a role (`carry`, `xs`, ...) and a number within it. What stands for it outside, inside each block, and after
the region is listed here once, so that whatever reorders or compares regions need not know their kinds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reducer.ir.equations import Arg, Call, Checkpoint, Cond, Equation, Scan, ShardMap, While
from reducer.ir.walk import children


def is_region(eqn: Equation) -> bool:
    """True for equations whose arguments have roles, not places; custom rules keep their order."""
    return isinstance(eqn, Scan | While | Cond | Checkpoint | Call | ShardMap)


def ports_of(eqn: Equation) -> Iterable[tuple[str, int, object]]:
    """Role, number and own properties of each port of a region."""
    match eqn:
        case Scan(consts=consts, carry=carry, xs=xs, outs=outs):
            sizes = {"consts": len(consts), "carry": len(carry), "xs": len(xs), "ys": len(outs) - len(carry)}
        case While(cond_consts=cc, body_consts=bc, carry=carry):
            sizes = {"cond_consts": len(cc), "body_consts": len(bc), "carry": len(carry)}
        case ShardMap(in_specs=ins, out_specs=outs):
            yield from (("args", k, spec) for k, spec in enumerate(ins))
            yield from (("outs", k, spec) for k, spec in enumerate(outs))
            return
        case Cond(args=args) | Checkpoint(args=args) | Call(args=args):
            sizes = {"args": len(args), "outs": len(eqn.outs)}
        case _:
            raise AssertionError(f"not a region: {eqn}")
    for role, n in sizes.items():
        yield from ((role, k, None) for k in range(n))


def _numbered(**roles: tuple[Any, ...]) -> Iterable[tuple[str, int, Any]]:
    for role, items in roles.items():
        yield from ((role, k, item) for k, item in enumerate(items))


def outside(eqn: Equation) -> Iterable[tuple[str, int, Arg]]:
    """The value that enters each port of a region."""
    match eqn:
        case Scan(consts=consts, carry=carry, xs=xs):
            return _numbered(consts=consts, carry=carry, xs=xs)
        case While(cond_consts=cc, body_consts=bc, carry=carry):
            return _numbered(cond_consts=cc, body_consts=bc, carry=carry)
        case Cond(args=args) | Checkpoint(args=args) | Call(args=args) | ShardMap(args=args):
            return _numbered(args=args)
        case _:
            raise AssertionError(f"not a region: {eqn}")


def inside(eqn: Equation) -> Iterable[tuple[str, int, str, int]]:
    """The parameter that stands for each port in each block of a region."""
    for field, block in children(eqn):
        ids = tuple(var.id for var in block.params)
        match eqn:
            case Scan(consts=consts, carry=carry):
                n, m = len(consts), len(consts) + len(carry)
                parts = _numbered(consts=ids[:n], carry=ids[n:m], xs=ids[m:])
            case While(cond_consts=cc, body_consts=bc):
                n = len(cc if field == "cond" else bc)
                parts = _numbered(**{f"{field}_consts": ids[:n]}, carry=ids[n:])
            case _:
                parts = _numbered(args=ids)
        yield from ((role, k, field, i) for role, k, i in parts)


def results_of(eqn: Equation) -> Iterable[tuple[str, int, int]]:
    """The variable that each port of a region binds."""
    ids = tuple(var.id for var in eqn.outs)
    match eqn:
        case Scan(carry=carry):
            return _numbered(carry=ids[: len(carry)], ys=ids[len(carry) :])
        case While():
            return _numbered(carry=ids)
        case _:
            return _numbered(outs=ids)


def returned(eqn: Equation) -> Iterable[tuple[str, int, str, Arg]]:
    """What each block of a region returns for each port."""
    for field, block in children(eqn):
        match eqn:
            case Scan(carry=carry):
                parts = _numbered(carry=block.results[: len(carry)], ys=block.results[len(carry) :])
            case While():
                parts = _numbered(carry=block.results) if field == "body" else ()
            case _:
                parts = _numbered(outs=block.results)
        yield from ((role, k, field, arg) for role, k, arg in parts)


__all__ = ["inside", "is_region", "outside", "ports_of", "results_of", "returned"]
