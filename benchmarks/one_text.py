"""Do different starts with one failure end as one text? Asked of every error and lost offload of the corpus.

    python benchmarks/one_text.py --write

The starts of a case are what was found, and larger programs made of its minimum and of what was found by seeded edits
(`tests/libtpu/decorate.py`) that still fail in the same way. Each is reduced on the case's own release. Outcomes that
are known already are taken from the cache; nothing is timed.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from common import ROOT, publish, table

sys.path.insert(0, str(ROOT))  # for the edits, which belong to the tests

from reducer.corpus import Case, Corpus
from reducer.ir.equations import Program
from reducer.ir.order import order_key, size
from reducer.ir.text import to_text
from reducer.ir.tiers import tier_of
from reducer.oracle import Pool, resolve_target
from reducer.oracle.cache import OutcomeCache
from reducer.oracle.programs import ProgramOracle
from reducer.oracle.verdict import failure
from reducer.shrink import shrink_program

decorate: Callable[[Program, int], Program] = importlib.import_module("tests.libtpu.decorate").decorate
STARTS = 3
SEEDS = range(1, 7)


@dataclass(frozen=True)
class Row:
    """One case: the sizes of its starts, the distinct minima they end as, the compiles each took."""

    name: str
    starts: tuple[int, ...]
    minima: tuple[Program, ...]
    compiles: tuple[int, ...]
    known: Program

    @property
    def better(self) -> bool:
        """Whether a start ended at something smaller than what the corpus has."""
        return any(order_key(minimum) < order_key(self.known) for minimum in self.minima)


def starts(case: Case) -> Iterator[Program]:
    """Candidates for starts, in a fixed order; not all of them fail."""
    minimum = case.minimum.program
    assert minimum is not None
    found = case.start.program if case.start is not None else None
    if found is not None:
        yield found
    for program in (minimum, found):
        if program is not None:
            yield from (decorate(program, seed) for seed in SEEDS)


def measured(case: Case, pool: Pool) -> Row:
    """Reduce the first `STARTS` starts that fail as the case does."""
    assert case.minimum.program is not None
    oracle = ProgramOracle(pool, require_host_placement=True, want_ledger=True)
    sizes, compiles, minima = [], [], {}
    for start in starts(case):
        if failure(oracle.submit(start).result()) != case.signature:
            continue
        level = tier_of(case.minimum.program)
        shrunk = shrink_program(start, oracle, lambda r: failure(r) == case.signature, level=level, restart=False)
        sizes.append(size(start))
        compiles.append(shrunk.compiles)
        minima[to_text(shrunk.program)] = shrunk.program
        if len(sizes) == STARTS:
            break
    return Row(case.slug, tuple(sizes), tuple(minima.values()), tuple(compiles), case.minimum.program)


def rows(cases: list[Case], jobs: int) -> Iterator[Row]:
    """Every case, those of one release in one pool."""
    cases.sort(key=lambda case: (case.target.libtpu, case.target.topology, case.slug))
    with OutcomeCache() as cache:
        for where, group in itertools.groupby(cases, key=lambda case: (case.target.libtpu, case.target.topology)):
            with Pool(resolve_target(*where), jobs, cache=cache) as pool:
                for case in group:
                    row = measured(case, pool)
                    print(
                        row.name, row.starts, [size(m) for m in row.minima], row.compiles, file=sys.stderr, flush=True
                    )
                    yield row


def main() -> None:
    """Measure, print, and with ``--write`` publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="update docs/benchmarks.md")
    options = parser.parse_args()
    cases = [c for c in Corpus(ROOT / "corpus") if isinstance(c, Case) and c.kind in ("error", "lost-offload")]
    cases = [c for c in cases if c.minimum.program is not None and not c.target.options]
    # A crash costs a new worker for each candidate that fails: seconds, not tenths of one.
    found = list(rows([c for c in cases if not c.signature.startswith("SIG")], options.jobs))
    several = [row for row in found if len(row.starts) > 1]
    one = [row for row in several if len(row.minima) == 1]
    compiles = [number for row in found for number in row.compiles]
    sizes = [equations for row in several for equations in row.starts]
    lines = [
        "## Starts that end as one text",
        "",
        f"{len(several)} failures of the corpus, {len(sizes)} starts of {min(sizes)} to {max(sizes)} equations, each "
        f"reduced one way (no second way from the start): {len(one)} end as one text. In the median "
        f"{statistics.median(compiles):.0f} compiles to the fixpoint, {max(compiles)} at most. The others:",
        "",
        table(
            ["case", "starts, equations", "minima, equations", "smaller than the case"],
            [
                (
                    row.name,
                    ", ".join(map(str, row.starts)),
                    ", ".join(str(size(minimum)) for minimum in sorted(row.minima, key=order_key)),
                    "yes" if row.better else "no",
                )
                for row in several
                if row not in one
            ],
        ),
    ]
    publish("one-text", "\n".join(lines), write=options.write)


if __name__ == "__main__":
    main()
