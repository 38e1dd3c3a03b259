"""Loops with a counter are scans again, as exact programs; all others stay loops."""

from __future__ import annotations

from reducer.ir.text import to_text
from reducer.raising import raise_module
from reducer.stablehlo.parse import read

#: A loop over x and y, %carry carried; INDEX is computed by FIRST, and TEST says when it goes on.
COUNTED = """
module @m {
  func.func public @main(%arg0: tensor<2xf32>, %arg1: tensor<3x2xf32>) -> (tensor<2xf32>, tensor<3x2xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<3x2xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.constant dense<LENGTH> : tensor<i32>
    %start = stablehlo.constant dense<START> : tensor<i32>
    %0:4 = stablehlo.while(%x = %arg1, %i = %start, %carry = %arg0, %y = %zero)
      : tensor<3x2xf32>, tensor<i32>, tensor<2xf32>, tensor<3x2xf32>
    cond {
      %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      FIRST
      %1 = stablehlo.dynamic_slice %x, INDEX, %c, sizes = [1, 2]
        : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
      %2 = stablehlo.reshape %1 : (tensor<1x2xf32>) -> tensor<2xf32>
      %3 = stablehlo.add %carry, %2 : tensor<2xf32>
      %4 = stablehlo.broadcast_in_dim %carry, dims = [1] : (tensor<2xf32>) -> tensor<1x2xf32>
      %5 = stablehlo.dynamic_update_slice %y, %4, WRITTEN, %c
        : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
      %6 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %x, %6, %3, %5 : tensor<3x2xf32>, tensor<i32>, tensor<2xf32>, tensor<3x2xf32>
    }
    return %0#2, %0#3 : tensor<2xf32>, tensor<3x2xf32>
  }
}
"""

FORWARD = """\
{ lambda ; a:f32[2] b:f32[3,2]. let
    c:f32[2] d:f32[3,2] = scan[length=3 num_carry=1
      body={ lambda ; e:f32[2] f:f32[2]. let
          g:f32[2] = add e f
        in (g, e) }
    ] a b
  in (c, d) }"""

BACKWARD = FORWARD.replace("num_carry=1", "num_carry=1 reverse=True")

CARRIED = """\
{ lambda ; a:f32[2] b:f32[3,2]. let
    c:f32[3,2] = full 0.0
    d:i32[] e:f32[2] f:f32[3,2] = scan[length=%d num_consts=1 num_carry=3
      body={ lambda ; g:f32[3,2] h:i32[] i:f32[2] j:f32[3,2]. let
          k:f32[1,2] = dynamic_slice g h 0:i32[]
          l:f32[2] = reshape k
          m:f32[2] = add i l
          n:f32[1,2] = broadcast_in_dim[broadcast_dimensions=(1,)] i
          o:f32[3,2] = dynamic_update_slice j n h 0:i32[]
          p:i32[] = add h 1:i32[]
        in (p, m, o) }
    ] b %d:i32[] a c
  in (e, f) }"""


def raised(text: str) -> str:
    return to_text(raise_module(read(text.encode())))


def loop(first: str = "", index: str = "%i", written: str = "", length: int = 3, start: int = 0) -> str:
    text = COUNTED.replace("FIRST", first).replace("INDEX", index).replace("WRITTEN", written or index)
    return text.replace("LENGTH", str(length)).replace("START", str(start))


def test_slices_and_updates_at_the_counter_are_xs_and_ys() -> None:
    assert raised(loop()) == FORWARD


def test_a_loop_through_arrays_from_the_end_is_reversed() -> None:
    last = """
      %a = stablehlo.subtract %n, %i : tensor<i32>
      %b = stablehlo.subtract %a, %one : tensor<i32>"""
    assert raised(loop(last, "%b")) == BACKWARD
    other = """
      %two = stablehlo.constant dense<2> : tensor<i32>
      %b = stablehlo.subtract %two, %i : tensor<i32>"""
    assert raised(loop(other, "%b")) == BACKWARD


