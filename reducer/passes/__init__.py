"""Passes: what can be made smaller about a program, as data.

The contract of a pass
----------------------
A pass is a plain function. Given a program in normal form it proposes smaller ones, in one of three ways:

- an iterable of *candidates*, each a function without arguments that builds one program. The driver tries them in
  order; after a success it calls the pass on the new program and goes on at the same position;
- `Edits`: a number of independent edits, any subset of which can be made together. The driver finds out by group
  testing which can be; the pass only puts first what is likeliest to succeed;
- `Numbers`, each of which may be lowered; the driver looks for the least that works.

A pass proposes, the driver disposes. A pass does not know how many workers there are, what was tried before, or what
a failure is; it reads no file and keeps no state. It has no inner fixpoint (it is called again after progress), does
not chunk, and does not look whether a proposal is really smaller: the driver compares by the one order.

It is deterministic, and it proposes the same on the same program: no progress now means none on an immediate rerun,
so the driver never runs it twice on one program. Special minima come first: a value may go altogether before it is
made smaller, a size is tried as 1 before it is halved. A pass whose proposals nearly always succeed is too timid.

Proposals are well-typed by construction. Where a value goes, its uses get another one of its type (`reducer.ir.edit`);
where a size changes it changes wherever it flows (`reducer.ir.dims`). A candidate that cannot be built so raises
`ProgramError` and is counted as invalid; few do. Proposals are not in normal form and may hold dead code.

A program stays one that somebody could run: loops keep their counters and terminate, no scalar divisor becomes zero.
"""

from __future__ import annotations

from typing import Final

from reducer.ir.equations import Program
from reducer.passes.base import Candidate, Edits, Level, Numbers, Pass, Proposal
from reducer.passes.coupled import coupled_edits
from reducer.passes.dtypes import unify_dtypes
from reducer.passes.flags import drop_attributes, reset_flags, simplify_entries, simplify_mesh
from reducer.passes.hoist import hoist_equations
from reducer.passes.layers import inputs_for_values, plain_layers, swap_regions
from reducer.passes.policies import drop_unattached_names, merge_names, simplify_policies
from reducer.passes.ports import (
    drop_program_inputs,
    drop_results,
    freeze_carries,
    other_results,
    simplify_gradient,
    slices_to_constants,
    stack_carries,
)
from reducer.passes.shapes import (
    drop_all_axes,
    drop_axes,
    shorten_loops,
    shrink_all_dimensions,
    shrink_dimensions,
    shrink_large_dimensions,
    shrink_to_tiles,
)
from reducer.passes.simplify import bypass_equations, simplify_operations, simplify_scalars
from reducer.passes.structure import delete_equations, drop_branches, host_values, keep_one, unwrap_regions
from reducer.passes.values import cut_values, fill_arguments, reuse_values
from reducer.passes.windows import windows

#: In the order they are tried: what can remove most for the fewest compiles comes first.
PASSES: Final[tuple[Pass[Program], ...]] = (
    Pass("keep-one", "keep one region of a large program and nothing around it", keep_one, 5, "log", one_shot=True),
    Pass("host-values", "keep one value in host memory and what computes it", host_values, 5, "linear", one_shot=True),
    Pass("plain-layers", "replace what a block computes by sin(name(x))", plain_layers, 5, "log"),
    Pass("delete-equations", "delete equations, repairing what used them", delete_equations, 5, "log"),
    Pass("drop-results", "drop results with what only they need", drop_results, 5, "log"),
    Pass("unwrap-regions", "replace regions by what is in them", unwrap_regions, 4, "log"),
    Pass("other-results", "replace a result by another value", other_results, 2, "linear"),
    Pass("shrink-all-dimensions", "make many dimensions 1 at once", shrink_all_dimensions, 3, "log", one_shot=True),
    Pass("shrink-large-dimensions", "make many large dimensions 1 at once", shrink_large_dimensions, 3, "log"),
    Pass("drop-all-axes", "drop all axes of size 1", drop_all_axes, 3, "1"),
    Pass("shorten-loops", "make all loops turn twice", shorten_loops, 3, "1"),
    Pass("drop-inputs", "drop inputs", drop_program_inputs, 3, "log"),
    Pass("bypass-equations", "replace a result by an argument", bypass_equations, 2, "linear"),
    Pass("simplify-operations", "replace operations by simpler ones", simplify_operations, 1, "linear"),
    Pass("unify-dtypes", "make everything float32", unify_dtypes, 2, "1"),
    Pass("freeze-carries", "turn carries into constants", freeze_carries, 4, "log"),
    Pass("slices-to-constants", "give what a loop slices as a constant", slices_to_constants, 2, "linear"),
    Pass("cut-values", "replace values by zeros", cut_values, 4, "log"),
    Pass("inputs-for-values", "replace values by new inputs", inputs_for_values, 2, "linear"),
    Pass("simplify-gradient", "differentiate less", simplify_gradient, 2, "linear"),
    Pass("shrink-dimensions", "shrink one dimension wherever it flows", shrink_dimensions, 1, "linear"),
    Pass("drop-axes", "drop one axis of size 1 wherever it flows", drop_axes, 1, "linear"),
    Pass("drop-branches", "drop branches of conds", drop_branches, 2, "linear"),
    Pass("simplify-policies", "simplify checkpoint policies", simplify_policies, 2, "linear"),
    Pass("merge-names", "make two names one", merge_names, 1, "square"),
    Pass("drop-names", "drop names that nothing has from policies", drop_unattached_names, 1, "1"),
    Pass("reset-flags", "put flags and metadata back to defaults", reset_flags, 2, "log"),
    Pass("swap-regions", "exchange scans and checkpoints", swap_regions, 1, "linear"),
    Pass("drop-attributes", "drop optional attributes", drop_attributes, 1, "linear"),
    Pass("simplify-mesh", "use fewer devices", simplify_mesh, 2, "linear"),
    Pass("simplify-entries", "drop shardings and donation", simplify_entries, 1, "linear"),
    Pass("shrink-to-tiles", "shrink one dimension to a multiple of the tile", shrink_to_tiles, 1, "linear"),
    Pass("simplify-scalars", "make scalars 0 or 1", simplify_scalars, 1, "linear"),
    Pass("reuse-values", "replace a value by an earlier one", reuse_values, 1, "square"),
    Pass("fill-arguments", "replace scalar arguments by earlier values", fill_arguments, 1, "square"),
    # After the regions have found their places: a pair of regions with something between them cannot be exchanged.
    Pass("hoist-equations", "move equations out of regions", hoist_equations, 1, "linear"),
    Pass("windows", "delete and unwrap several equations at once", windows, 2, "square", late=True),
    Pass("stack-carries", "return what every turn makes of a carry", stack_carries, 1, "linear", late=True),
    Pass("coupled-edits", "take something away and make up for it", coupled_edits, 2, "square", late=True),
)

__all__ = ["PASSES", "Candidate", "Edits", "Level", "Numbers", "Pass", "Proposal"]
