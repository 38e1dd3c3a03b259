"""Pass `keep-one-result`: one result and what it needs."""

from __future__ import annotations

from tests.modules.conftest import Run
from tests.modules.samples import STACK


def test_the_result_with_the_placement_is_kept(run: Run) -> None:
    assert (
        run("keep-one-result", STACK)
        == """\
main(%0:8xf32, %1:8xf32)
  %2:f32 = constant dense<0.000000e+00>
  %3:3x8xf32 = broadcast_in_dim %2 array<i64>
  %4:i32 = constant dense<0>
  %21:i32 %22:8xf32 %23:3x8xf32 = while %4 %0 %3
  (%5:i32 %6:8xf32 %7:3x8xf32)
    %8:i32 = constant dense<3>
    %9:i1 = compare %5 %8
    return %9
  (%10:i32 %11:8xf32 %12:3x8xf32)
    %13:8xf32 = sine %11
    %14:8xf32 = multiply %13 %1
    %15:8xf32 = to_host %14
    %16:1x8xf32 = reshape %15
    %17:i32 = constant dense<0>
    %18:3x8xf32 = dynamic_update_slice %12 %16 %10 %17
    %19:i32 = constant dense<1>
    %20:i32 = add %10 %19
    return %20 %13 %18
  return %23
"""
    )
