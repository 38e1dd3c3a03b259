"""How often the candidates of each pass are accepted, over the starts of `reducers.py`: what a reduction supposes.

    python benchmarks/chances.py --work DIR             (recordings as `reducers.py run` leaves them)
    python benchmarks/chances.py --work DIR --write     (puts it into reducer/passes/chances.py)

Of each pass: the chance of a candidate in each situation (`reducer.passes.base.Situation`).
Counted are all questions of whole reductions with one worker. Each chance leans towards that of all passes together,
as if they had given some answers more.
"""

from __future__ import annotations

import argparse
import collections
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from common import ROOT
from peers import starts
from peers.contest import Start
from peers.recording import RecordedOracle, Recorder, fails_as, label_of, recorders

from reducer.errors import InputError
from reducer.ir.equations import Program
from reducer.ir.order import size
from reducer.ir.tiers import tier_of
from reducer.passes.base import Chances, Situation
from reducer.shrink import Event, PassStarted, Tried, shrink_program

TABLE = ROOT / "reducer" / "passes" / "chances.py"
#: Answers of all passes together that are added to those of each.
LEAN = 4
Counts = dict[tuple[str, Situation], list[int]]
SITUATIONS = get_args(Situation)


def counter(counts: Counts) -> Callable[[Event[Program]], None]:
    """Count the answers of one reduction."""
    situation: Situation = "first"
    seen: set[str] = set()

    def tell(event: Event[Program]) -> None:
        nonlocal situation
        match event:
            case PassStarted(name=name):
                situation = "again" if name in seen else "first"
                seen.add(name)
            case Tried(name=name, wanted=wanted):
                counts[name.rpartition("/")[2], situation][wanted] += 1
                situation = "lucky" if wanted else "unlucky"

    return tell


def count(counts: Counts, start: Start, recorder: Recorder) -> None:
    """Count the answers of a start's reduction."""
    oracle = RecordedOracle(recorder, lambda *_: None)
    wanted, level = fails_as(start.label), tier_of(start.program)
    shrink_program(start.program, oracle, wanted, level=level, placed=True, label=label_of, events=counter(counts))


def chances(counts: Counts) -> dict[str, Chances]:
    """The table, by pass."""
    general = {}
    for situation in SITUATIONS:
        answers = [both for (_, where), both in counts.items() if where == situation]
        general[situation] = sum(good for _, good in answers) / max(sum(map(sum, answers)), 1)

    def one(name: str) -> Chances:
        found = []
        for situation in SITUATIONS:
            bad, good = counts.get((name, situation), (0, 0))
            found.append((good + LEAN * general[situation]) / (bad + good + LEAN))
        return Chances(*(min(max(round(chance, 2), 0.01), 0.99) for chance in found))

    return {name: one(name) for name in (*sorted({name for name, _ in counts}), "")}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / ".reducers", help="recordings")
    parser.add_argument("--write", action="store_true", help=f"put the table into {TABLE.relative_to(ROOT)}")
    options = parser.parse_args()
    counts: Counts = collections.defaultdict(lambda: [0, 0])
    with recorders(options.work / "recordings", live=True) as recorder_of:
        for name, kind, libtpu, program in starts.all_starts():
            if starts.level_of(size(program)) == "thousands":
                continue
            recorder = recorder_of(libtpu)
            try:
                count(counts, starts.start_of(name, kind, libtpu, program, recorder), recorder)
            except InputError as error:
                print(f"left out: {error}")
    head, _, _ = TABLE.read_text().partition("CHANCES: Final")
    rows = [
        f'    "{name}": Chances({row.first}, {row.again}, {row.lucky}, {row.unlucky}),'
        for name, row in chances(counts).items()
    ]
    text = f"{head}CHANCES: Final[Mapping[str, Chances]] = {{\n" + "\n".join(rows) + "\n}\n"
    if options.write:
        TABLE.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
