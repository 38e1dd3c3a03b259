"""A remat policy, which to JAX is a callable, -> the data it was made from.

JAX's own policy factories return closures or small objects; what they were called with stands in the closure's
variables or the object's fields. Policies without parameters are recognised by identity.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, cast, get_args

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

#: Some versions make these policies as objects of a class, with the names in a field.
_CLASSES: Final = {
    "SaveOnlyTheseNames": ("save_only_these_names", "saveable_names", "names_which_can_be_saved"),
    "SaveAnyNamesButThese": ("save_any_names_but_these", "names", "names_not_to_save"),
}


def recover(policy: Callable[..., Any]) -> Policy | None:
    """The data behind one of JAX's policies, or None if it is a callable of the user's own."""
    import jax

    for name in get_args(PlainName):
        if policy is getattr(jax.checkpoint_policies, name, None):
            return Plain(cast(PlainName, name))
    if not (getattr(policy, "__module__", None) or "").startswith("jax."):
        return None
    kind = type(policy).__name__
    if kind in _CLASSES:
        factory, field, parameter = _CLASSES[kind]
        return _made_by(factory, {parameter: getattr(policy, field)})
    if inspect.isfunction(policy):
        return _made_by(policy.__qualname__.split(".")[0], inspect.getclosurevars(policy).nonlocals)
    return None


def _made_by(factory: str, made_with: Mapping[str, Any]) -> Policy | None:
    def names(parameter: str) -> tuple[str, ...]:
        # The factories keep sets: sorted, so that two captures agree.
        return tuple(sorted(made_with[parameter]))

    match factory:
        case "save_only_these_names":
            return SaveNames(names("names_which_can_be_saved"))
        case "save_anything_except_these_names" if "names_not_to_save" in made_with:
            return SaveAllBut(names("names_not_to_save"))
        case "save_anything_except_these_names":
            return Plain("everything_saveable")  # this version ignores the names
        case "save_any_names_but_these":
            return SaveNamesBut(names("names_not_to_save"))
        case "save_and_offload_only_these_names":
            offloaded, saved = names("names_which_can_be_offloaded"), names("names_which_can_be_saved")
            return OffloadNames(offloaded, saved, str(made_with["offload_src"]), str(made_with["offload_dst"]))
        case "offload_dot_with_no_batch_dims":
            return OffloadDots(str(made_with["offload_src"]), str(made_with["offload_dst"]))
        case "save_from_both_policies":
            first, second = recover(made_with["policy_1"]), recover(made_with["policy_2"])
            return Both(first, second) if first is not None and second is not None else None
        case _:
            return None
