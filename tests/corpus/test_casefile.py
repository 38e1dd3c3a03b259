"""The case format: round trip, versions, and files made to hurt."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reducer.corpus import (
    Case,
    Certificate,
    Equivalence,
    Explanation,
    Neighbour,
    TierMinimum,
    decode_case,
    encode_case,
    load_case,
    slug_for,
)
from reducer.corpus.case import SLUG, key_digest
from reducer.corpus.layout import lay_out
from reducer.errors import InputError

Make = Callable[..., Case]
BLOCK = ("tiers", "program", "program", "block")


def edited(case: Case, *path: str | int, value: object) -> bytes:
    """The case's file with one value replaced."""
    data = json.loads(encode_case(case))
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(data).encode()


def test_round_trip(make: Make) -> None:
    case = make()
    data = encode_case(case)
    assert decode_case(data) == case
    assert encode_case(decode_case(data)) == data


def test_round_trip_of_everything_a_case_can_hold(make: Make) -> None:
    case = make()
    minimum = msgspec.structs.replace(
        case.minimum,
        certificate=Certificate(neighbourhood="1", neighbours=(Neighbour(edit="delete eqns[0]", outcome="compiled"),)),
        explanations=(Explanation(parameter="length", still_fails="any >= 1"),),
    )
    module = TierMinimum(size=3, module="stablehlo.mlir", script="repro_stablehlo.py", order_key=(3, 120), partitions=4)
    case = msgspec.structs.replace(
        case,
        tiers={"program": minimum, "stablehlo": module},
        equivalence=Equivalence(same_as="unwrap eqns[0]", largest_difference=0.0),
        environment={"jax": "0.10.2"},
        notes=("a note",),
    )
    assert decode_case(encode_case(case)) == case


def test_the_file_is_laid_out_for_a_reader(make: Make) -> None:
    lines = encode_case(make(size=1, start=None)).decode().splitlines()
    assert lines[:4] == ["{", ' "format": 1,', ' "ir_format": 1,', f' "slug": "{make().slug}",']
    assert '     "eqns": [{"kind": "op", "outs": [[1, "f32[8,128]"]], "primitive": "tanh", "args": [0]}],' in lines
    assert max(map(len, lines)) <= 120


def test_layout_is_json() -> None:
    value = {"a": [1, 2.5, None, True, "x" * 200], "ü": {}, "n": {"deep": [[], ["y" * 120]]}}
    assert json.loads(lay_out(value)) == value


def test_a_newer_format_is_refused_before_anything_else_is_read(make: Make) -> None:
    data = edited(make(), "format", value=2).replace(b'"kind"', b'"sort"')
    with pytest.raises(InputError, match=r"x.json: written by a newer scanshrink \(case format 2"):
        decode_case(data, name="x.json")
    with pytest.raises(InputError, match=r"written by a newer scanshrink \(program format 9"):
        decode_case(edited(make(), "ir_format", value=9))


