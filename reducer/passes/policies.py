"""Passes on checkpoint policies and the names they refer to."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec

from reducer.ir.equations import Block, Checkpoint, Name, Program
from reducer.ir.policies import (
    Both,
    OffloadDots,
    OffloadNames,
    Plain,
    Policy,
    SaveAllBut,
    SaveNames,
    SaveNamesBut,
    names_of,
)
from reducer.ir.walk import equations, map_blocks
from reducer.ir.whole import with_names
from reducer.passes.base import Candidate
from reducer.passes.tools import changed


def simpler(policy: Policy | None) -> Iterator[Policy | None]:
    """Simpler policies in the place of one, the simplest first."""
    if policy is None:
        return
    yield None
    if not isinstance(policy, Plain):
        yield Plain("nothing_saveable")
        yield Plain("everything_saveable")
    match policy:
        case Both(first=first, second=second):
            yield first
            yield second
            yield from (Both(one, second) for one in simpler(first) if one is not None)
            yield from (Both(first, one) for one in simpler(second) if one is not None)
        case OffloadNames(offloaded=offloaded, saved=saved):
            if saved:
                yield msgspec.structs.replace(policy, saved=())
            if len(offloaded) > 1:
                yield from (msgspec.structs.replace(policy, offloaded=(name,)) for name in offloaded)
            yield SaveNames(offloaded + saved)
            for k in range(len(offloaded)):
                yield msgspec.structs.replace(policy, offloaded=offloaded[:k] + offloaded[k + 1 :])
            for k in range(len(saved)):
                yield msgspec.structs.replace(policy, saved=saved[:k] + saved[k + 1 :])
            yield from _usual(policy)
        case OffloadDots():
            yield from _usual(policy)
        case SaveNames(names=names) | SaveAllBut(names=names) | SaveNamesBut(names=names):
            for k in range(len(names)):
                yield msgspec.structs.replace(policy, names=names[:k] + names[k + 1 :])
        case _:
            pass


def _usual(policy: OffloadNames | OffloadDots) -> Iterator[Policy]:
    if (policy.src, policy.dst) != ("device", "pinned_host"):
        yield msgspec.structs.replace(policy, src="device", dst="pinned_host")


def simplify_policies(program: Program) -> Iterator[Candidate[Program]]:
    """One checkpoint's policy simplified: none, a plain one, one half of a combined one, fewer names."""
    for path, i, eqn in equations(program):
        if isinstance(eqn, Checkpoint):
            for policy in simpler(eqn.policy):
                yield partial(changed, program, path, i, policy=policy)


def all_names(program: Program) -> tuple[str, ...]:
    """Every name the program attaches or a policy mentions, in order of occurrence."""
    names: dict[str, None] = {}
    for _, _, eqn in equations(program):
        if isinstance(eqn, Name):
            names[eqn.name] = None
        elif isinstance(eqn, Checkpoint):
            names.update(dict.fromkeys(names_of(eqn.policy)))
    return tuple(names)


def merge_names(program: Program) -> Iterator[Candidate[Program]]:
    """Two names made one."""
    names = all_names(program)
    for k, later in enumerate(names):
        for earlier in names[:k]:
            yield partial(with_names, program, {later: earlier})


def drop_unattached_names(program: Program) -> Iterator[Candidate[Program]]:
    """No policy mentions a name that nothing has."""
    attached = {eqn.name for _, _, eqn in equations(program) if isinstance(eqn, Name)}
    missing = frozenset(all_names(program)) - attached
    if missing:
        yield lambda: _without_names(program, missing)


def _without_names(program: Program, missing: frozenset[str]) -> Program:
    def without(policy: Policy | None) -> Policy | None:
        def kept(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(name for name in names if name not in missing)

        match policy:
            case OffloadNames(offloaded=offloaded, saved=saved):
                return msgspec.structs.replace(policy, offloaded=kept(offloaded), saved=kept(saved))
            case SaveNames(names=names) | SaveAllBut(names=names) | SaveNamesBut(names=names):
                return msgspec.structs.replace(policy, names=kept(names))
            case Both(first=first, second=second):
                one, two = without(first), without(second)
                assert one is not None
                assert two is not None
                return Both(one, two)
            case _:
                return policy

    def edit(block: Block) -> Block:
        eqns = tuple(
            msgspec.structs.replace(eqn, policy=without(eqn.policy)) if isinstance(eqn, Checkpoint) else eqn
            for eqn in block.eqns
        )
        return Block(block.params, eqns, block.results)

    return map_blocks(program, edit)
