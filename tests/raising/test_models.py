"""Whole modules: training steps written with the libraries people use, the seed's cases, generated programs."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings

import strategies
from reducer.ir.codec import decode
from reducer.ir.equations import Program, Scan, Transfer, While
from reducer.ir.text import to_text
from reducer.ir.walk import equations
from reducer.lowering.equivalence import difference
from reducer.lowering.load import load
from tests.capture.roundtrip import leaves, operations, same_numbers
from tests.capture.test_models import STEPS
from tests.raising.roundtrip import lowered_for, raised

jax = pytest.importorskip("jax")

SEEDS = Path(__file__).resolve().parents[1] / "seed"


def same_operations(before: Program, after: Program) -> None:
    """Two programs lower to the same operations, after calls are inlined and unused and repeated ones removed."""
    from jax.extend.mlir import passmanager

    counts = []
    for program in (before, after):
        module = lowered_for("tpu", program).compiler_ir("stablehlo")
        with module.context:
            passes = "inline,canonicalize,cse,symbol-dce,canonicalize,cse"
            passmanager.PassManager.parse(f"builtin.module({passes})").run(module.operation)
        counts.append(operations(str(module)))
    assert counts[0] == counts[1], f"lost {counts[0] - counts[1]}, gained {counts[1] - counts[0]}"


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_a_training_step_comes_back(name: str) -> None:
    fn, args = STEPS[name]()
    traced = jax.jit(lambda *values: fn(*values)).trace(*args)
    program = raised(traced.lower(lowering_platforms=("tpu",)))
    again = raised(lowered_for("tpu", program))
    same_operations(program, again)
    if name != "nnx":
        assert {e.memory for _, _, e in equations(program) if isinstance(e, Transfer)} == {"host", "device"}
    assert not [e for _, _, e in equations(program) if isinstance(e, While)]
    flat = [
        jax.random.key_data(a) if jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key) else a
        for a in jax.tree.leaves(args)
    ]
    used = [flat[i] for i in sorted(traced.lower()._lowering.compile_args["kept_var_idx"])]
    computed = load(program).lower(jax.devices()).compile()(*used)
    same_numbers(leaves(fn(*args)), leaves(computed), 2e-2 if name == "flax" else 1e-5)


@pytest.mark.parametrize("name", ["flat", "nested", "trip_count_one", "trip_count_one_no_barrier"])
def test_a_case_of_the_seed_comes_back(name: str) -> None:
    program = decode((SEEDS / f"{name}.json").read_bytes())
    found = raised(lowered_for("tpu", program))
    assert raised(lowered_for("tpu", found)) == found
    same_operations(program, found)
    scans = [e for _, _, e in equations(found) if isinstance(e, Scan)]
    assert [e.reverse for e in scans] == ([False, True] if name == "flat" else [False, True, False, True])
    assert [bool(e.metadata) for e in scans] == [name == "trip_count_one" and i > 1 for i in range(len(scans))]


@pytest.mark.slow
def test_generated_programs_come_back() -> None:
    programs: list[Program] = []

    @hypothesis.seed(7)
    @settings(
        max_examples=40,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(strategies.hunting())
    def take(program: Program) -> None:
        if program.mesh is None:
            programs.append(program)

    take()
    compared = 0
    for program in programs:
        found = raised(lowered_for("tpu", program))
        # An input that nothing needs is no input of the module.
        if [v.type for v in found.block.params] == [v.type for v in program.block.params]:
            compared += 1
            assert difference(program, found) == 0.0, to_text(program)
    assert compared > len(programs) / 2
