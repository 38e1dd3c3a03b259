"""Do two programs compute the same? Both run on the CPU, on the same inputs.

Run as a process (``python -m reducer.lowering.equivalence A.json B.json``) it prints the largest difference, so that
nothing else has to import JAX.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from reducer.errors import ProgramError
from reducer.ir.codec import decode, encode
from reducer.ir.equations import Program

SECONDS = 300.0
"""Longest that two programs may take together."""


def largest_difference(a: Program, b: Program, *, seconds: float = SECONDS) -> float:
    """The largest absolute difference of any two results, run in a process of its own; 0.0 for bitwise equal ones.

    Raises:
        ProgramError: the programs take or give different types, one does not run on a CPU, or both take too long.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("a.json", "b.json")]
        for path, program in zip(paths, (a, b), strict=True):
            path.write_bytes(encode(program))
        command = [sys.executable, "-m", "reducer.lowering.equivalence", *map(str, paths)]
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"}
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise ProgramError(f"both programs did not run on the CPU within {seconds:g} s") from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise ProgramError(f"not compared on the CPU: {said[-1] if said else f'exit code {done.returncode}'}")
    return float(done.stdout)


def difference(a: Program, b: Program, *, seed: int = 0) -> float:
    """As `largest_difference`, in this process, which must run JAX on the CPU."""
    import numpy as np

    kinds = [[var.type for var in program.block.params] for program in (a, b)]
    if kinds[0] != kinds[1]:
        raise ProgramError("the programs take different inputs")
    rng = np.random.default_rng(seed)
    values = [_input(type_.dtype, type_.shape, rng) for type_ in kinds[0]]
    results = [_run(program, values) for program in (a, b)]
    shapes = [[(str(x.dtype), x.shape) for x in result] for result in results]
    if shapes[0] != shapes[1]:
        raise ProgramError("the programs give different results")
    largest = 0.0
    for x, y in zip(*results, strict=True):
        wide = [np.asarray(v).astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in (x, y)]
        same = (wide[0] == wide[1]) | (np.isnan(wide[0]) & np.isnan(wide[1]))
        gaps = np.abs(np.where(same, 0.0, wide[0]) - np.where(same, 0.0, wide[1]))
        largest = max(largest, float(np.max(gaps, initial=0.0)))
    return largest


def _input(dtype: str, shape: tuple[int, ...], rng: Any) -> Any:
    import numpy as np
    from jax import numpy as jnp

    if dtype not in jnp.__dict__ and dtype != "bool":
        raise ProgramError(f"no inputs of dtype {dtype} can be drawn")
    drawn = rng.standard_normal(shape)
    if dtype == "bool":
        return drawn > 0
    if dtype.startswith(("int", "uint")):
        return np.asarray(np.abs(drawn) * 3).astype(dtype)
    return np.asarray(drawn).astype(getattr(jnp, dtype))


def _run(program: Program, values: list[Any]) -> list[Any]:
    import jax

    from reducer.lowering.load import load

    module = load(program, typed=False)
    lowered = module.lower([jax.devices("cpu")[0]] * (program.mesh.size if program.mesh else 1))
    return list(jax.tree.leaves(lowered.compile()(*values)))


if __name__ == "__main__":
    programs = [decode(Path(name).read_bytes()) for name in sys.argv[1:3]]
    print(difference(programs[0], programs[1]))
