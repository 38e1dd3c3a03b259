"""Pass `drop-attributes`: attributes, shardings and donation."""

from __future__ import annotations

from tests.modules.conftest import Run
from tests.modules.samples import DONATED


def test_placements_keep_theirs(run: Run) -> None:
    assert (
        run("drop-attributes", DONATED)
        == """\
main(%0:4xf32, %1:4xf32)
  %2:4xf32 = sine %0
  %3:4xf32 = to_host %1
  return %2 %3
"""
    )
