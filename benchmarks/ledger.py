"""How well lost offloads are told from kept ones, how soon a hunt finds one, and what the memory ledger costs.

    python benchmarks/ledger.py alarms --programs 2000 --libtpu 0.0.52 --libtpu 0.0.42.1 --write
    python benchmarks/ledger.py losses --programs 300 --write
    python benchmarks/ledger.py find --seeds 5 --jobs 2 --write
    python benchmarks/ledger.py table --write
    python benchmarks/ledger.py overhead --programs 150 --write

Ground truth is a reading of the compiler's buffer assignment (`ledger_truth.py`) for stacks known from how a program
was put together (`ledger_shapes.py`); neither shares code with the rule. `ledger_asked.py` asks both.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

from common import ROOT, publish, spread, table
from ledger_asked import TOPOLOGY, judged
from ledger_shapes import SHAPES, Planted, branch, nest, unrolled

from reducer.oracle.outcome import Compiled
from reducer.oracle.verdict import verdict


def alarms(options: argparse.Namespace) -> None:
    """False alarms over programs of ten shapes, drawn evenly."""
    names = list(SHAPES)
    text = "## Lost offloads: false alarms\n\n"
    for release in options.libtpu or ["0.0.52", "0.0.42.1"]:
        rng = Random(options.seed)
        planted = [SHAPES[names[i % len(names)]](rng) for i in range(options.programs)]
        planted = [one for one in planted if not options.shape or one.shape in options.shape]
        rows: dict[str, Counter[str]] = {name: Counter() for name in names}
        for number, one in enumerate(judged(planted, release, options)):
            count = rows[one.planted.shape]
            alarm = one.word == "lost-offload"
            count["programs"] += 1
            if one.kept is None:
                count["not compiled"] += 1
                continue
            count["kept" if one.kept else "lost"] += 1
            count["unjudged"] += one.word == "not-measurable"
            if alarm == one.kept:
                count["false alarms" if alarm else "missed"] += 1
                kind = "FALSE ALARM" if alarm else "MISSED"
                print(f"{kind} {one.planted.shape} {one.loss} {one.planted.stacks}", file=sys.stderr)
                if options.keep:
                    Path(options.keep, f"{release}-{number}-{kind.split()[0].lower()}.py").write_text(one.planted.text)
            if number % 50 == 49:
                print(f"{release}: {number + 1} of {len(planted)}", file=sys.stderr, flush=True)
        heads = ("programs", "not compiled", "kept", "lost", "false alarms", "missed", "unjudged")
        cells = [(name, *(rows[name][h] for h in heads)) for name in names]
        cells.append(("all", *(sum(rows[n][h] for n in names) for h in heads)))
        text += f"On {release}, seed {options.seed}:\n\n{table(('shape', *heads), cells)}\n\n"
    text += (
        "*kept* and *lost* are by the buffer assignment; *false alarms* are kept and called lost, *missed* the reverse."
    )
    publish("ledger-alarms", text, write=options.write)


def losses(options: argparse.Namespace) -> None:
    """Recall on planted losses: nested scans on 0.0.52, an inner scan of one step on 0.0.36, and two sorts more."""
    rows = []
    for release, draw, part in PLANTED:
        rng = Random(options.seed)
        planted = [draw(rng) for _ in range(round(options.programs * part))]
        if options.shape and planted[0].shape not in options.shape:
            continue
        found = list(judged(planted, release, options))
        lost = [one for one in found if one.kept is False]
        hit = [one for one in lost if one.word == "lost-offload"]
        for one in lost:
            if one.word != "lost-offload":
                print(f"MISSED {one.planted.shape} {one.planted.stacks} {one.word}", file=sys.stderr)
        false = sum(one.kept is True and one.word == "lost-offload" for one in found)
        shown = ", ".join(f"{n} {what}" for what, n in Counter(one.loss for one in hit).most_common())
        uncompiled = sum(one.kept is None for one in found)
        share = f"{len(hit) / max(len(lost), 1):.1%}"
        rows.append((release, planted[0].shape, len(found), uncompiled, len(lost), len(hit), share, false, shown))
    heads = ("libtpu", "shape", "programs", "not compiled", "lost", "told", "recall", "false alarms", "as")
    publish("ledger-losses", "## Lost offloads: recall\n\n" + table(heads, rows), write=options.write)


#: Which losses are planted on which release, and their share.
PLANTED: tuple[tuple[str, Callable[[Random], Planted], float], ...] = (
    ("0.0.52", lambda rng: nest(rng, barrier=False), 0.5),
    ("0.0.36", lambda rng: nest(rng, barrier=True), 0.5),
    ("0.0.52", unrolled, 0.2),
    ("0.0.52", branch, 0.1),
    ("0.0.42.1", branch, 0.1),
)


def find(options: argparse.Namespace) -> None:
    """Seconds from a cold start to the first lost offload, and the smallest case it is reduced to."""
    from first_failure import library_of

    rows = []
    for release in options.libtpu or ["0.0.52", "0.0.36"]:
        library = library_of(release)
        firsts: list[float] = []
        sizes: list[int] = []
        for seed in range(options.seeds):
            first, size = _hunt(library, seed, options)
            print(f"{release} seed {seed}: first {first}, smallest {size}", file=sys.stderr, flush=True)
            firsts.append(options.limit if first is None else first)
            sizes += [size] if size is not None else []
        rows.append((release, spread(firsts), spread(sizes, 0), f"{len(sizes)} of {options.seeds}"))
    heads = ("libtpu", "first lost offload, s: median (min-max)", "equations of the smallest", "seeds reduced")
    publish("ledger-find", "## Lost offloads: from nothing\n\n" + table(heads, rows), write=options.write)


def _hunt(library: str, seed: int, options: argparse.Namespace) -> tuple[float | None, int | None]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "reducer.cli", "hunt", "--libtpu", library, "--seed", str(seed), "--json"]
        command += ["--jobs", str(options.jobs), "--seconds", str(options.limit), "--grace", str(options.grace)]
        command += ["--corpus", f"{folder}/corpus", *(["--kinds", options.kinds] if options.kinds else [])]
        environment = {**os.environ, "SCANSHRINK_CACHE": f"{folder}/cache"}
        begun, first = time.monotonic(), None
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
        )
        assert process.stderr is not None
        assert process.stdout is not None
        reduced = False
        for line in process.stderr:
            if line.startswith("new failure lost-offload"):
                first = first or time.monotonic() - begun
            if line.startswith("lost-offload: ") and not reduced:
                reduced = True
                process.send_signal(signal.SIGINT)  # one reduced find is enough
        data: dict[str, Any] = json.loads(process.stdout.read() or "{}")
        process.wait()
        rows = [
            r for r in data.get("signatures", ()) if r["kind"] == "lost-offload" and r["reduce_seconds"] is not None
        ]
        return first, min((row["size"] for row in rows), default=None)


BIG = """
PREVENT_CSE, ACT, DTYPE = False, jnp.tanh, jnp.float32

