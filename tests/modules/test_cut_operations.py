"""Pass `cut-operations`: operations cut off, arguments instead."""

from __future__ import annotations

from tests.modules.conftest import Run, has
from tests.modules.samples import STACK


def test_everything_goes(run: Run) -> None:
    assert (
        run("cut-operations", STACK)
        == """\
main(%0:3x8xf32[mhlo.memory_kind], %1:8xf32)
  return %1 %0
"""
    )


def test_what_matters_is_left_with_its_operands_as_arguments(run: Run) -> None:
    assert (
        run("cut-operations", STACK, lambda m: has(m, "stablehlo.multiply"))
        == """\
main(%0:8xf32, %1:8xf32, %2:3x8xf32, %3:8xf32)
  %4:i32 = constant dense<0>
  %18:i32 %19:3x8xf32 = while %4 %2
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
  return %3 %19
"""
    )


def test_an_argument_in_host_memory_says_so(run: Run) -> None:
    assert (
        run("cut-operations", STACK, lambda m: has(m, "stablehlo.reshape"))
        == """\
main(%0:3x8xf32, %1:8xf32[mhlo.memory_kind], %2:8xf32)
  %3:i32 = constant dense<0>
  %15:i32 %16:3x8xf32 = while %3 %0
  (%4:i32 %5:3x8xf32)
    %6:i32 = constant dense<3>
    %7:i1 = compare %4 %6
    return %7
  (%8:i32 %9:3x8xf32)
    %10:1x8xf32 = reshape %1
    %11:i32 = constant dense<0>
    %12:3x8xf32 = dynamic_update_slice %9 %10 %8 %11
    %13:i32 = constant dense<1>
    %14:i32 = add %8 %13
    return %14 %12
  return %2 %16
"""
    )
