"""Scalar texts: what is accepted, the canonical spelling, conversion."""

from __future__ import annotations

import pytest

from reducer.errors import ProgramError
from reducer.ir.equations import Lit
from reducer.ir.scalars import canonical_scalar, convert_scalar, parse_scalar, rounded


@pytest.mark.parametrize(
    ("text", "dtype", "value"),
    [
        ("1.0", "float32", 1.0),
        ("-1e-05", "bfloat16", -1e-05),
        ("-inf", "float8_e5m2", float("-inf")),
        ("3", "float32", 3.0),
        ("-8", "int4", -8),
        ("255", "uint8", 255),
        ("True", "bool", True),
        ("(1+2j)", "complex64", 1 + 2j),
        ("0j", "complex64", 0j),
    ],
)
def test_parse(text: str, dtype: str, value: object) -> None:
    got = parse_scalar(text, dtype)
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("1.0", "int32"), ("8", "int4"), ("-1", "uint8"), ("1", "bool"), ("true", "bool"), ("1_0", "int32"),
        (" 1", "int32"), ("", "float32"), ("-nan", "float32"), ("infinity", "float32"), ("0x10", "int32"),
        ("1.0+x", "float32"), ("9" * 50, "int64"), ("j", "complex64x"), ("1+", "complex64"), ("0", "key<fry>"),
    ],
)  # fmt: skip
def test_parse_refuses(text: str, dtype: str) -> None:
    with pytest.raises(ProgramError):
        parse_scalar(text, dtype)


@pytest.mark.parametrize(
    ("text", "dtype", "canonical"),
    [
        ("0.10000000149011612", "float32", "0.1"),
        ("0.10000000149011612", "float64", "0.10000000149011612"),
        ("0.10009765625", "bfloat16", "0.1"),
        ("1", "float32", "1.0"),
        ("1e0", "float32", "1.0"),
        ("16777217", "float32", "16777216.0"),
        ("1e39", "float32", "inf"),
        ("65520", "float16", "inf"),
        ("3.39e38", "bfloat16", "3.39e+38"),
        ("3.4e38", "bfloat16", "inf"),
        ("1e-46", "float32", "0.0"),
        ("-0.0", "float32", "-0.0"),
        ("nan", "float32", "nan"),
        ("007", "int32", "7"),
        ("0.3", "float8_e5m2", "0.3"),
    ],
)
def test_canonical(text: str, dtype: str, canonical: str) -> None:
    assert canonical_scalar(text, dtype) == canonical
    assert canonical_scalar(canonical, dtype) == canonical


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1 + 2**-8, "bfloat16", 1.0),  # a tie goes to the even neighbour
        (1 + 3 * 2**-8, "bfloat16", 1 + 2**-6),
        (1 + 2**-8 + 2**-40, "bfloat16", 1 + 2**-7),  # by way of float32 this would be a tie
        (2.0**-133, "bfloat16", 2.0**-133),  # subnormal
        (2.0**-135, "bfloat16", 0.0),
    ],
)
def test_rounded(value: float, dtype: str, expected: float) -> None:
    assert rounded(value, dtype) == expected


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        ("0.1", "float32", "bfloat16", "0.1"),
        ("0.1", "float32", "float64", "0.10000000149011612"),
        ("2.7", "float32", "int32", "2"),
        ("-2.7", "float32", "int32", "-2"),
        ("-1", "int32", "uint8", "255"),
        ("200", "int32", "int8", "-56"),
        ("3", "int32", "float32", "3.0"),
        ("16777217", "int32", "float32", "16777216.0"),
        ("True", "bool", "float32", "1.0"),
        ("False", "bool", "int32", "0"),
        ("nan", "float32", "bool", "True"),
        ("-0.0", "float32", "bool", "False"),
        ("inf", "float32", "bfloat16", "inf"),
    ],
)
def test_convert(value: str, source: str, target: str, expected: str) -> None:
    assert convert_scalar(Lit(source, value), target) == Lit(target, expected)


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        ("1e10", "float32", "int32"),
        ("nan", "float32", "int32"),
        ("inf", "float32", "int32"),
        ("0.5", "float8_e5m2", "float32"),
        ("0.5", "float32", "float8_e4m3fn"),
        ("9007199254740993", "int64", "float32"),
        ("1j", "complex64", "float32"),
        ("1.0", "float32", "complex64"),
    ],
)
def test_convert_leaves_open(value: str, source: str, target: str) -> None:
    assert convert_scalar(Lit(source, value), target) is None