def nested_with(keep):
    inner = keep(layer, "h")
    def block(c, w):
        return lax.scan(inner, c, w)[0], None
    return lambda x, ws: lax.scan(block, x, ws)[0]

def flat_with(keep):
    return lambda x, ws: lax.scan(keep(layer, "h"), x, ws)[0]
"""

CASES = (
    ("flat, offloaded", "flat_with(offloaded)", (12,)),
    ("flat, saved on the device", "flat_with(saved)", (12,)),
    ("nested, offloaded", "nested_with(offloaded)", (4, 3)),
    ("nested, saved on the device", "nested_with(saved)", (4, 3)),
)


#: Batch and width: 64 MiB of f32 each.
SIZES = ((16384, 1024), (4096, 4096))


def big(options: argparse.Namespace) -> None:
    """Device and host memory of 12 layers that each keep 64 MiB, by where they keep it."""
    from ledger_shapes import HEAD

    from reducer.oracle.jobs import ProgramJob
    from reducer.oracle.pool import Pool
    from reducer.oracle.target import resolve_target

    rows = []
    with Pool(resolve_target("0.0.52", TOPOLOGY), 1) as pool:
        for (batch, width), (name, function, loops) in product(SIZES, CASES):
            x, ws = (batch, width), (*loops, width, width)
            call = f"jax.jit(jax.grad(total({function}), 1)).trace(*given(devices, {x}, {ws}))"
            head = "PREVENT_CSE = ACT = DTYPE = None\n" + HEAD
            result = pool.submit(
                ProgramJob(f"{head}{BIG}\ndef trace(devices):\n    return {call}\n"), want_ledger=True, timeout=1800
            ).result()
            assert isinstance(result.answer, Compiled), result.answer
            memory = result.answer.memory
            assert memory.host_temp is not None
            assert memory.temp is not None
            rows.append((f"[{batch},{width}]", name, memory.host_temp >> 20, memory.temp >> 20, verdict(result).word))
    text = (
        "## Device memory at 768 MiB of residuals\n\nThe gradient of 12 layers `tanh(h @ w)` for their weights, each "
        "layer's input of 64 MiB kept, v5e, libtpu 0.0.52. How much else there is depends on the width: the weights' "
        "gradient, and their copy in bf16.\n\n"
    )
    heads = ("kept, f32", "program", "host temp, MiB", "device temp, MiB", "verdict")
    publish("ledger-table", text + table(heads, rows), write=options.write)


def overhead(options: argparse.Namespace) -> None:
    """Worker seconds of programs as a hunt draws them, with and without the ledger; each asked for in turn."""
    from reducer.errors import ProgramError
    from reducer.hunt import Source
    from reducer.oracle.pool import Pool
    from reducer.oracle.programs import program_job
    from reducer.oracle.target import resolve_target
    from strategies import hunting

    source = Source(hunting(), options.seed)
    seconds = {False: 0.0, True: 0.0}
    asked = 0
    with Pool(resolve_target("0.0.52", TOPOLOGY), 1) as pool:
        for program in source:
            try:
                job = program_job(program, require_host_placement=True)
            except ProgramError:
                continue
            first = pool.submit(job).result()  # JAX's own caches are warm for both after this
            if not isinstance(first.answer, Compiled):
                continue
            for want in (False, True) if asked % 2 else (True, False):
                result = pool.submit(job, want_ledger=want).result()
                seconds[want] += result.seconds_lower + result.seconds_compile
            asked += 1
            if asked == options.programs:
                break
    source.close()
    more = seconds[True] / seconds[False] - 1
    cells = [(asked, f"{seconds[False]:.1f}", f"{seconds[True]:.1f}", f"{more:+.1%}")]
    heads = ("programs", "worker seconds without", "with", "more")
    publish("ledger-overhead", "## What the memory ledger costs\n\n" + table(heads, cells), write=options.write)


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["alarms", "losses", "find", "table", "overhead"])
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--libtpu", action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a hunt generates")
    parser.add_argument("--grace", type=float, default=240.0, help="seconds more for reducing")
    parser.add_argument("--kinds", help="as of `scanshrink hunt`; default: all")
    parser.add_argument("--shape", action="append", help="only these shapes (alarms, losses)")
    parser.add_argument("--store", help="file to which what the compiler said is appended (alarms, losses)")
    parser.add_argument("--replay", help="such a file, judged again without compiling")
    parser.add_argument("--keep", help="folder for the texts of programs that were judged wrongly")
    parser.add_argument("--write", action="store_true", help="put the section into docs/benchmarks.md")
    options = parser.parse_args()
    {"alarms": alarms, "losses": losses, "find": find, "table": big, "overhead": overhead}[options.what](options)


if __name__ == "__main__":
    main()