def test_an_index_that_cannot_be_negative_needs_no_wrap_around() -> None:
    wrapped = """
      %below = stablehlo.compare LT, %i, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %around = stablehlo.add %i, %n : tensor<i32>
      %b = stablehlo.select %below, %around, %i : tensor<i1>, tensor<i32>"""
    assert raised(loop(wrapped, "%b")) == FORWARD


def test_arrays_longer_than_the_loop_are_carried_and_sliced() -> None:
    # What is not written keeps what it held before, so the stack is no y.
    assert raised(loop(length=2)) == CARRIED % (2, 0)


def test_a_counter_that_starts_elsewhere_slices_elsewhere() -> None:
    assert raised(loop(length=4, start=1)) == CARRIED % (3, 1)


def test_a_loop_that_reads_from_one_end_and_writes_from_the_other_keeps_one_of_them_a_slice() -> None:
    last = """
      %a = stablehlo.subtract %n, %i : tensor<i32>
      %b = stablehlo.subtract %a, %one : tensor<i32>"""
    assert (
        raised(loop(last, index="%b", written="%i"))
        == """\
{ lambda ; a:f32[2] b:f32[3,2]. let
    c:i32[] d:f32[2] e:f32[3,2] = scan[length=3 num_consts=1 num_carry=2
      body={ lambda ; f:f32[3,2] g:i32[] h:f32[2]. let
          i:i32[] = sub 3:i32[] g
          j:i32[] = sub i 1:i32[]
          k:f32[1,2] = dynamic_slice f j 0:i32[]
          l:f32[2] = reshape k
          m:f32[2] = add h l
          n:i32[] = add g 1:i32[]
        in (n, m, h) }
    ] b 0:i32[] a
  in (d, e) }"""
    )


def test_a_value_the_loop_hands_on_is_a_constant_and_a_scalar_is_written_out() -> None:
    assert (
        raised("""
module @m {
  func.func public @main(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>) -> tensor<2xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<5> : tensor<i32>
    %half = stablehlo.constant dense<0.5> : tensor<f32>
    %0:5 = stablehlo.while(%i = %c, %x = %arg0, %w = %arg1, %h = %half, %to = %n)
      : tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<i32>
    cond {
      %1 = stablehlo.compare GT, %to, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.broadcast_in_dim %h, dims = [] : (tensor<f32>) -> tensor<2xf32>
      %2 = stablehlo.multiply %x, %1 : tensor<2xf32>
      %3 = stablehlo.add %2, %w : tensor<2xf32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.add %one, %i : tensor<i32>
      stablehlo.return %4, %3, %w, %h, %to
        : tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<i32>
    }
    return %0#1 : tensor<2xf32>
  }
}
""")
        == """\
{ lambda ; a:f32[2] b:f32[2]. let
    c:f32[2] = scan[length=5 num_consts=1 num_carry=1
      body={ lambda ; d:f32[2] e:f32[2]. let
          f:f32[2] = mul e 0.5:f32[]
          g:f32[2] = add f d
        in (g,) }
    ] b a
  in (c,) }"""
    )


def test_a_loop_without_a_counter_stays_one_with_its_metadata() -> None:
    assert (
        raised("""
module @m {
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.while(%x = %arg0) : tensor<i32>
      attributes {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}}
    cond {
      %1 = stablehlo.compare LT, %x, %arg1, SIGNED
        {mhlo.frontend_attributes = {"skip-simplify-while-loops_trip-count-one" = "true"}}
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.multiply %x, %x : tensor<i32>
      stablehlo.return %1 : tensor<i32>
    }
    return %0 : tensor<i32>
  }
}
""")
        == """\
{ lambda ; a:i32[] b:i32[]. let
    c:i32[] = while[
      cond_nconsts=1
      metadata={skip-simplify-while-loops_trip-count-one: true}
      cond={ lambda ; d:i32[] e:i32[]. let
          f:bool[] = lt e d
        in (f,) }
      body={ lambda ; g:i32[]. let
          h:i32[] = mul g g
        in (h,) }
    ] b a
  in (c,) }"""
    )
