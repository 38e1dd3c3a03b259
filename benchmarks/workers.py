"""One worker and two: the same reduction, with the real compiler and nothing known before.

    python benchmarks/workers.py --start "TRIP_COUNT_ONE" --start "experts step" --write

`reducers.py` replays reductions under a simulated clock; here two processes share the machine, its caches and its
cores, with whatever else runs on it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

from common import publish, table
from peers import starts

from reducer.ir.codec import encode_program
from reducer.ir.equations import Program
from reducer.ir.order import size
from reducer.ir.tiers import tier_of
from reducer.oracle import Pool, Result, failure, resolve_target
from reducer.oracle.programs import ProgramOracle
from reducer.shrink import Shrunk, shrink_program

LIMIT = 600.0
"""Seconds a candidate may take in each phase."""


def reduce(program: Program, libtpu: str, workers: int) -> tuple[Shrunk[Program], float]:
    """A reduction in new workers without an outcome cache, and its seconds from the first question on."""
    with Pool(resolve_target(libtpu), workers=workers, timeout=LIMIT) as pool:
        oracle = ProgramOracle(pool, require_host_placement=True)
        # Every worker imports JAX before anything is timed.
        first = [oracle.submit(program, fresh=False) for _ in range(workers)]
        signature = failure(first[0].result())
        assert signature is not None, "the start does not fail"
        begun = time.monotonic()

        def wanted(result: Result) -> bool:
            return failure(result) == signature

        shrunk = shrink_program(program, oracle, wanted, level=tier_of(program), placed=True)
        return shrunk, time.monotonic() - begun


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", action="append", required=True, help="the name of a start of reducers.py")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    ratios: list[float] = []
    for name, _, libtpu, program in starts.all_starts():
        if name not in options.start:
            continue
        (one, alone), (two, both) = (reduce(program, libtpu, workers) for workers in (1, 2))
        same = encode_program(one.program) == encode_program(two.program) and one.compiles == two.compiles
        ratios.append(alone / both)
        rows.append(
            (
                name,
                f"{size(program)} → {size(one.program)}",
                str(one.compiles),
                str(two.asked),
                f"{alone:.1f}",
                f"{both:.1f}",
                f"{alone / both:.2f}",
                "the same" if same else "DIFFERENT",
            )
        )
        print(*rows[-1], file=sys.stderr, flush=True)
    heads = ("start", "equations", "compiles", "asked by two", "one worker, s", "two, s", "times as fast", "bytes")
    median = f"Median: {statistics.median(ratios):.2f} times as fast." if ratios else "No such start."
    publish("workers", f"## One worker and two, live\n\n{table(heads, rows)}\n\n{median}", write=options.write)


if __name__ == "__main__":
    main()
