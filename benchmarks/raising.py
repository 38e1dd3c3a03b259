"""What becomes of modules that are raised to programs: how large they are, and whether they still fail in the same way.

    python benchmarks/raising.py train_step.mlir.gz --libtpu 0.0.52 --write

Modules that are given, and those of the corpus, are raised, and both the module and the program are put to the
compiler. Outcomes that are known already are taken from the cache, so a second run takes no time; nothing is timed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from common import ROOT, publish, table

from reducer.errors import ProgramError
from reducer.ir.order import size as equations
from reducer.oracle import Pool, resolve_target
from reducer.oracle.cache import OutcomeCache
from reducer.oracle.modules import ModuleOracle
from reducer.oracle.outcome import Result
from reducer.oracle.programs import ProgramOracle
from reducer.oracle.verdict import verdict
from reducer.raising import raise_module
from reducer.stablehlo import read_module
from reducer.stablehlo.order import size as operations

TOPOLOGY = "v5e:2x2"
SECONDS = 900.0
"""A compile may take this long: a train step takes half a minute alone, and minutes on a busy machine."""


@dataclass(frozen=True)
class Row:
    """One module: `program` is None if it is not expressible."""

    name: str
    operations: int
    equations: int | None
    module: str
    program: str | None


def said(result: Result) -> str:
    """The failure, or that there is none."""
    failure = verdict(result).failure
    return type(result.outcome).__name__.lower() if failure is None else failure.text


def rows(paths: Sequence[Path], pool: Pool) -> Iterator[Row]:
    """Raise each module and ask about both."""
    for path in paths:
        name = path.parent.name if path.name == "program.mlir" else path.name
        module = read_module(path.read_bytes())
        before = said(ModuleOracle(pool).submit(module).result())
        try:
            program = raise_module(module)
        except ProgramError as error:
            print(f"{name}: {error}")
            yield Row(name, operations(module), None, before, None)
            continue
        yield Row(
            name, operations(module), equations(program), before, said(ProgramOracle(pool).submit(program).result())
        )


def main() -> None:
    """Measure, print, and with ``--write`` publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", type=Path, help="modules besides those of the corpus")
    parser.add_argument("--libtpu", default=None)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="update docs/benchmarks.md")
    options = parser.parse_args()
    target = resolve_target(options.libtpu, TOPOLOGY, ())
    paths = [*options.modules, *sorted((ROOT / "corpus").glob("*/program.mlir"))]
    with OutcomeCache() as cache, Pool(target, options.jobs, timeout=SECONDS, cache=cache) as pool:
        found = list(rows(paths, pool))
    same = [row for row in found if row.module == row.program]
    failing = [row for row in found if row.module not in ("compiled", "invalid")]
    kept = [row for row in failing if row in same]
    shown = [row for row in found if row not in same or row.operations > 200]
    lines = [
        "## Raising modules",
        "",
        f"{len(found)} modules on libtpu {target.libtpu}: "
        f"{len([r for r in found if r.program is not None])} can be raised; "
        f"{len(kept)} of the {len(failing)} that fail here do so with the same signature as programs, "
        f"{len(same) - len(kept)} of the {len(found) - len(failing)} others compile both ways. "
        "Large ones, and those that differ:",
        "",
        table(
            ["module", "operations", "equations", "the module", "the program"],
            [(r.name, r.operations, r.equations or "-", r.module, r.program or "not expressible") for r in shown],
        ),
    ]
    publish("raising", "\n".join(lines), write=options.write)


if __name__ == "__main__":
    main()
