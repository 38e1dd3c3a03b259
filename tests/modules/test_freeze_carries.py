"""Pass `freeze-carries`: carries as they are at first."""

from __future__ import annotations

from tests.modules.conftest import Run, has
from tests.modules.samples import STACK


def test_what_counts_stays(run: Run) -> None:
    assert (
        run("freeze-carries", STACK, lambda m: has(m, "stablehlo.while", "stablehlo.dynamic_update_slice"))
        == """\
main(%0:8xf32, %1:8xf32)
  %2:f32 = constant dense<0.000000e+00>
  %3:3x8xf32 = broadcast_in_dim %2 array<i64>
  %4:i32 = constant dense<0>
  %19:i32 %20:3x8xf32 = while %4 %3
  (%5:i32 %6:3x8xf32)
    %7:i32 = constant dense<3>
    %8:i1 = compare %5 %7
    return %8
  (%9:i32 %10:3x8xf32)
    %11:8xf32 = sine %0
    %12:8xf32 = multiply %11 %1
    %13:8xf32 = to_host %12
    %14:1x8xf32 = reshape %13
    %15:i32 = constant dense<0>
    %16:3x8xf32 = dynamic_update_slice %10 %14 %9 %15
    %17:i32 = constant dense<1>
    %18:i32 = add %9 %17
    return %18 %16
  %21:8xf32 = exponential %0
  return %21 %20
"""
    )
