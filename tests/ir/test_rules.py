"""Type rules: what primitives give, and what they refuse."""

from __future__ import annotations

import pytest

from reducer.errors import ProgramError
from reducer.ir.rules import infer
from reducer.ir.types import parse_type


def types(text: str):
    return tuple(parse_type(part) for part in text.split())


#: primitive, arguments, attributes, recorded results ("" where the rule derives them), what it gives
GIVES = [
    ("tanh", "f32[8,128]", {}, "", "f32[8,128]"),
    ("tanh", "bf16[4]<host>", {}, "", "bf16[4]<host>"),
    ("mul", "f32[8,128] f32[]", {}, "", "f32[8,128]"),
    ("mul", "f32[4,3] f32[4,1]", {}, "", "f32[4,3]"),
    ("lt", "i32[2] i32[2]", {}, "", "bool[2]"),
    ("is_finite", "f32[2]", {}, "", "bool[2]"),
    ("select_n", "bool[2] f32[2] f32[2]", {}, "", "f32[2]"),
    ("clamp", "f32[] f32[3] f32[]", {}, "", "f32[3]"),
    ("convert_element_type", "f32[3]", {}, "bf16[3]", "bf16[3]"),
    ("bitcast_convert_type", "f32[3]", {}, "i32[3]", "i32[3]"),
    ("broadcast_in_dim", "f32[3]", {"broadcast_dimensions": (1,)}, "f32[2,3]", "f32[2,3]"),
    ("broadcast_in_dim", "f32[]<host>", {"broadcast_dimensions": ()}, "f32[2]<host>", "f32[2]<host>"),
    ("reshape", "f32[2,3]", {}, "f32[6]", "f32[6]"),
    ("transpose", "f32[2,3]", {"permutation": (1, 0)}, "", "f32[3,2]"),
    ("squeeze", "f32[1,3]", {"dimensions": (0,)}, "", "f32[3]"),
    ("reduce_sum", "f32[2,3,4]", {"axes": (0, 2)}, "", "f32[3]"),
    ("argmax", "f32[2,3]", {"axes": (1,)}, "i32[2]", "i32[2]"),
    ("cumsum", "f32[2,3]", {"axis": 1}, "", "f32[2,3]"),
    ("dot_general", "f32[8,4] f32[4,2]", {"dimension_numbers": (((1,), (0,)), ((), ()))}, "", "f32[8,2]"),
    (
        "dot_general",
        "i8[5,8,4] i8[5,4,2]",
        {"dimension_numbers": (((2,), (1,)), ((0,), (0,)))},
        "i32[5,8,2]",
        "i32[5,8,2]",
    ),
    ("concatenate", "f32[2,3] f32[4,3]", {"dimension": 0}, "", "f32[6,3]"),
    ("split", "f32[6,3]", {"axis": 0}, "f32[2,3] f32[4,3]", "f32[2,3] f32[4,3]"),
    ("slice", "f32[6]", {"start_indices": (1,), "limit_indices": (6,), "strides": (2,)}, "", "f32[3]"),
    ("dynamic_slice", "f32[6,2]<host> i32[] i32[]", {}, "f32[1,2]<host>", "f32[1,2]<host>"),
    ("dynamic_update_slice", "f32[6] f32[2] i32[]", {}, "", "f32[6]"),
    ("iota", "", {"dimension": 1}, "i32[2,3]", "i32[2,3]"),
    ("pad", "f32[3] f32[]", {"padding_config": ((1, 2, 1),)}, "", "f32[8]"),
    ("sort", "f32[3] i32[3]", {"dimension": 0}, "", "f32[3] i32[3]"),
    ("top_k", "f32[2,5]", {}, "f32[2,3] i32[2,3]", "f32[2,3] i32[2,3]"),
    ("optimization_barrier", "f32[2] f32[3]<host>", {}, "", "f32[2] f32[3]<host>"),
    # JAX computes on a host scalar as if it lay on the device; what only moves it leaves it where it is.
    ("sin", "f32[]<host>", {}, "", "f32[]"),
    ("copy", "f32[]<host>", {}, "", "f32[]<host>"),
]

REFUSES = [
    ("frobnicate", "f32[2]", {}, "", "unknown primitive 'frobnicate'"),
    ("tanh", "f32[2] f32[2]", {}, "", "takes 1 arguments, got 2"),
    ("tanh", "i32[2]", {}, "", "does not take int32"),
    ("add", "f32[2] bf16[2]", {}, "", "dtypes differ"),
    ("add", "f32[2] f32[3]", {}, "", "shapes do not fit"),
    ("add", "f32[2] f32[2,2]", {}, "", "ranks differ"),
    ("add", "f32[2] f32[2]<host>", {}, "", "host and device values are mixed"),
    ("select_n", "bool[2] f32[2] f32[2] f32[2]", {}, "", "at most two cases"),
    ("bitcast_convert_type", "f32[3]", {}, "i8[3]", "differ in width"),
    ("reshape", "f32[2,3]", {}, "f32[5]", "another number of elements"),
    ("transpose", "f32[2,3]", {"permutation": (0, 0)}, "", "not a permutation"),
    ("squeeze", "f32[2,3]", {"dimensions": (0,)}, "", "only axes of size 1"),
    ("reduce_sum", "f32[2]", {"axes": (1,)}, "", "do not fit"),
    ("dot_general", "f32[8,4] f32[5,2]", {"dimension_numbers": (((1,), (0,)), ((), ()))}, "", "does not match"),
    ("dot_general", "f32[8,4] f32[4,2]", {}, "", "needs dimension_numbers"),
    ("concatenate", "f32[2,3] f32[4,4]", {"dimension": 0}, "", "shapes do not fit"),
    ("split", "f32[6]", {"axis": 0}, "f32[2] f32[5]", "do not add up"),
    ("slice", "f32[6]", {"start_indices": (1,), "limit_indices": (7,)}, "", "does not fit"),
    ("dynamic_slice", "f32[6]", {}, "f32[2]", "one start index per axis"),
    ("dynamic_slice", "f32[6] i32[]", {}, "f32[7]", "is no slice of"),
    ("top_k", "f32[3]", {}, "f32[4] i32[4]", "cannot take 4"),
]


@pytest.mark.parametrize(("primitive", "args", "attributes", "recorded", "gives"), GIVES)
def test_what_a_primitive_gives(primitive, args, attributes, recorded, gives):
    assert infer(primitive, types(args), attributes, types(recorded)) == types(gives)


@pytest.mark.parametrize(("primitive", "args", "attributes", "recorded", "says"), REFUSES)
def test_what_a_primitive_refuses(primitive, args, attributes, recorded, says):
    with pytest.raises(ProgramError) as caught:
        infer(primitive, types(args), attributes, types(recorded))
    assert says in str(caught.value)
