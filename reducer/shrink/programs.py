"""Programs of the IR as candidates."""

from __future__ import annotations

from typing import Literal

from reducer.ir.canonical import canonical
from reducer.ir.check import check
from reducer.ir.codec import identity
from reducer.ir.equations import Program
from reducer.ir.normal import normalise
from reducer.ir.order import order_key, size
from reducer.ir.text import to_text
from reducer.shrink.model import Tier


def program_tier(name: Literal["program", "placement"] = "program") -> Tier[Program]:
    """The tier of programs: canonical where the start survives it, normal otherwise."""
    return Tier(
        name=name,
        forms=(canonical, normalise),
        check=check,
        key=identity,
        order_key=order_key,
        size=size,
        text=to_text,
    )
