"""Pass `simplify-mesh`: axes that nothing is split along."""

from __future__ import annotations

from tests.modules.conftest import Run
from tests.modules.samples import MANUAL


def test_used_axes_stay(run: Run) -> None:
    assert (
        run("simplify-mesh", MANUAL)
        == """\
main(%0:8xf32)
  %1:8xf32 = sine %0
  %5:8xf32 = manual_computation %1
  (%2:4xf32)
    %3:4xf32 = exponential %2
    %4:4xf32 = cosine %3
    return %4
  return %5
"""
    )