def test_an_unknown_field_is_refused(make: Make) -> None:
    data = encode_case(make()).replace(b'"finds"', b'"colour": 3, "finds"')
    with pytest.raises(InputError, match=r"unknown field `colour`.*newer scanshrink"):
        decode_case(data)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("slug",), "../../etc", r"\$\.slug: '\.\./\.\./etc' is not a slug"),
        (("slug",), "a/b", r"\$\.slug"),
        (("slug",), "bitcast-00000000", r"\$\.slug: must hold"),
        (("signature",), "", r"\$\.signature: is empty"),
        (("kind",), "nonsense", r"\$\.kind"),
        (("finds",), 0, r"\$\.finds: must be at least 1"),
        (("finds",), "3", r"Expected `int`, got `str` - at `\$\.finds`"),
        (("tiers",), {}, r"\$\.tiers: there is none"),
        (("tiers", "program", "script"), "../x.py", r"\$\.tiers\.program\.script: '\.\./x\.py' cannot name"),
        (("tiers", "program", "script"), "/etc/passwd", r"\$\.tiers\.program\.script"),
        (("tiers", "program", "script"), ".lock", r"\$\.tiers\.program\.script"),
        (("tiers", "program", "script"), "case.json", r"\$\.tiers\.program\.script: case\.json is the case's own"),
        (("tiers", "program", "module"), "repro.py", r"\$\.tiers\.program\.module: repro\.py belongs to"),
        (("tiers", "program", "size"), 4, r"\$\.tiers\.program\.size: the program has 5 equations"),
        (("tiers", "program", "program"), None, r"\$\.tiers\.program\.program: is missing"),
        ((*BLOCK, "results"), [77], r"\$\.tiers\.program\.program: "),
        ((*BLOCK, "eqns", 0, "outs"), [[1, "f32[9]"]], r"\$\.tiers\.program\.program: "),
        ((*BLOCK, "eqns", 0, "kind"), "exec", r"\$\.tiers\[\.\.\.\]\.program\.block\.eqns\[0\]\.kind"),
        ((*BLOCK, "params"), [[0, "f32[" + "9" * 5000 + "]"]], r"\$\.tiers"),
        (("start", "size"), 3, r"\$\.start\.size: it has 9 equations"),
        (("start", "file"), "x.mlir", r"\$\.start: either a program or a file"),
        (("target", "sha256"), "A" * 64, r"\$\.target\.sha256"),
        (("target", "libtpu"), "/home/me/libtpu.so", r"\$\.target\.libtpu"),
        (("target", "topology"), "v5e:2x2; rm", r"\$\.target\.topology"),
        (("target", "options"), {"a b": 1}, r"\$\.target\.options"),
        (("target", "options"), {"a": [1]}, r"\$\.target\.options"),
        (("target", "options"), {"xla_dump_to": "/home/me"}, r"\$\.target\.options: xla_dump_to names a file"),
        (("found", "seconds"), -1, r"\$\.found\.seconds"),
        (("found", "seed"), -1, r"\$\.found\.seed"),
        (("found", "date"), "yesterday", r"\$\.found\.date"),
        (("outcomes", 0, "outcome"), "exploded", r"\$\.outcomes\[0\]\.outcome"),
    ],
)
def test_a_broken_rule_names_its_place(make: Make, path: tuple[str | int, ...], value: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        decode_case(edited(make(), *path, value=value), name="bad.json")
    assert error.value.message.startswith("bad.json: ")
    assert len(str(error.value)) < 6000


def test_two_records_for_one_target_are_refused(make: Make) -> None:
    case = make()
    with pytest.raises(InputError, match=r"\$\.outcomes: two records"):
        encode_case(msgspec.structs.replace(case, outcomes=case.outcomes * 2))


def test_large_numbers_survive_or_are_refused(make: Make) -> None:
    found = msgspec.structs.replace(make().found, seed=2**200)
    case = make(found=found)
    assert decode_case(encode_case(case)) == case
    raw = encode_case(make()).replace(b'"seconds": 2.5', b'"seconds": 1e999')
    with pytest.raises(InputError, match=r"\$\.found\.seconds"):
        decode_case(raw)
    with pytest.raises(InputError):
        encode_case(make(found=msgspec.structs.replace(make().found, seconds=float("nan"))))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"{",
        b'{"format": 1}',
        b'{"format": "1"}',
        b'{"format": 0}',
        b'{"format": -1}',
        b'{"format": 1, "notes": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b'{"format": 1, "slug": "\xff"}',
    ],
    ids=range(11),
)
def test_not_a_case(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^here\.json: "):
        decode_case(data, name="here.json")


def test_deep_nesting_in_a_program(make: Make) -> None:
    block: object = {"params": [], "eqns": [], "results": []}
    for _ in range(5000):
        block = {"params": [], "eqns": [{"kind": "call", "outs": [], "args": [], "body": block}], "results": []}
    head = json.loads(encode_case(make()))
    head["tiers"]["program"]["program"] = "HERE"

    def text(value: object) -> str:  # json.dumps itself would give up
        parts, stack = [], [value]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                parts.append(item)
            elif isinstance(item, dict) and item["eqns"]:
                parts.append('{"params": [], "eqns": [{"kind": "call", "outs": [], "args": [], "body": ')
                stack += ['}], "results": []}', item["eqns"][0]["body"]]
            else:
                parts.append('{"params": [], "eqns": [], "results": []}')
        return "".join(parts)

    data = json.dumps(head).replace('"HERE"', text(block)).encode()
    with pytest.raises(InputError, match=r"deep\.json: "):
        decode_case(data, name="deep.json")


def test_surrogates_and_control_characters_survive_as_text(make: Make) -> None:
    case = make(notes=("\x1b[31mred\x00", "half \ud800 of a pair"))
    again = decode_case(encode_case(case))
    assert again.notes == ("\x1b[31mred\x00", r"half \ud800 of a pair")


class TestLoad:
    def test_a_folder_or_its_file(self, make: Make, tmp_path: Path) -> None:
        (tmp_path / "case.json").write_bytes(encode_case(make()))
        assert load_case(tmp_path) == load_case(tmp_path / "case.json") == make()

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"no such file: .*case\.json"):
            load_case(tmp_path)

    def test_a_link_is_not_followed(self, make: Make, tmp_path: Path) -> None:
        (tmp_path / "real").write_bytes(encode_case(make()))
        (tmp_path / "case.json").symlink_to("real")
        with pytest.raises(InputError, match=r"case\.json: is a symbolic link"):
            load_case(tmp_path)

    def test_a_pipe_does_not_block(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "case.json")
        with pytest.raises(InputError, match="is not a regular file"):
            load_case(tmp_path)

    def test_a_folder_in_the_file_s_place(self, tmp_path: Path) -> None:
        (tmp_path / "case.json").mkdir()
        with pytest.raises(InputError, match=r"case\.json"):
            load_case(tmp_path)

    def test_a_huge_file(self, tmp_path: Path) -> None:
        with open(tmp_path / "case.json", "wb") as file:
            file.truncate(1 << 40)  # sparse
        with pytest.raises(InputError, match="larger than 32 MiB"):
            load_case(tmp_path)


@given(st.text(), st.text(), st.sampled_from(["program", "placement", "stablehlo"]))
def test_any_text_makes_a_slug(readable: str, signature: str, tier: str) -> None:
    slug = slug_for(readable, kind="error", signature=signature, tier=tier)
    assert SLUG.fullmatch(slug)
    assert slug.endswith(key_digest("error", signature, tier))


def test_slugs_are_readable_and_stable() -> None:
    slug = slug_for("Bitcast: different memory spaces (5, 0)!", kind="error", signature="S", tier="program")
    assert slug == "bitcast-different-memory-spaces-5-0-75f01e9c"
    assert slug_for("", kind="error", signature="S", tier="program") == "case-75f01e9c"
    long = slug_for("word " * 40, kind="error", signature="S", tier="program")
    assert long == "-".join(["word"] * 11) + "-75f01e9c"
    keys = {(k, s, t) for k in ("error", "flaky") for s in ("S", "T") for t in ("program", "stablehlo")}
    assert len({key_digest(*key) for key in keys}) == 8
