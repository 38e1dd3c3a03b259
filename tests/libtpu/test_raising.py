"""Raised modules fail in the compiler as the modules did."""

from __future__ import annotations

from pathlib import Path

import pytest

from reducer.oracle.modules import ModuleOracle
from reducer.oracle.pool import Pool
from reducer.oracle.programs import ProgramOracle
from reducer.oracle.verdict import verdict
from reducer.raising import raise_module
from reducer.stablehlo import read_module

pytestmark = pytest.mark.slow

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
#: One of each kind: two loops, gradients and barriers, branches, donated inputs, dots.
CASES = (
    "async-start-mismatch-1f2a1785",
    "bitcast-memory-space-4ea629f9",
    "copy-layout-to-host-e6f8e063",
    "instruction-shape-mismatch-75d04d19",
    "sublane-slice-5409b7b4",
)


@pytest.mark.parametrize("slug", CASES)
def test_a_raised_module_fails_as_the_module_does(pool: Pool, slug: str) -> None:
    module = read_module((CORPUS / slug / "program.mlir").read_bytes())
    before = verdict(ModuleOracle(pool).submit(module).result()).failure
    after = verdict(ProgramOracle(pool).submit(raise_module(module)).result()).failure
    assert (before and before.text) == (after and after.text)
