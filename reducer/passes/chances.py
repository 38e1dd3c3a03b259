"""How often candidates of each pass are accepted: written by `benchmarks/chances.py`, over the starts of the benchmark.

A reduction supposes it before it has seen anything. It decides what is asked early or skipped over, and so how long a
reduction takes; never what is accepted. "" is any pass.
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
    "bypass-equations": Chances(0.27, 0.5, 0.29),
    "coupled-edits": Chances(0.03, 0.58, 0.01),
    "cut-values": Chances(0.06, 0.42, 0.05),
    "delete-equations": Chances(0.14, 0.54, 0.24),
    "drop-all-axes": Chances(0.68, 0.58, 0.35),
    "drop-axes": Chances(0.29, 0.85, 0.62),
    "drop-inputs": Chances(0.6, 0.88, 0.39),
    "drop-results": Chances(0.66, 0.67, 0.13),
    "freeze-carries": Chances(0.17, 0.73, 0.14),
    "hoist-equations": Chances(0.05, 0.24, 0.24),
    "host-values": Chances(0.21, 0.29, 0.17),
    "inputs-for-values": Chances(0.02, 0.23, 0.13),
    "keep-one": Chances(0.07, 0.58, 0.29),
    "other-results": Chances(0.44, 0.58, 0.09),
    "plain-layers": Chances(0.44, 0.39, 0.5),
    "reset-flags": Chances(0.34, 0.62, 0.56),
    "reuse-values": Chances(0.01, 0.47, 0.02),
    "shorten-loops": Chances(0.5, 0.58, 0.13),
    "shrink-all-dimensions": Chances(0.22, 0.82, 0.22),
    "shrink-dimensions": Chances(0.21, 0.68, 0.21),
    "shrink-to-tiles": Chances(0.68, 0.86, 0.04),
    "simplify-entries": Chances(0.12, 0.58, 0.18),
    "simplify-gradient": Chances(0.83, 0.9, 0.42),
    "simplify-mesh": Chances(0.1, 0.58, 0.05),
    "simplify-operations": Chances(0.08, 0.58, 0.29),
    "simplify-policies": Chances(0.83, 0.58, 0.13),
    "simplify-scalars": Chances(0.4, 0.58, 0.13),
    "slices-to-constants": Chances(0.5, 0.58, 0.13),
    "swap-regions": Chances(0.3, 0.58, 0.13),
    "sweep": Chances(0.02, 0.56, 0.03),
    "unify-dtypes": Chances(0.45, 0.58, 0.31),
    "unwrap-regions": Chances(0.09, 0.28, 0.25),
    "unwrap-small-regions": Chances(0.01, 0.58, 0.01),
    "windows": Chances(0.03, 0.58, 0.01),
    "": Chances(0.25, 0.58, 0.13),
}
