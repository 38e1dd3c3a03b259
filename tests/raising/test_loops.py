"""Loops with a counter are scans again, as exact programs."""

from __future__ import annotations

from reducer.ir.text import to_text
from reducer.raising import raise_module
from reducer.stablehlo import read_module

COUNTED = b"""
module @m {
  func.func public @main(%arg0: tensor<2xf32>, %arg1: tensor<3x2xf32>) -> (tensor<2xf32>, tensor<3x2xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<3x2xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:4 = stablehlo.while(%x = %arg1, %i = %c, %carry = %arg0, %y = %zero)
      : tensor<3x2xf32>, tensor<i32>, tensor<2xf32>, tensor<3x2xf32>
    cond {
      %n = stablehlo.constant dense<3> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.dynamic_slice %x, INDEX, %c, sizes = [1, 2]
        : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
      %2 = stablehlo.reshape %1 : (tensor<1x2xf32>) -> tensor<2xf32>
      %3 = stablehlo.add %carry, %2 : tensor<2xf32>
      %4 = stablehlo.broadcast_in_dim %carry, dims = [1] : (tensor<2xf32>) -> tensor<1x2xf32>
      %5 = stablehlo.dynamic_update_slice %y, %4, INDEX, %c
        : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %x, %6, %3, %5 : tensor<3x2xf32>, tensor<i32>, tensor<2xf32>, tensor<3x2xf32>
    }
    return %0#2, %0#3 : tensor<2xf32>, tensor<3x2xf32>
  }
}
"""


def raised(module: bytes) -> str:
    return to_text(raise_module(read_module(module)))


def test_slices_and_updates_at_the_counter_are_xs_and_ys() -> None:
    assert (
        raised(COUNTED.replace(b"INDEX", b"%i"))
        == """\
{ lambda ; a:f32[2] b:f32[3,2]. let
    c:f32[2] d:f32[3,2] = scan[length=3 num_carry=1
      body={ lambda ; e:f32[2] f:f32[2]. let
          g:f32[2] = add e f
        in (g, e) }
    ] a b
  in (c, d) }"""
    )
