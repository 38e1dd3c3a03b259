"""Checkpoint policies, public strategy and the draw the planners use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

from reducer.ir.policies import (
    Both,
    OffloadDots,
    OffloadNames,
    Plain,
    Policy,
    SaveAllBut,
    SaveNames,
    SaveNamesBut,
)
from strategies._source import Draw, Source, often

_OFFLOADING: Final = often(all=6, last=2, first=2, split=2, dots=2)
_OFFLOADING_NAMES: Final = tuple(kind for kind in _OFFLOADING if kind != "dots")
_KEEPING: Final = often(none=3, names=3, nothing=1, everything=1, dots=2, plain_dots=1, all_but=1, names_but=1, both=1)


def offloading(source: Source, names: Sequence[str], *, dots: bool = True) -> Policy:
    """A policy that can move a value to the host: named values if there are any names, or plain dots."""
    kind = source.pick(_OFFLOADING if dots else _OFFLOADING_NAMES) if names else "dots"
    match kind:
        case "all":
            return OffloadNames(tuple(names))
        case "first":
            return OffloadNames((names[0],))
        case "last":
            return OffloadNames((names[-1],))
        case "split":
            return OffloadNames((names[0],), tuple(names[1:]))
        case _:
            return OffloadDots()


def keeping(source: Source, names: Sequence[str]) -> Policy | None:
    """A policy that moves nothing: saves on the device, or recomputes. None is JAX's default, recompute all."""
    match source.pick(_KEEPING):
        case "names":
            return SaveNames(tuple(names))
        case "nothing":
            return Plain("nothing_saveable")
        case "everything":
            return Plain("everything_saveable")
        case "dots":
            return Plain("dots_saveable")
        case "plain_dots":
            return Plain("dots_with_no_batch_dims_saveable")
        case "all_but":
            return SaveAllBut(tuple(names))
        case "names_but":
            return SaveNamesBut(tuple(names[:1]))
        case "both":
            # JAX refuses `save_from_both_policies` of an offloading policy, so both sides only save.
            return Both(SaveNames(tuple(names)), Plain("dots_saveable"))
        case _:
            return None


def policies(*, names: Sequence[str] = ("h", "g"), offload_only: bool = False) -> st.SearchStrategy[Policy | None]:
    """A checkpoint policy about the given names; with `offload_only` one that moves something to the host.

    None stands for no policy, which recomputes everything. Every policy drawn is one JAX accepts.
    """

    @st.composite
    def policy(draw: Draw) -> Policy | None:
        source = Source(draw)
        if offload_only or source.chance(2):
            return offloading(source, names)
        return keeping(source, names)

    return policy()
