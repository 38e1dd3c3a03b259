"""How small StableHLO modules get, and what it costs.

    python benchmarks/modules.py train_step.mlir.gz --libtpu 0.0.52 --libtpu 0.0.42.1 --jobs 2 --write

Modules that are given, and the largest ones of the corpus that fail on a release, are each reduced from nothing known:
no outcome is cached. Seconds are of the whole reduction, on a machine that may have other things to do; CPU seconds are
those of the workers for compiling, which nothing else lengthens (but not those of compiles that died or took too long).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from common import ROOT, publish, table

from reducer.oracle import Pool, Result, failure, resolve_target
from reducer.oracle.modules import ModuleOracle
from reducer.shrink.model import Accepted, Event, Shrunk
from reducer.shrink.modules import shrink_module
from reducer.stablehlo import Module, read_module, to_text
from reducer.stablehlo.order import size

TOPOLOGY = "v5e:2x2"
FIRST_SECONDS = 900.0
PATIENCE = 2.5
"""A candidate may take this many times as long as the start, and at least half a minute."""


@dataclass(frozen=True)
class Row:
    """One module on one release."""

    name: str
    signature: str
    shrunk: Shrunk[Module]
    seconds: float
    cpu: float


class Metered(ModuleOracle):
    """Adds up the CPU time of the workers for compiling."""

    def __init__(self, pool: Pool, timeout: float) -> None:
        super().__init__(pool, timeout=timeout)
        self.cpu = 0.0

    def submit(self, candidate: Module, *, fresh: bool = False) -> Future[Result]:
        """As the oracle's."""
        future = super().submit(candidate, fresh=fresh)
        future.add_done_callback(self._note)
        return future

    def _note(self, future: Future[Result]) -> None:
        if not future.cancelled() and future.exception() is None:
            self.cpu += future.result().cpu_compile


def starts(pool: Pool, paths: Sequence[Path], corpus: int) -> Iterator[tuple[str, Module, Result]]:
    """The modules that were given, and the largest ones of the corpus, as far as they fail."""
    for path in paths:
        yield from _failing(pool, path.name.partition(".")[0], read_module(path.read_bytes()))
    found = sorted((ROOT / "corpus").glob("*/program.mlir"), key=lambda path: (-path.stat().st_size, path))
    left = corpus
    for path in found:
        if left == 0:
            return
        for one in _failing(pool, path.parent.name, read_module(path.read_bytes())):
            left -= 1
            yield one


def _failing(pool: Pool, name: str, module: Module) -> Iterator[tuple[str, Module, Result]]:
    result = ModuleOracle(pool, timeout=FIRST_SECONDS).submit(module).result()
    if failure(result) is not None:
        yield name, module, result


def reduce(pool: Pool, name: str, module: Module, first: Result, budget: int | None) -> Row:
    """Reduce one module while its signature stays."""
    signature = failure(first)
    assert signature is not None
    wanted: Callable[[Result], bool] = lambda result: failure(result) == signature  # noqa: E731
    oracle = Metered(pool, max(30.0, PATIENCE * first.seconds_compile))
    started = time.perf_counter()

    def told(event: Event[Module]) -> None:
        if isinstance(event, Accepted):
            took = time.perf_counter() - started
            print(f"{took:6.0f} s, {event.compiles} compiles: {event.size} ({event.name})", file=sys.stderr, flush=True)

    shrunk = shrink_module(module, oracle, wanted, label=failure, budget=budget, events=told)
    return Row(name, signature, shrunk, time.perf_counter() - started, oracle.cpu)


def report(rows: Sequence[Row], named: frozenset[str], libtpu: str) -> str:
    """The section."""
    heads = (
        "module",
        "operations",
        "left",
        "compiles",
        "until the first fixpoint",
        "seconds",
        "CPU seconds",
        "1-minimal",
    )
    cells = [
        (
            row.name,
            row.shrunk.start_size,
            size(row.shrunk.program),
            row.shrunk.compiles,
            row.shrunk.to_fixpoint,
            f"{row.seconds:.0f}",
            f"{row.cpu:.0f}",
            "yes" if row.shrunk.minimal else "no",
        )
        for row in rows
    ]
    parts = [f"## StableHLO modules on {libtpu}", table(heads, cells)]
    for row in rows:
        if row.name in named:
            text = to_text(row.shrunk.program)
            parts.append(f"What is left of {row.name} (`{row.signature}`):\n\n```mlir\n{text}```")
    return "\n\n".join(parts)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", type=Path, help="MLIR text or bytecode, gzipped or not")
    parser.add_argument("--libtpu", action="append", help="a release; several may be given")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--budget", type=int, help="most compiles for one reduction")
    parser.add_argument("--corpus", type=int, default=3, help="how many modules of the corpus, the largest first")
    parser.add_argument("--write", action="store_true", help="put the section into docs/benchmarks.md")
    arguments = parser.parse_args()
    named = frozenset(path.name.partition(".")[0] for path in arguments.modules)
    for spec in arguments.libtpu or [None]:
        rows = []
        with Pool(resolve_target(spec, TOPOLOGY, ()), arguments.jobs) as pool:
            libtpu = pool.target.libtpu
            for name, module, first in starts(pool, arguments.modules, arguments.corpus):
                rows.append(reduce(pool, name, module, first, arguments.budget))
        publish(f"modules-{libtpu}", report(rows, named, libtpu), write=arguments.write)


if __name__ == "__main__":
    main()
