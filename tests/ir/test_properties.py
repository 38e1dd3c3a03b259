"""What holds for every program that can be generated."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from reducer.ir.canonical import canonical
from reducer.ir.check import check
from reducer.ir.codec import decode, encode, identity
from reducer.ir.equations import Program
from reducer.ir.normal import normalise
from reducer.ir.order import order_key, size
from reducer.ir.skeleton import skeleton
from reducer.ir.text import to_text
from strategies import placements, programs
from tests.ir.shuffling import shuffled

any_program = st.one_of(programs(), placements())
few = settings(max_examples=25)


@few
@given(any_program)
def test_round_trip(program: Program) -> None:
    assert decode(encode(program)) == program
    assert decode(encode(program, indent=2)) == program


@few
@given(any_program)
def test_normal_form(program: Program) -> None:
    normal = normalise(program)
    check(normal)
    assert normalise(normal) == normal
    assert size(normal) <= size(program)


@few
@given(any_program, st.integers(0, 999))
def test_canonical_form(program: Program, number: int) -> None:
    form = canonical(program)
    check(form)
    assert canonical(form) == form
    assert normalise(form) == form
    other = shuffled(program, number)
    check(other)
    assert to_text(canonical(other)) == to_text(form)
    assert skeleton(normalise(other)) == skeleton(form)


@few
@given(any_program, any_program)
def test_order_is_total(one: Program, other: Program) -> None:
    a, b = order_key(one), order_key(other)
    assert (a < b) + (b < a) + (a == b) == 1
    assert (a == b) == (identity(one) == identity(other))


@few
@given(any_program)
def test_text_names_every_variable_once(program: Program) -> None:
    text = to_text(program)
    assert "?" not in text
    assert to_text(decode(encode(program))) == text
