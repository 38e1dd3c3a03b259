"""Pass `drop-results`: results with what only they need."""

from __future__ import annotations

from tests.modules.conftest import Run, has
from tests.modules.samples import DONATED, STACK


def test_one_is_left(run: Run) -> None:
    assert (
        run("drop-results", STACK, lambda m: has(m, "stablehlo.exponential"))
        == """\
main(%0:8xf32)
  %1:i32 = constant dense<0>
  %11:i32 %12:8xf32 = while %1 %0
  (%2:i32 %3:8xf32)
    %4:i32 = constant dense<3>
    %5:i1 = compare %2 %4
    return %5
  (%6:i32 %7:8xf32)
    %8:8xf32 = sine %7
    %9:i32 = constant dense<1>
    %10:i32 = add %6 %9
    return %10 %8
  %13:8xf32 = exponential %12
  return %13
"""
    )


def test_donation_follows_its_result(run: Run) -> None:
    assert (
        run(
            "drop-results",
            DONATED,
            lambda m: any("tf.aliasing_output" in dict(each) for each in m.main.param_attributes),
        )
        == """\
main(%0:4xf32[tf.aliasing_output])
  %1:4xf32 = sine %0 mhlo.frontend_attributes
  return %1
"""
    )
