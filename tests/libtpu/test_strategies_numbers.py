"""Generated programs compute finite numbers on a CPU: a compiler team dismisses a reproducer that does not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

# In a process of its own: four CPU devices have to be asked for before JAX starts.
SCRIPT = """
import hypothesis, warnings
import jax, jax.numpy as jnp, numpy as np
from hypothesis import HealthCheck, Phase, given, settings
import strategies
from reducer.lowering.emit import emit

warnings.filterwarnings("ignore", message="Some donated buffers were not usable")
rng = np.random.default_rng(0)
programs = []

@hypothesis.seed(4)
@settings(max_examples=40, database=None, deadline=None, phases=[Phase.generate],
          suppress_health_check=list(HealthCheck))
@given(strategies.hunting())
def take(program):
    programs.append(program)

take()

def argument(type_):
    # Matrices at the scale models start from: gradients of deep stacks of larger ones leave any float behind.
    data = rng.integers(0, 3, type_.shape) if type_.integer else 0.1 * rng.standard_normal(type_.shape)
    value = jnp.asarray(data, dtype=type_.dtype)
    return jax.device_put(value, jax.memory.Space.Host) if type_.on_host else value

done = 0
for program in programs:
    if program.mesh is not None:
        continue  # its sharded inputs need a layout that only the entry code knows
    namespace = {}
    exec(emit(program), namespace)
    results = jax.jit(namespace["fn"])(*[argument(var.type) for var in program.block.params])
    for result in jax.tree.leaves(results):
        value = jax.device_put(result, jax.memory.Space.Device)
        assert bool(jnp.isfinite(value.astype(jnp.float32)).all()), emit(program)
    done += 1
print(done)
"""


def test_finite_on_a_cpu() -> None:
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "CI": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert int(done.stdout) >= 25
