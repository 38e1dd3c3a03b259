"""Many failures, from three starts each: one minimum, to the letter.

`minima/NAME.json` is a program that fails, as a hunt found it, and `minima/NAME.txt` what it ends as. The other two
starts are the same program after some random edits that make it larger (`decorate`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reducer.ir.codec import decode
from reducer.ir.equations import Program
from reducer.ir.text import to_text
from reducer.ir.tiers import tier_of
from reducer.oracle.outcome import Result
from reducer.oracle.programs import ProgramOracle
from reducer.oracle.target import resolve_target
from reducer.oracle.verdict import failure
from reducer.shrink import shrink_program

from .decorate import decorate

if TYPE_CHECKING:
    from reducer.oracle.pool import Pool

MINIMA = Path(__file__).parent / "minima"

#: Failure -> the seeds of its two other starts.
INSTALLED = {
    "trip-count-one": (1, 2),
    "copy-layout-placement": (2, 3),
    "copy-layout": (2, 3),
    "instruction-shape": (1, 2),
    "annotation-not-found": (4, 5),
    "lane-slice": (1, 3),
    "lost-outer-stack": (1, 2),
    "lost-all": (1, 3),
    "lost-part": (1, 3),
    "lane-update": (1, 2),
}
OLDER = {
    "async-start-placement": (1, 2),
    "async-start": (1, 2),
    "bitcast-from-host": (2, 3),
    "parameter-shape": (8, 11),
    "lane-slice-async": (5, 16),
    "lane-slice-async-placement": (1, 3),
    "bitcast-stacked-constant": (2, 3),
}


@pytest.fixture(scope="module")
def older(private_cache: Path) -> Iterator[Pool]:
    """Two workers of a release with failures that are gone since."""
    del private_cache  # must be set before a worker inherits the environment
    from reducer.oracle.pool import Pool

    with Pool(resolve_target("0.0.42.1"), workers=2) as shared:
        yield shared


def starts(name: str, seeds: tuple[int, int]) -> list[Program]:
    """Three programs with one failure."""
    found = decode((MINIMA / f"{name}.json").read_bytes())
    return [found, *(decorate(found, seed) for seed in seeds)]


def ends(name: str, seeds: tuple[int, int], pool: Pool) -> set[str]:
    """The texts that the three starts end as."""
    oracle = ProgramOracle(pool, require_host_placement=True, want_ledger=True)
    programs = starts(name, seeds)
    signature = failure(oracle.submit(programs[0]).result())
    assert signature is not None

    def wanted(result: Result) -> bool:
        return failure(result) == signature

    found = set()
    for program in programs:
        shrunk = shrink_program(program, oracle, wanted, level=tier_of(programs[0]), restart=False)
        assert shrunk.minimal
        found.add(to_text(shrunk.program) + "\n")
    return found


@pytest.mark.parametrize("name", INSTALLED)
def test_three_starts_end_as_one_text(name: str, pool: Pool) -> None:
    assert ends(name, INSTALLED[name], pool) == {(MINIMA / f"{name}.txt").read_text()}


@pytest.mark.parametrize("name", OLDER)
def test_three_starts_end_as_one_text_on_an_older_release(name: str, older: Pool) -> None:
    assert ends(name, OLDER[name], older) == {(MINIMA / f"{name}.txt").read_text()}


def test_the_starts_differ_and_are_larger_than_the_minima() -> None:
    assert len(INSTALLED) + len(OLDER) >= 12
    minima = set()
    for name, seeds in {**INSTALLED, **OLDER}.items():
        programs = starts(name, seeds)
        assert len({to_text(program) for program in programs}) == 3
        minima.add((MINIMA / f"{name}.txt").read_text())
        assert all(len(to_text(program)) > len((MINIMA / f"{name}.txt").read_text()) for program in programs[1:])
    assert len(minima) >= 10
