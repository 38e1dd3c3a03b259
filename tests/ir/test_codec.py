"""Programs as JSON: canonical bytes, versions, and files nobody should trust."""

from __future__ import annotations

import json

import msgspec
import pytest

from reducer.errors import InputError, ProgramError
from reducer.ir.codec import FORMAT, decode, decode_program, encode, encode_program, identity
from reducer.ir.types import Type, parse_type
from tests.ir.samples import seed, zoo


@pytest.mark.parametrize("indent", [0, 2])
def test_every_kind_of_equation_round_trips(indent):
    program = zoo()
    assert decode(encode(program, indent=indent)) == program
    assert decode_program(encode_program(program)) == program


def test_tuples_inside_attributes_stay_tuples():
    again = decode_program(encode_program(zoo()))
    assert hash(again) == hash(zoo())


def test_where_a_program_came_from_is_no_part_of_its_identity():
    program = seed("nested")
    told = msgspec.structs.replace(program, meta=(("strategy", "layer_stacks"),))
    assert identity(told) == identity(program)
    assert encode(told) != encode(program)


def test_another_program_has_another_identity():
    assert identity(seed("nested")) != identity(seed("trip_count_one"))


def test_a_newer_format_is_refused_with_what_to_do():
    newer = json.loads(encode(seed("flat")))
    newer["format"] = FORMAT + 1
    with pytest.raises(InputError, match=r"newer scanshrink \(format 2, this one reads up to 1\).*upgrade"):
        decode(json.dumps(newer).encode())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "not a program file"),
        (b"\xff\xfe", "not a program file"),
        (b"[]", "not a program file"),
        (b"{}", "missing required field `format`"),
        (b'{"format": 1}', "missing required field `program`"),
        (b'{"format": 1, "program": {}}', "missing required field `block`"),
        (b'{"format": 1, "program": {"block": {"params": [[0, "f99[2]"]], "eqns": [], "results": []}}}', "f99"),
        (b'{"format": 1, "program": {"block": {"params": [[0, 7]], "eqns": [], "results": []}}}', "7"),
        (b'{"format": 1, "program": {"block": {"params": [], "eqns": [{"kind": "evil"}], "results": []}}}', "evil"),
    ],
)
def test_what_is_no_program_is_said_in_one_error(text, says):
    with pytest.raises(InputError) as caught:
        decode(text)
    assert says in str(caught.value)


def test_nesting_without_end_is_bad_input_not_a_crash():
    deep = b"[" * 100_000 + b"]" * 100_000
    with pytest.raises(InputError):
        decode_program(b'{"block": {"params": [], "eqns": [], "results": ' + deep + b"}}")
    with pytest.raises(InputError):
        decode(b'{"a":' * 100_000)
    attribute = b"[" * 900 + b"]" * 900
    eqn = b'{"kind":"op","outs":[],"primitive":"sin","attributes":[["axes",' + attribute + b"]]}"
    with pytest.raises(InputError):
        decode_program(b'{"block": {"params": [], "eqns": [' + eqn + b'], "results": []}}')


@pytest.mark.parametrize("text", ["f32[]", "bf16[8,128]", "i8[1]", "bool[2,3]<host>", "key<fry>[]", "f8_e4m3fn[4]"])
def test_a_type_is_its_text(text):
    assert str(parse_type(text)) == text


@pytest.mark.parametrize(
    "text", ["", "f32", "f32[", "f32[-1]", "f32[1,]", "f32[2]<device>", "F32[2]", "f32[2] ", "f32[²]"]
)
def test_what_is_no_type_is_refused(text):
    with pytest.raises(ProgramError, match="not a type"):
        parse_type(text)


def test_types_are_immutable_and_know_their_size():
    kept = Type("bfloat16", (3, 5), "host")
    with pytest.raises(AttributeError, match="immutable"):
        kept.dtype = "float32"
    assert (kept.size, kept.nbytes, kept.rank, kept.on_host, kept.inexact) == (15, 30, 2, True, True)
    assert kept.stacked(4) == parse_type("bf16[4,3,5]<host>")
    assert kept.stacked(4).element == kept
    with pytest.raises(ProgramError, match="no leading dimension"):
        _ = Type("float32").element
