"""Pass `keep-near`: what is near host memory, all else cut off."""

from __future__ import annotations

import pytest

from tests.modules.conftest import Run, has
from tests.modules.samples import STACK


@pytest.mark.usefixtures("small")
def test_what_feeds_the_placement_is_an_argument(run: Run) -> None:
    assert (
        run("keep-near", STACK, lambda m: has(m, "stablehlo.dynamic_update_slice"))
        == """\
main(%0:8xf32)[mhlo.memory_kind]
  %1:f32 = constant dense<0.000000e+00>
  %2:3x8xf32 = broadcast_in_dim %1 array<i64>
  %3:i32 = constant dense<0>
  %16:i32 %17:3x8xf32 = while %3 %2
  (%4:i32 %5:3x8xf32)
    %6:i32 = constant dense<3>
    %7:i1 = compare %4 %6
    return %7
  (%8:i32 %9:3x8xf32)
    %10:8xf32 = to_host %0
    %11:1x8xf32 = reshape %10
    %12:i32 = constant dense<0>
    %13:3x8xf32 = dynamic_update_slice %9 %11 %8 %12
    %14:i32 = constant dense<1>
    %15:i32 = add %8 %14
    return %15 %13
  return %17
"""
    )


@pytest.mark.usefixtures("small")
def test_more_is_kept_where_the_nearest_is_not_enough(run: Run) -> None:
    assert (
        run("keep-near", STACK, lambda m: has(m, "stablehlo.multiply"))
        == """\
main(%0:8xf32, %1:8xf32)[mhlo.memory_kind]
  %2:f32 = constant dense<0.000000e+00>
  %3:3x8xf32 = broadcast_in_dim %2 array<i64>
  %4:i32 = constant dense<0>
  %18:i32 %19:3x8xf32 = while %4 %3
  (%5:i32 %6:3x8xf32)
    %7:i32 = constant dense<3>
    %8:i1 = compare %5 %7
    return %8
  (%9:i32 %10:3x8xf32)
    %11:8xf32 = multiply %1 %0
    %12:8xf32 = to_host %11
    %13:1x8xf32 = reshape %12
    %14:i32 = constant dense<0>
    %15:3x8xf32 = dynamic_update_slice %10 %13 %9 %14
    %16:i32 = constant dense<1>
    %17:i32 = add %9 %16
    return %17 %15
  return %19
"""
    )
