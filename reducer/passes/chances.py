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
    "bypass-equations": Chances(0.42, 0.01, 0.53, 0.31),
    "coupled-edits": Chances(0.04, 0.03, 0.55, 0.01),
    "cut-values": Chances(0.11, 0.01, 0.41, 0.05),
    "delete-equations": Chances(0.25, 0.01, 0.49, 0.24),
    "drop-all-axes": Chances(0.92, 0.56, 0.37, 0.14),
    "drop-axes": Chances(0.42, 0.01, 0.84, 0.48),
    "drop-inputs": Chances(0.65, 0.02, 0.89, 0.41),
    "drop-results": Chances(0.72, 0.04, 0.64, 0.14),
    "freeze-carries": Chances(0.26, 0.01, 0.72, 0.13),
    "hoist-equations": Chances(0.09, 0.01, 0.23, 0.26),
    "host-values": Chances(0.23, 0.04, 0.28, 0.17),
    "inputs-for-values": Chances(0.04, 0.01, 0.22, 0.12),
    "keep-one": Chances(0.08, 0.04, 0.55, 0.29),
    "other-results": Chances(0.57, 0.01, 0.25, 0.09),
    "plain-layers": Chances(0.51, 0.01, 0.37, 0.5),
    "reset-flags": Chances(0.44, 0.01, 0.7, 0.57),
    "reuse-values": Chances(0.03, 0.01, 0.32, 0.04),
    "shorten-loops": Chances(0.69, 0.02, 0.55, 0.14),
    "shrink-all-dimensions": Chances(0.73, 0.42, 0.83, 0.21),
    "shrink-dimensions": Chances(0.33, 0.01, 0.66, 0.22),
    "shrink-to-tiles": Chances(0.76, 0.03, 0.94, 0.23),
    "simplify-entries": Chances(0.25, 0.03, 0.55, 0.18),
    "simplify-gradient": Chances(0.88, 0.02, 0.87, 0.42),
    "simplify-mesh": Chances(0.19, 0.02, 0.55, 0.05),
    "simplify-operations": Chances(0.13, 0.01, 0.55, 0.27),
    "simplify-policies": Chances(0.88, 0.04, 0.55, 0.14),
    "simplify-scalars": Chances(0.5, 0.04, 0.55, 0.14),
    "slices-to-constants": Chances(0.6, 0.02, 0.55, 0.14),
    "swap-regions": Chances(0.44, 0.01, 0.55, 0.14),
    "sweep": Chances(0.04, 0.01, 0.35, 0.04),
    "unify-dtypes": Chances(0.56, 0.02, 0.55, 0.31),
    "unwrap-regions": Chances(0.18, 0.01, 0.24, 0.25),
    "windows": Chances(0.04, 0.03, 0.55, 0.01),
    "": Chances(0.38, 0.04, 0.55, 0.14),
}
