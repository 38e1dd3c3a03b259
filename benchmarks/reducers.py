"""scanshrink's reducer beside every other: the same starts, the same real compiler, the same acceptance.

    pip install -r benchmarks/requirements-peers.txt      (Python 3.12 or newer; C-Vise is a package of its own)
    python benchmarks/reducers.py run --again --replay --level tens
    python benchmarks/reducers.py table --write

`run` records every outcome under --work, and asks the compiler only about what is neither there nor in `peers/packed/`,
where the repository has what was recorded for the published figures; with --replay it never does, and needs no libtpu.
`pack` adds recordings and scores to the repository's. `peers/` holds the adapters; `add` and `embed` make new starts.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import msgspec
from common import RESULTS, ROOT, publish
from peers import packed, starts
from peers.contenders import (
    Contender,
    ddmin,
    hddr,
    hypothesis_stock,
    hypothesis_unlimited,
    lithium,
    shrink_ray_json,
    shrink_ray_text,
)
from peers.contest import Meter, Score, Start, run
from peers.cvise import cvise
from peers.ours import OURS, reduce_ours, with_violations
from peers.picture import picture
from peers.recording import Recorder, recorders
from peers.tables import sections

from reducer.errors import ScanshrinkError
from reducer.ir.order import size

#: In the order of the tables.
CONTENDERS: dict[str, Contender] = {
    "picireny HDDr+hoist": hddr,
    "picireny, equations only": hddr,
    "picire ddmin": ddmin,
    "Lithium": lithium,
    "Hypothesis": hypothesis_stock,
    "Hypothesis, no limits": hypothesis_unlimited,
    "Shrink Ray, JSON": shrink_ray_json,
    "Shrink Ray, text": shrink_ray_text,
    "C-Vise, text": cvise,
}


def compare(options: argparse.Namespace) -> None:
    """Run contenders on starts."""
    work: Path = options.work
    names = [OURS, *CONTENDERS] if options.contender is None else options.contender
    with recorders(work / "recordings", live=not options.replay, packed=packed.read) as recorder_of:
        for name, kind, libtpu, program in starts.all_starts():
            recorder = recorder_of(libtpu)
            if options.start and not any(part in name for part in options.start):
                continue
            if options.level and starts.level_of(size(program)) not in options.level:
                continue
            start = starts.start_of(name, kind, libtpu, program, recorder)
            for contender in names:
                if options.again or (contender, name) not in packed.scores_in(work):
                    score = _one(contender, start, recorder, options)
                    work.mkdir(parents=True, exist_ok=True)
                    with (work / "scores.jsonl").open("ab") as file:
                        file.write(msgspec.json.encode(score) + b"\n")


def _one(contender: str, start: Start, recorder: Recorder, options: argparse.Namespace) -> Score:
    begun = time.monotonic()
    meter = Meter(
        start, recorder, options.limit, options.patience, contender.endswith("equations only"), options.seconds
    )
    if contender == OURS:
        score = reduce_ours(meter)
    else:
        score = with_violations(run(contender, CONTENDERS[contender], meter), recorder, options.neighbours)
    print(
        f"{time.monotonic() - begun:5.0f} s  {contender:22} {start.name:42} {score.start_size:4} -> {score.size:3}  "
        f"{score.compiles:5} compiles, {score.proposals:6} proposals{'' if score.ended else ', stopped'}"
        f"{'' if not score.violations else ', not minimal'}  ({recorder.seconds:.0f} s of compiler)",
        file=sys.stderr,
        flush=True,
    )
    return score


def show(options: argparse.Namespace) -> None:
    """Print the tables, and with --write put them into docs/benchmarks.md."""
    with recorders(options.work / "recordings", live=False, packed=packed.read) as recorder_of:
        all_ = [starts.start_of(*one, recorder_of(one[2])) for one in starts.all_starts()]
    names = {start.name for start in all_}
    scores = [score for score in packed.scores_in(options.work).values() if score.start in names]
    order = [OURS, *CONTENDERS]
    publish("reducers", sections(scores, order, all_), write=options.write)
    if options.write:
        (RESULTS.parent / "reducers.svg").write_text(picture(scores, order))


def pack(options: argparse.Namespace) -> None:
    """Put what is under --work into the repository, beside what it has."""
    for file in sorted((options.work / "recordings").glob("*.jsonl")):
        print(f"{file.stem}: {packed.pack_recording(file.stem, file.read_bytes())} programs")
    stored = {name for name, *_ in starts.all_starts()}
    scores = {cell: score for cell, score in packed.scores_in(options.work).items() if score.start in stored}
    packed.pack_scores(scores)
    print(f"{len(scores)} scores")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / ".reducers", help="recordings and scores")
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run", help="run contenders on starts")
    one.add_argument("--level", action="append", choices=starts.LEVELS)
    one.add_argument("--start", action="append", help="only starts whose name contains this")
    one.add_argument("--contender", action="append", choices=[OURS, *CONTENDERS])
    one.add_argument("--limit", type=int, default=1000, help="compiles after which a contender is stopped")
    one.add_argument("--patience", type=int, default=20000, help="proposals after which a contender is stopped")
    one.add_argument("--seconds", type=float, default=3600, help="seconds of a worker after which one is stopped")
    one.add_argument("--neighbours", type=int, default=24, help="neighbours of a peer's result looked at")
    one.add_argument("--replay", action="store_true", help="never compile: everything is recorded")
    one.add_argument("--again", action="store_true", help="also what has a score")
    one.set_defaults(run=compare)
    table = commands.add_parser("table", help="print the tables")
    table.add_argument("--write", action="store_true", help="put them into docs/benchmarks.md")
    table.set_defaults(run=show)
    commands.add_parser("pack", help="put recordings and scores into the repository").set_defaults(run=pack)
    add = commands.add_parser("add", help="store a start: a case.json or a program's .json")
    add.add_argument("name")
    add.add_argument("kind", choices=("hunt", "captured", "seed"))
    add.add_argument("libtpu")
    add.add_argument("file", type=Path)
    add.set_defaults(run=lambda o: starts.add(o.name, o.kind, o.libtpu, o.file))
    embed = commands.add_parser("embed", help="embed a stored start in a model, and store the recipe")
    embed.add_argument("find")
    embed.add_argument("equations", type=int)
    embed.add_argument("--seeds", type=int, default=20)
    embed.set_defaults(run=_embed)
    options = parser.parse_args()
    try:
        options.run(options)
    except ScanshrinkError as error:
        sys.exit(str(error))


def _embed(options: argparse.Namespace) -> None:
    with recorders(options.work / "recordings", live=True, packed=packed.read) as recorder_of:
        recipe = starts.embed(options.find, options.equations, options.seeds, recorder_of)
        print(recipe or f"{options.find} does not fail in any of {options.seeds} models")


if __name__ == "__main__":
    main()
