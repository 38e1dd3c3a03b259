"""The list of passes: what stands in it, and that it is one."""

from __future__ import annotations

import re
from pathlib import Path

from reducer.passes import PASSES


def test_names_are_kebab_case_and_unique() -> None:
    names = [one.name for one in PASSES]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)


def test_every_pass_says_what_it_does_and_has_a_test_file() -> None:
    for one in PASSES:
        assert one.description[0].islower()
        assert not one.description.endswith(".")
        assert 1 <= one.benefit <= 5
        assert not one.may_grow
        assert (Path(__file__).parent / f"test_{one.name.replace('-', '_')}.py").is_file(), one.name


def test_listing() -> None:
    assert [one.name for one in PASSES] == [
        "keep-one",
        "host-values",
        "plain-layers",
        "delete-equations",
        "drop-results",
        "unwrap-regions",
        "other-results",
        "shrink-all-dimensions",
        "shrink-large-dimensions",
        "drop-all-axes",
        "shorten-loops",
        "drop-inputs",
        "bypass-equations",
        "simplify-operations",
        "unify-dtypes",
        "freeze-carries",
        "slices-to-constants",
        "cut-values",
        "inputs-for-values",
        "simplify-gradient",
        "shrink-dimensions",
        "drop-axes",
        "drop-branches",
        "simplify-policies",
        "merge-names",
        "drop-names",
        "reset-flags",
        "swap-regions",
        "drop-attributes",
        "simplify-mesh",
        "simplify-entries",
        "shrink-to-tiles",
        "simplify-scalars",
        "reuse-values",
        "fill-arguments",
        "hoist-equations",
        "windows",
        "stack-carries",
        "coupled-edits",
    ]
