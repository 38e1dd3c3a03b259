"""Pass `shrink-sizes`: one size wherever it flows."""

from __future__ import annotations

from tests.modules.conftest import Run
from tests.modules.samples import STACK


def test_the_least_that_works(run: Run) -> None:
    assert (
        run("shrink-sizes", STACK, lambda m: min(value.type for value in m.main.body.params) >= "tensor<3xf32>")
        == """\
main(%0:3xf32, %1:3xf32)
  %2:f32 = constant dense<0.000000e+00>
  %3:1x3xf32 = broadcast_in_dim %2 array<i64>
  %4:i32 = constant dense<0>
  %21:i32 %22:3xf32 %23:1x3xf32 = while %4 %0 %3
  (%5:i32 %6:3xf32 %7:1x3xf32)
    %8:i32 = constant dense<3>
    %9:i1 = compare %5 %8
    return %9
  (%10:i32 %11:3xf32 %12:1x3xf32)
    %13:3xf32 = sine %11
    %14:3xf32 = multiply %13 %1
    %15:3xf32 = to_host %14
    %16:1x3xf32 = reshape %15
    %17:i32 = constant dense<0>
    %18:1x3xf32 = dynamic_update_slice %12 %16 %10 %17
    %19:i32 = constant dense<1>
    %20:i32 = add %10 %19
    return %20 %13 %18
  %24:3xf32 = exponential %22
  return %24 %23
"""
    )
