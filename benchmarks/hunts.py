"""What a hunt yields: failing share, families, skeletons, worker-busy fraction, compiles and seconds to a minimum.

python benchmarks/hunts.py --libtpu 0.0.42.1 --seconds 600 --jobs 2 --write
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from typing import Any

from common import publish, spread, table


def run(version: str, seconds: float, grace: float, seed: int, jobs: int) -> dict[str, Any]:
    """One hunt with an empty cache and corpus; its ``--json``."""
    from first_failure import library_of

    library = library_of(version)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "reducer.cli", "hunt", "--libtpu", library, "--seed", str(seed), "--json"]
        command += [
            "--jobs",
            str(jobs),
            "--seconds",
            str(seconds),
            "--grace",
            str(grace),
            "--corpus",
            f"{folder}/corpus",
        ]
        environment = {**os.environ, "SCANSHRINK_CACHE": f"{folder}/cache"}
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
        result: dict[str, Any] = json.loads(done.stdout)
        return result


def summarise(version: str, generating: float, result: dict[str, Any]) -> tuple[object, ...]:
    """One row of the table."""
    families: Counter[str] = Counter()
    for row in result["signatures"]:
        families[row["family"]] += row["finds"]
    total = sum(families.values())
    reduced = [row for row in result["signatures"] if row["reduce_seconds"] is not None]
    return (
        version,
        result["seed"],
        f"{generating:.0f}",
        result["compiled"],
        f"{result['failing'] / max(result['compiled'], 1):.1%}",
        len(families),
        f"{max(families.values(), default=0) / max(total, 1):.0%}",
        f"{result['skeletons'] / max(result['compiled'], 1):.0%}",
        f"{result['worker_busy_fraction']:.0%}",
        spread([row["reduce_seconds"] for row in reduced]),
        spread([row["compiles_to_minimum"] for row in reduced], 0),
        spread([row["size"] for row in reduced], 0),
        f"{len(reduced)} of {len(result['signatures'])}",
    )


HEADS = (
    "libtpu",
    "seed",
    "generating, s",
    "compiled",
    "failing",
    "families",
    "largest family",
    "distinct skeletons",
    "workers busy",
    "find to minimum, s",
    "compiles to minimum",
    "size",
    "shrunk to the end",
)


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libtpu", action="append", default=None)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--grace", type=float, default=120, help="seconds more for reductions")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="put the section into docs/benchmarks.md")
    options = parser.parse_args()
    versions = options.libtpu or ["0.0.52", "0.0.42.1"]
    results = {v: run(v, options.seconds, options.grace, options.seed, options.jobs) for v in versions}
    rows = [summarise(version, options.seconds, result) for version, result in results.items()]
    text = f"## What a hunt yields on {' and '.join(versions)}\n\n" + table(HEADS, rows)
    for version, result in results.items():
        shown = [
            (row["family"], row["tier"], row["finds"], row["size"], row["compiles_to_minimum"], row["reduce_seconds"])
            for row in sorted(result["signatures"], key=lambda row: -row["finds"])
        ]
        heads = ("family", "tier", "finds", "size", "compiles to minimum", "s")
        text += f"\n\nDistinct failures on {version}:\n\n" + table(heads, shown)
    publish("hunts-" + "-".join(versions), text, write=options.write)


if __name__ == "__main__":
    main()
