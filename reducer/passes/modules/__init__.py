"""Passes for StableHLO modules, as data. The contract is that of `reducer.passes`."""

from __future__ import annotations

from typing import Final

from reducer.passes.base import Pass
from reducer.passes.modules.attributes import drop_attributes, one_device, simplify_mesh, unify_dtypes
from reducer.passes.modules.regions import freeze_carries, shorten_loops, unwrap_all
from reducer.passes.modules.relevance import keep_near, keep_one_loop, keep_one_result
from reducer.passes.modules.shapes import merge_shaping, shrink_all_sizes, shrink_sizes
from reducer.passes.modules.values import bypass_operations, cut_operations, cut_to_zeros, drop_placements, drop_results
from reducer.stablehlo.model import Module

_TIER: Final = ("stablehlo",)

#: In the order they are tried: what can remove most for the fewest compiles comes first.
MODULE_PASSES: Final[tuple[Pass[Module], ...]] = (
    Pass("keep-near", "keep what is near host memory", keep_near, 5, "1", _TIER, one_shot=True),
    Pass("keep-one-result", "keep one result and what it needs", keep_one_result, 5, "1", _TIER),
    Pass("drop-placements", "leave values where they are", drop_placements, 4, "log", _TIER),
    Pass("bypass-operations", "replace results by operands", bypass_operations, 4, "log", _TIER),
    Pass("keep-one-loop", "keep one loop and nothing around it", keep_one_loop, 5, "log", _TIER, one_shot=True),
    Pass("one-device", "use one device", one_device, 3, "1", _TIER),
    Pass("shrink-all-sizes", "make many sizes 1 at once", shrink_all_sizes, 3, "log", _TIER),
    Pass("unify-dtypes", "make everything f32", unify_dtypes, 2, "1", _TIER),
    Pass("merge-shaping", "make two changes of a shape one", merge_shaping, 2, "linear", _TIER),
    Pass("cut-to-zeros", "cut operations off, zeros instead", cut_to_zeros, 2, "log", _TIER),
    Pass("cut-operations", "cut operations off, arguments instead", cut_operations, 5, "log", _TIER),
    Pass("drop-results", "drop results with what only they need", drop_results, 4, "log", _TIER),
    Pass("unwrap-regions", "replace loops by what they do once", unwrap_all, 4, "log", _TIER),
    Pass("freeze-carries", "keep carries as they are at first", freeze_carries, 3, "log", _TIER),
    Pass("shorten-loops", "make loops turn once or twice", shorten_loops, 3, "linear", _TIER),
    Pass("drop-attributes", "drop attributes, shardings and donation", drop_attributes, 2, "log", _TIER),
    Pass("simplify-mesh", "drop axes that nothing is split along", simplify_mesh, 1, "1", _TIER),
    Pass("shrink-sizes", "lower one size wherever it flows", shrink_sizes, 1, "linear", _TIER),
)

__all__ = ["MODULE_PASSES"]
