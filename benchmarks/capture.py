"""What `scanshrink capture` costs a user's run, and that it changes no result.

    python benchmarks/capture.py --pairs 5 --write

Each workload runs with and without, in turn. Processor time (of the command and of `capture` together) is compared:
on a shared machine the clock says more about the others. Printed results must agree to the last bit.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from common import ROOT, publish, spread, table

#: Many small compiles: what a hook between JAX and the compiler feels most.
SMALL = """
import jax, jax.numpy as jnp
def model(n):
    def step(w, x):
        value, grad = jax.value_and_grad(lambda w: (jnp.tanh(x @ w) ** n).mean())(w)
        return w - 0.1 * grad, value
    return jax.jit(step)
for n in range(60):
    w, x = jnp.full((64, 64), 0.01), jnp.linspace(-1, 1, 512).reshape(8, 64)
    step = model(n + 1)
    for _ in range(20): w, value = step(w, x)
    print(n, repr(float(value)))
"""
#: One large compile: a training step, ahead of time for a TPU.
LARGE = f"""
import os, sys
os.environ.update(TPU_SKIP_MDS_QUERY="1", TPU_WORKER_HOSTNAMES="localhost", TPU_WORKER_ID="0",
    TPU_ACCELERATOR_TYPE="v5litepod-4", ALLOW_MULTIPLE_LIBTPU_LOAD="1", TPU_LOG_DIR="disabled")
sys.path.insert(0, {str(ROOT / "tests" / "models")!r})
import jax, inspect
from jax.experimental import topologies
devices = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices
import MODEL
step, arguments = MODEL.step(devices) if inspect.signature(MODEL.step).parameters else MODEL.step()
place = jax.sharding.SingleDeviceSharding(devices[0])
arguments = jax.tree.map(
    lambda a: a if a.sharding else jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=place), arguments)
lowered = step.lower(*arguments)
try: print(lowered.compile().memory_analysis().temp_size_in_bytes)
except Exception as error: print(str(error).splitlines()[0])
"""
WORKLOADS = {
    "60 small compiles and 1,200 steps on the CPU": SMALL,
    "a training step that compiles for a TPU": LARGE.replace("MODEL", "accumulation"),
    "a training step that fails for a TPU": LARGE.replace("MODEL", "pipeline"),
}


@dataclass
class Runs:
    """Figures of one way to run one workload."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    printed: set[str] = field(default_factory=set)

    def add(self, command: list[str], folder: Path) -> None:
        """Run it once more."""
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done.stderr
        self.wall.append(time.perf_counter() - started)
        self.cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        self.printed.add(done.stdout)


def measure(text: str, pairs: int) -> tuple[Runs, Runs]:
    """Plain runs and captured ones, alternating; the first of either is not counted."""
    plain, captured = Runs(), Runs()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.py").write_text(text)
        command = [sys.executable, "train.py"]
        wrapped = [sys.executable, "-m", "reducer.cli", "capture", "--", *command]
        for warm in (command, wrapped):
            Runs().add(warm, folder)
        for i in range(pairs):
            for runs, words in ((plain, command), (captured, wrapped))[:: 1 if i % 2 == 0 else -1]:
                runs.add(words, folder)
    return plain, captured


def main() -> None:
    """Measure, print, and on wish publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for name, text in WORKLOADS.items():
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        plain, captured = measure(text, arguments.pairs)
        ratios = [100 * (b / a - 1) for a, b in zip(plain.cpu, captured.cpu, strict=True)]
        same = "yes" if plain.printed == captured.printed and len(plain.printed) == 1 else "NO"
        rows.append((name, spread(plain.cpu), spread(captured.cpu), f"{spread(ratios)}%", spread(plain.wall), same))
        print(rows[-1], file=sys.stderr)
    heads = ("run", "plain, CPU s", "captured, CPU s", "more", "plain, s by the clock", "same results")
    text = f"## What capturing costs\n\nWanted: at most 5% more.\n\n{table(heads, rows)}"
    publish("capture", text, write=arguments.write)


if __name__ == "__main__":
    main()
