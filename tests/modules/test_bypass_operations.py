"""Pass `bypass-operations`: results replaced by operands of the same type."""

from __future__ import annotations

from tests.modules.conftest import Run, has
from tests.modules.samples import STACK


def test_chains_get_shorter(run: Run) -> None:
    assert (
        run("bypass-operations", STACK, lambda m: has(m, "stablehlo.dynamic_update_slice"))
        == """\
main(%0:8xf32)
  %1:f32 = constant dense<0.000000e+00>
  %2:3x8xf32 = broadcast_in_dim %1 array<i64>
  %3:i32 = constant dense<0>
  %17:i32 %18:8xf32 %19:3x8xf32 = while %3 %0 %2
  (%4:i32 %5:8xf32 %6:3x8xf32)
    %7:i32 = constant dense<3>
    %8:i1 = compare %4 %7
    return %8
  (%9:i32 %10:8xf32 %11:3x8xf32)
    %12:1x8xf32 = reshape %10
    %13:i32 = constant dense<0>
    %14:3x8xf32 = dynamic_update_slice %11 %12 %9 %13
    %15:i32 = constant dense<1>
    %16:i32 = add %9 %15
    return %16 %10 %14
  return %18 %19
"""
    )
