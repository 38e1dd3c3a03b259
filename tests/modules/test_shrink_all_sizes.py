"""Pass `shrink-all-sizes`: sizes made 1 wherever they flow."""

from __future__ import annotations

from tests.modules.conftest import Run
from tests.modules.samples import RESHAPED, STACK, UNKNOWN


def test_sizes_flow_through_loops_and_slices(run: Run) -> None:
    assert (
        run("shrink-all-sizes", STACK)
        == """\
main(%0:1xf32, %1:1xf32)
  %2:f32 = constant dense<0.000000e+00>
  %3:1x1xf32 = broadcast_in_dim %2 array<i64>
  %4:i32 = constant dense<0>
  %21:i32 %22:1xf32 %23:1x1xf32 = while %4 %0 %3
  (%5:i32 %6:1xf32 %7:1x1xf32)
    %8:i32 = constant dense<3>
    %9:i1 = compare %5 %8
    return %9
  (%10:i32 %11:1xf32 %12:1x1xf32)
    %13:1xf32 = sine %11
    %14:1xf32 = multiply %13 %1
    %15:1xf32 = to_host %14
    %16:1x1xf32 = reshape %15
    %17:i32 = constant dense<0>
    %18:1x1xf32 = dynamic_update_slice %12 %16 %10 %17
    %19:i32 = constant dense<1>
    %20:i32 = add %10 %19
    return %20 %13 %18
  %24:1xf32 = exponential %22
  return %24 %23
"""
    )


def test_sizes_that_a_reshape_multiplies(run: Run) -> None:
    assert (
        run("shrink-all-sizes", RESHAPED)
        == """\
main(%0:1x1xf32, %1:1x1xf32)
  %2:1xf32 = reshape %0
  %3:1xf32 = dot_general %2 %1
  %4:1x1xf32 = broadcast_in_dim %3 array<i64: 1>
  %5:1x1xf32 = slice %4 array<i64: 1, 1>
  return %5
"""
    )


def test_an_unknown_operation_keeps_its_sizes(run: Run) -> None:
    assert (
        run("shrink-all-sizes", UNKNOWN)
        == """\
main(%0:4x6xf32)
  %1:6xf32 = call %0
  %2:1x6xf32 = broadcast_in_dim %1 array<i64: 1>
  return %2
"""
    )
