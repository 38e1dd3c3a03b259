"""Pass `cut-to-zeros`: operations cut off, zeros instead."""

from __future__ import annotations

from tests.modules.conftest import Run, has
from tests.modules.samples import MANUAL, STACK


def test_what_matters_is_left_with_zeros(run: Run) -> None:
    assert (
        run("cut-to-zeros", STACK, lambda m: has(m, "stablehlo.multiply"))
        == """\
main(%0:8xf32)
  %1:3x8xf32 = constant dense<0.000000e+00>
  %2:i32 = constant dense<0>
  %17:i32 %18:3x8xf32 = while %2 %1
  (%3:i32 %4:3x8xf32)
    %5:i32 = constant dense<3>
    %6:i1 = compare %3 %5
    return %6
  (%7:i32 %8:3x8xf32)
    %9:8xf32 = constant dense<0.000000e+00>
    %10:8xf32 = multiply %9 %0
    %11:8xf32 = to_host %10
    %12:1x8xf32 = reshape %11
    %13:i32 = constant dense<0>
    %14:3x8xf32 = dynamic_update_slice %8 %12 %7 %13
    %15:i32 = constant dense<1>
    %16:i32 = add %7 %15
    return %16 %14
  %19:8xf32 = constant dense<0.000000e+00>
  return %19 %18
"""
    )


def test_a_manual_computation_sees_no_arguments_but_zeros(run: Run) -> None:
    assert (
        run("cut-to-zeros", MANUAL, lambda m: has(m, "stablehlo.cosine", "sdy.manual_computation"))
        == """\
main()
  %2:8xf32 = manual_computation
  ()
    %0:4xf32 = constant dense<0.000000e+00>
    %1:4xf32 = cosine %0
    return %1
  return %2
"""
    )
