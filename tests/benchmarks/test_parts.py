"""A program as parts: any set of them is a program, whatever text it is handed out as."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reducer.ir.codec import decode
from reducer.ir.normal import normalise
from reducer.ir.text import to_text

SEED = Path(__file__).parents[1] / "seed"
START = normalise(decode((SEED / "trip_count_one.json").read_bytes()))


@pytest.fixture
def parts() -> Any:
    from peers.parts import Parts

    return Parts(START)


TEXT = """\
p0 gradient {
  p1 input 1;
}
p2 scan {
  p3 scan {
    p4 metadata skip-simplify-while-loops_trip-count-one;
    p5 checkpoint {
      p6 no-prevent-cse;
      p7 policy;
      p8 policy h;
      p9 name h;
      p10 dot_general;
      p11 tanh;
    }
  }
}
p12 result 0;
p13 size 8;
p14 size 128;
p15 size 12;
"""


def test_the_text_has_a_line_for_each_part(parts: Any) -> None:
    from peers.texts import Outline

    assert Outline(parts).text() == TEXT


def test_all_parts_are_the_start(parts: Any) -> None:
    assert parts.program(range(len(parts))) == START


def test_a_region_that_is_removed_while_something_in_it_stays_is_unwrapped(parts: Any) -> None:
    kept = set(range(len(parts))) - {2, 3, 4, 6, 13, 14, 15}
    assert to_text(parts.program(kept)) == UNWRAPPED


UNWRAPPED = """\
value_and_grad(argnums=(1,)) of
{ lambda ; a:f32[1,1] b:f32[1,1,1,1]. let
    c:f32[1,1] = checkpoint[
      policy=save_and_offload_only_these_names(offloaded=(h) device->pinned_host)
      body={ lambda ; d:f32[1,1]. let
          e:f32[1,1] = name[name=h] d
          f:f32[1,1] = dot_general[dimension_numbers=(((1,), (0,)), ((), ()))] e d
          g:f32[1,1] = tanh f
        in (g,) }
    ] a
  in (c,) }"""


def test_with_equations_only_there_is_nothing_else() -> None:
    from peers.parts import Parts

    parts = Parts(START, equations_only=True)
    assert [part.text for part in parts.parts] == [
        "p0 scan",
        "p1 scan",
        "p2 checkpoint",
        "p3 name h",
        "p4 dot_general",
        "p5 tanh",
    ]
    assert parts.program(range(6)) == START


def test_texts_are_read_back(parts: Any) -> None:
    from peers.texts import Outline

    outline, every = Outline(parts), frozenset(range(len(parts)))
    assert outline.of_text(outline.text().encode()) == every
    assert outline.of_text("".join(outline.lines()).encode()) == every
    assert outline.of_json(outline.json().encode()) == every
    assert outline.of_text(b"p2 scan {\n}\np9 name h;") == {2, 9}
    assert outline.of_json(json.dumps([["p2 scan", ["p9 name h"]]]).encode()) == {2, 9}


@pytest.mark.parametrize("text", ["p2 sca {}", "p99 scan;", "p2", "\xff"])
def test_a_damaged_text_is_none(parts: Any, text: str) -> None:
    from peers.texts import Outline

    outline = Outline(parts)
    assert outline.of_text(text.encode("latin-1")) is None
    assert outline.of_json(json.dumps([text]).encode()) is None
    assert outline.of_json(text.encode("latin-1")) is None
