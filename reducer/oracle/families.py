"""Families: one bug under the words of several releases. Data, in order; the first that matches wins.

Each pattern is searched in ``file.cc:line invariant`` of a normalised signature (`invariant.normalise`), where every
number, name and shape is a mark already. A failure without an entry falls back to its first words.
"""

from __future__ import annotations

import re

FAMILY_FALLBACK_WORDS = 8

FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = (
    # An offloaded stack is written by an inner loop: the call's operand is on the device, its async shape on the host.
    # "The async-start expects ..." up to 0.0.43.2; "<name> (opcode: async-start) expects ..." from 0.0.46 on.
    ("async-start-mismatch", re.compile(r"expects the shape of operand # to match the async shape")),
    ("async-output-mismatch", re.compile(r"expects the shape of operand and output to match")),
    # The same stack with one element: the update became a bitcast. 0.0.40 and newer.
    ("bitcast-memory-space", re.compile(r"Bitcast cannot have different memory spaces")),
    # A copy between the memories that would change the layout too, as no DMA can. 0.0.36 and newer.
    (
        "copy-layout-to-host",
        re.compile(r"Expected instruction .* equal to \[\], actual shape is \[S\(5\)\], of another layout"),
    ),
    (
        "copy-layout-from-host",
        re.compile(r"Expected instruction .* equal to \[S\(5\)\], actual shape is \[\], of another layout"),
    ),
    # A value is on the host and its user was typed as if it were not. Told of a get-tuple-element up to 0.0.46, of a
    # tuple from 0.0.50 on.
    ("instruction-shape-mismatch", re.compile(r"Expected instruction to have shape equal to")),
    ("bitcast-majormost", re.compile(r"Only handling bitcasts with majormost dimension")),
    # A slice of a host array that is narrower than a sublane chunk, or than the packing of its dtype, is read. In
    # words of their own on every release tried; the packing from 0.0.42.1 on, the chunk up to 0.0.50.1.
    ("sublane-read-chunk", re.compile(r"ublane slic.* chunk sublane size.* \(read\)$")),
    ("sublane-read-packing", re.compile(r"ublane slic.* packing factor.* \(read\)$")),
    # Such a slice is written. A CHECK in async_dynamic_index_emitter.cc up to 0.0.36 and in async_slice_util.cc in
    # 0.0.42.1; INTERNAL "Sublane slicing size must be multiple of element packing factor" from 0.0.46 to 0.0.50.1;
    # UNIMPLEMENTED "Updating the sublane dimension ..." and "Sublane slicing with ..." in 0.0.52. One program's failure
    # is about the chunk, then the packing, then the chunk again, so the two are one family.
    (
        "sublane-slice",
        re.compile(r"^async_(?:dynamic_index_emitter|slice_util)\.cc|[Ss]ublane slic|(?:Updat|Slic)ing the sublane"),
    ),
    # A residual that is a scalar. "Lane slice updating is not supported" up to 0.0.42.1; "Slicing lane dimension is
    # only supported when" from 0.0.46 to 0.0.50.1; "Updating the lane dimension is only supported when" in 0.0.52.
    ("lane-slice", re.compile(r"[Ll]ane slice updating|(?:Updat|Slic)ing (?:the )?lane dimension")),
    # The slice of a host array has the tiling of the whole, too large for it. "valid , shape: ..." up to 0.0.50.1,
    # "layout does not match any allowed tile kind, shape: ..." in 0.0.52.
    ("slice-read-tile", re.compile(r"target\.cc.*shape: .*expected shape: .* \(read\)$")),
    ("slice-update-tile", re.compile(r"target\.cc.*shape: .*expected shape: ")),
    # A slice of a host array at an index that lives on the host. Up to 0.0.36.
    ("host-index", re.compile(r"^host_offload_utils\.cc.* Expecting instruction")),
    ("dma-between-same-memory", re.compile(r"Unimplemented DMA from \w+ to \w+")),
    # Of a program that returns nothing from host memory, else it is the program's own error.
    ("result-on-host", re.compile(r"layout for this output is not set to host memory")),
    ("host-value-in-while-condition", re.compile(r"moved to host is used by an invalid instruction")),
)
