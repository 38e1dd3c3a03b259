"""Pass `unwrap-regions`: loops by what they do the first time."""

from __future__ import annotations

from tests.modules.conftest import Run
from tests.modules.samples import STACK


def test_the_body_is_run_once(run: Run) -> None:
    assert (
        run("unwrap-regions", STACK)
        == """\
main(%0:8xf32, %1:8xf32)
  %2:f32 = constant dense<0.000000e+00>
  %3:3x8xf32 = broadcast_in_dim %2 array<i64>
  %4:i32 = constant dense<0>
  %5:8xf32 = sine %0
  %6:8xf32 = multiply %5 %1
  %7:8xf32 = to_host %6
  %8:1x8xf32 = reshape %7
  %9:3x8xf32 = dynamic_update_slice %3 %8 %4 %4
  %10:8xf32 = exponential %5
  return %10 %9
"""
    )
