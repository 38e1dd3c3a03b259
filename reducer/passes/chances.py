"""How often candidates of each pass are accepted: written by `benchmarks/chances.py`, over the starts of the benchmark.

A reduction supposes it before it has seen anything. It decides what is asked early or skipped over: how long the
reduction takes, and at which of several minima it ends. Whatever is accepted was asked about all the same. "" is any
pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeVar

from reducer.passes.base import Chances, Pass

C = TypeVar("C")


def with_chances(one: Pass[C]) -> Pass[C]:
    """The pass with what is known of it."""
    return replace(one, chances=CHANCES.get(one.name, CHANCES[""]))


CHANCES: Final[Mapping[str, Chances]] = {
    "bypass-equations": Chances(0.13, 0.01, 0.47, 0.25),
    "coupled-edits": Chances(0.03, 0.03, 0.45, 0.01),
    "cut-values": Chances(0.1, 0.01, 0.39, 0.04),
    "delete-equations": Chances(0.26, 0.01, 0.52, 0.23),
    "drop-all-axes": Chances(0.41, 0.02, 0.45, 0.26),
    "drop-axes": Chances(0.54, 0.01, 0.36, 0.16),
    "drop-inputs": Chances(0.76, 0.54, 0.35, 0.51),
    "drop-results": Chances(0.59, 0.03, 0.45, 0.43),
    "freeze-carries": Chances(0.27, 0.01, 0.68, 0.16),
    "hoist-equations": Chances(0.08, 0.08, 0.18, 0.22),
    "host-values": Chances(0.21, 0.03, 0.22, 0.17),
    "inputs-for-values": Chances(0.04, 0.01, 0.18, 0.1),
    "keep-one": Chances(0.07, 0.03, 0.45, 0.29),
    "other-results": Chances(0.25, 0.04, 0.45, 0.16),
    "plain-layers": Chances(0.5, 0.21, 0.3, 0.64),
    "reset-flags": Chances(0.83, 0.01, 0.1, 0.19),
    "reuse-values": Chances(0.02, 0.01, 0.25, 0.04),
    "shorten-loops": Chances(0.49, 0.01, 0.3, 0.37),
    "shrink-all-dimensions": Chances(0.81, 0.03, 0.63, 0.29),
    "shrink-dimensions": Chances(0.22, 0.01, 0.57, 0.24),
    "shrink-large-dimensions": Chances(0.09, 0.01, 0.45, 0.02),
    "shrink-to-tiles": Chances(0.16, 0.02, 0.45, 0.04),
    "simplify-entries": Chances(0.19, 0.02, 0.45, 0.16),
    "simplify-gradient": Chances(0.23, 0.02, 0.45, 0.85),
    "simplify-mesh": Chances(0.14, 0.02, 0.45, 0.05),
    "simplify-operations": Chances(0.12, 0.01, 0.45, 0.27),
    "simplify-policies": Chances(0.28, 0.03, 0.3, 0.32),
    "simplify-scalars": Chances(0.43, 0.03, 0.45, 0.15),
    "slices-to-constants": Chances(0.63, 0.01, 0.45, 0.15),
    "stack-carries": Chances(0.16, 0.03, 0.45, 0.15),
    "swap-regions": Chances(0.43, 0.01, 0.12, 0.15),
    "sweep": Chances(0.03, 0.01, 0.65, 0.01),
    "unify-dtypes": Chances(0.48, 0.02, 0.45, 0.32),
    "unwrap-regions": Chances(0.17, 0.01, 0.26, 0.22),
    "windows": Chances(0.03, 0.02, 0.45, 0.01),
    "": Chances(0.28, 0.03, 0.45, 0.15),
}
