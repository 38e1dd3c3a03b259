"""What the tests of passes share: run one pass alone, with an oracle that always agrees."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reducer.ir.check import check
from reducer.ir.codec import identity
from reducer.ir.equations import Program
from reducer.ir.text import to_text
from reducer.oracle.fake import FakeOracle
from reducer.oracle.outcome import Rejected, Result
from reducer.passes import PASSES
from reducer.shrink import program_tier, shrink

Run = Callable[..., str]


@pytest.fixture
def run() -> Run:
    """`run(name, program)`: the text of what one pass makes of a program if everything fails as wanted.

    With `holds` the oracle agrees only where that predicate does.
    """

    def run(name: str, program: Program, holds: Callable[[Program], bool] = lambda _: True) -> str:
        (one,) = (p for p in PASSES if p.name == name)

        def wanted(result: Result) -> bool:
            return result.answer == Rejected("yes")

        with FakeOracle(lambda p: Rejected("yes" if holds(p) else "no"), key=identity) as oracle:
            shrunk = shrink(program, oracle, wanted, tier=program_tier(), passes=(one,), restart=False)
        check(shrunk.program)
        return to_text(shrunk.program) + "\n"

    return run
