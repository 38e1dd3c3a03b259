"""Seconds from starting `scanshrink hunt`, cold, to the first failure of a wanted family at program tier.

A cold start is a new process with an empty cache folder: worker start-up, generation, compiling, all counted.

    python benchmarks/first_failure.py --seeds 10 --jobs 2 --write
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import publish, spread, table

#: (libtpu, family, what it stands for)
GOALS = (
    ("0.0.52", "bitcast-memory-space", "TRIP_COUNT_ONE-like"),
    ("0.0.50.1", "async-start-mismatch", "NESTED-like"),
)


def first(library: str, family: str, seed: int, jobs: int, limit: float) -> tuple[float | None, float | None]:
    """Seconds until the hunt reports a failure of `family` at program tier, and until it reports any failure."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "reducer.cli", "hunt", "--libtpu", library, "--seed", str(seed)]
        command += ["--jobs", str(jobs), "--seconds", str(limit), "--grace", "0", "--corpus", f"{folder}/corpus"]
        environment = {**os.environ, "SCANSHRINK_CACHE": f"{folder}/cache"}
        begun = time.monotonic()
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment
        )
        found: float | None = None
        anything: float | None = None
        assert process.stderr is not None
        for line in process.stderr:
            if not line.startswith("new failure "):
                continue
            anything = anything or time.monotonic() - begun
            if line.startswith(f"new failure {family} (program tier)"):
                found = time.monotonic() - begun
                break
        process.send_signal(signal.SIGINT)
        process.stderr.read()
        process.wait()
        return found, anything


def library_of(version: str) -> str:
    """The release's file, fetched before the clock starts, so that an empty cache does not mean a download."""
    from reducer.oracle.target import resolve_target

    return str(Path(resolve_target(version).path))


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds after which a seed counts as not found")
    parser.add_argument("--write", action="store_true", help="put the section into docs/benchmarks.md")
    options = parser.parse_args()
    rows = []
    for version, family, stands_for in GOALS:
        library = library_of(version)
        times = [first(library, family, seed, options.jobs, options.limit) for seed in range(options.seeds)]
        hits = [t for t, _ in times if t is not None]
        missed = options.seeds - len(hits)
        rows.append(
            (
                version,
                stands_for,
                family,
                spread([t if t is not None else options.limit for t, _ in times]),
                spread([t for _, t in times if t is not None]),
                f"{missed} of {options.seeds}",
            )
        )
        print(version, sorted(round(t, 1) for t in hits), file=sys.stderr, flush=True)
    heads = (
        "libtpu",
        "failure",
        "family",
        "first, s: median (min-max)",
        "any failure, s",
        f"not within {options.limit:g} s",
    )
    publish("first-failure", "## Cold start to first failure\n\n" + table(heads, rows), write=options.write)


if __name__ == "__main__":
    main()
