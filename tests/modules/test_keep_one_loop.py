"""Pass `keep-one-loop`: one loop and nothing around it."""

from __future__ import annotations

import pytest

from tests.modules.conftest import Run, has
from tests.modules.samples import STACK


@pytest.mark.usefixtures("small")
def test_what_comes_before_and_after_goes(run: Run) -> None:
    assert (
        run("keep-one-loop", STACK, lambda m: has(m, "stablehlo.while"))
        == """\
main(%0:8xf32, %1:8xf32, %2:3x8xf32)[mhlo.memory_kind]
  %3:i32 = constant dense<0>
  %20:i32 %21:8xf32 %22:3x8xf32 = while %3 %0 %2
  (%4:i32 %5:8xf32 %6:3x8xf32)
    %7:i32 = constant dense<3>
    %8:i1 = compare %4 %7
    return %8
  (%9:i32 %10:8xf32 %11:3x8xf32)
    %12:8xf32 = sine %10
    %13:8xf32 = multiply %12 %1
    %14:8xf32 = to_host %13
    %15:1x8xf32 = reshape %14
    %16:i32 = constant dense<0>
    %17:3x8xf32 = dynamic_update_slice %11 %15 %9 %16
    %18:i32 = constant dense<1>
    %19:i32 = add %9 %18
    return %19 %12 %17
  return %21 %22
"""
    )
