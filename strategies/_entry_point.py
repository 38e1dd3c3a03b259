"""What Hypothesis calls when it is imported: teaches `st.from_type` about programs and types.

It runs in every process that imports Hypothesis, so it loads nothing but the IR's classes; the strategies themselves
are imported when one is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from reducer.ir.equations import Program
    from reducer.ir.types import Type


def _programs(_: type[Program]) -> SearchStrategy[Program]:
    from strategies import programs

    return programs()


def _types(_: type[Type]) -> SearchStrategy[Type]:
    from strategies import types

    return types()


def register() -> None:
    """The target of the ``hypothesis`` entry point."""
    from hypothesis import strategies as st

    from reducer.ir.equations import Program
    from reducer.ir.types import Type

    st.register_type_strategy(Program, _programs)
    st.register_type_strategy(Type, _types)
