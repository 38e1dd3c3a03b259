"""Checkpoint policies as data: what `jax.checkpoint` saves, offloads, or recomputes.

Each class names the member of `jax.checkpoint_policies` it stands for. `None` in a Checkpoint equation means no
policy: recompute everything. A user's own callable has no class here: capture records its decisions and writes them
down as names (`checkpoint_name` on each value it keeps, and a policy on these names), which every pass understands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

PlainName = Literal["everything_saveable", "nothing_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable"]


class _Policy(msgspec.Struct, frozen=True, tag_field="policy", omit_defaults=True):
    """Base of the policy classes; carries the tag."""


class Plain(_Policy, frozen=True, tag="plain"):
    """A policy without parameters, by its name in `jax.checkpoint_policies`."""

    name: PlainName


class SaveNames(_Policy, frozen=True, tag="save-names"):
    """`save_only_these_names`: keep the named values on the device."""

    names: tuple[str, ...]


class SaveAllBut(_Policy, frozen=True, tag="save-all-but"):
    """`save_anything_except_these_names`: keep everything but the named values."""

    names: tuple[str, ...]


class SaveNamesBut(_Policy, frozen=True, tag="save-names-but"):
    """`save_any_names_but_these`: keep every named value but these."""

    names: tuple[str, ...]


class OffloadNames(_Policy, frozen=True, tag="offload-names"):
    """`save_and_offload_only_these_names`: move some named values to host memory, keep others on the device."""

    offloaded: tuple[str, ...]
    saved: tuple[str, ...] = ()
    src: str = "device"
    dst: str = "pinned_host"


class OffloadDots(_Policy, frozen=True, tag="offload-dots"):
    """`offload_dot_with_no_batch_dims`: move the results of plain matrix products to host memory."""

    src: str = "device"
    dst: str = "pinned_host"


class Both(_Policy, frozen=True, tag="both"):
    """`save_from_both_policies`: keep what either of two policies keeps."""

    first: Policy
    second: Policy


Policy = Plain | SaveNames | SaveAllBut | SaveNamesBut | OffloadNames | OffloadDots | Both


def names_of(policy: Policy | None) -> tuple[str, ...]:
    """Every name a policy mentions, in the order it mentions them."""
    match policy:
        case OffloadNames(offloaded=offloaded, saved=saved):
            return offloaded + saved
        case SaveNames(names=names) | SaveAllBut(names=names) | SaveNamesBut(names=names):
            return names
        case Both(first=first, second=second):
            return names_of(first) + names_of(second)
        case _:
            return ()


def offloads(policy: Policy | None) -> bool:
    """True if the policy can move a value to host memory."""
    match policy:
        case OffloadNames(offloaded=offloaded):
            return bool(offloaded)
        case OffloadDots():
            return True
        case Both(first=first, second=second):
            return offloads(first) or offloads(second)
        case _:
            return False


def map_names(policy: Policy, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Policy:
    """The policy with `change` applied to each of its tuples of names; what is then offloaded is not saved too."""
    match policy:
        case OffloadNames(offloaded=offloaded, saved=saved):
            moved = change(offloaded)
            kept = tuple(name for name in change(saved) if name not in moved)
            return msgspec.structs.replace(policy, offloaded=moved, saved=kept)
        case SaveNames(names=names) | SaveAllBut(names=names) | SaveNamesBut(names=names):
            return msgspec.structs.replace(policy, names=change(names))
        case Both(first=first, second=second):
            return Both(map_names(first, change), map_names(second, change))
        case _:
            return policy


def rename(policy: Policy, renaming: dict[str, str]) -> Policy:
    """The policy with names replaced; a name that is not in `renaming` stays, a name met twice is kept once."""
    return map_names(policy, lambda names: tuple(dict.fromkeys(renaming.get(name, name) for name in names)))
