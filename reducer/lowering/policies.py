"""Checkpoint policies as Python text."""

from __future__ import annotations

from typing import Final, get_args

from reducer.errors import ProgramError
from reducer.ir.policies import (
    Both,
    OffloadDots,
    OffloadNames,
    Plain,
    PlainName,
    Policy,
    SaveAllBut,
    SaveNames,
    SaveNamesBut,
)
from reducer.lowering.texts import quote

_MODULE: Final = "jax.checkpoint_policies"
_PLAIN: Final = frozenset(get_args(PlainName))


def policy_text(policy: Policy) -> str:
    """The expression that builds a policy.

    Raises:
        ProgramError: not one of the known policies.
    """
    match policy:
        case Plain(name=name) if name in _PLAIN:
            return f"{_MODULE}.{name}"
        case SaveNames(names=names):
            return f"{_MODULE}.save_only_these_names({_names(names)})"
        case SaveAllBut(names=names):
            return f"{_MODULE}.save_anything_except_these_names({_names(names)})"
        case SaveNamesBut(names=names):
            return f"{_MODULE}.save_any_names_but_these({_names(names)})"
        case OffloadNames(offloaded=offloaded, saved=saved, src=src, dst=dst):
            return (
                f"{_MODULE}.save_and_offload_only_these_names(\n"
                f"    names_which_can_be_saved=[{_names(saved)}],\n"
                f"    names_which_can_be_offloaded=[{_names(offloaded)}],\n"
                f"    offload_src={quote(src)},\n"
                f"    offload_dst={quote(dst)},\n"
                ")"
            )
        case OffloadDots(src=src, dst=dst):
            return f"{_MODULE}.offload_dot_with_no_batch_dims(offload_src={quote(src)}, offload_dst={quote(dst)})"
        case Both(first=first, second=second):
            return f"{_MODULE}.save_from_both_policies(\n{policy_text(first)},\n{policy_text(second)},\n)"
        case _:
            raise ProgramError(f"unknown policy {policy!r}", hint="reducer/ir/policies.py lists the known ones")


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(quote, names))
