"""What is read from the text of a compiled module."""

from __future__ import annotations

import pytest

from reducer.ir.types import DTYPES
from reducer.ledger.buffers import buffers_of, carried_of, hlo_dtype

HLO = """\
HloModule jit_fn, is_scheduled=true, entry_computation_layout={(f32[8,128]{1,0:T(8,128)})->f32[]{:T(128)}}

%body (p: (s32[], f32[4,3,8,128])) -> (s32[], f32[4,3,8,128]) {
  %stack = f32[4,3,8,128]{3,2,1,0:T(8,128)} get-tuple-element(%p), index=1
  %slice = f32[1,3,8,128]{3,2,1,0:T(8,128)S(5)} copy(%x), metadata={op_name="jit(fn)/f32[9,9]"}
  %scoped = bf16[2,16]{1,0:T(8,128)(2,1)S(1)} fusion(f32[8,128]{1,0:T(8,128)} %y)
  %both = (f32[8,128]{1,0:T(8,128)S(5)}, u32[]{:S(2)}) copy-start(f32[8,128]{1,0:T(8,128)} %z)
  %bare = pred[7] compare(%a, %b)
}
"""


def test_every_shape_with_its_spaces() -> None:
    assert buffers_of(HLO) == {
        "bf16[2,16]": (1,),
        "f32[1,3,8,128]": (5,),
        "f32[4,3,8,128]": (0,),
        "f32[8,128]": (0, 5),
        "pred[7]": (0,),
        "f32[9,9]": (0,),
    }


def test_nothing_in_no_text() -> None:
    assert buffers_of("") == {}
    assert carried_of("") == {}
    assert carried_of(HLO) == {}


def test_what_a_loop_carries_as_often_as_it_does_at_most() -> None:
    text = """
  %while = (s32[]{:T(128)}, f32[6,8]{1,0:S(5)}, f32[6,8]{1,0:S(5)}, /*index=3*/f32[6,8]{1,0:S(1)}) while(%t), body=%b
  ROOT %while.1 = (f32[6,8]{1,0:S(5)}, (f32[6,8]{1,0}, f32[6,8]{1,0}), bf16[2]{0:T(256)}) while(%t.1), condition=%c
  %not = (f32[6,8]{1,0:S(5)}, f32[6,8]{1,0:S(5)}, f32[6,8]{1,0:S(5)}) tuple(%while)
"""
    assert carried_of(text) == {"bf16[2]": (0,), "f32[6,8]": (0, 0, 1, 5, 5)}


@pytest.mark.parametrize(
    ("dtype", "printed"),
    [
        ("float32", "f32"),
        ("bfloat16", "bf16"),
        ("int32", "s32"),
        ("uint8", "u8"),
        ("bool", "pred"),
        ("complex64", "c64"),
        ("float8_e4m3fn", "f8e4m3fn"),
        ("float8_e5m2", "f8e5m2"),
    ],
)
def test_dtypes_as_hlo_prints_them(dtype: str, printed: str) -> None:
    assert hlo_dtype(dtype) == printed


def test_no_two_dtypes_print_alike() -> None:
    assert len({hlo_dtype(dtype) for dtype in DTYPES}) == len(DTYPES)
