"""The seed programs through their own scripts and the real compiler: the facts the project started from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from reducer.ir.build import Builder, lit
from reducer.ir.codec import decode
from reducer.ir.equations import Entry, Mesh, Op, Program, Var
from reducer.ir.types import Type
from reducer.lowering.script import Recorded, module_script, repro_script

SEED = Path(__file__).parents[1] / "seed"
BITCAST = Recorded(
    "rejected",
    "INTERNAL",
    "post-optimization",
    ("Bitcast cannot have different memory spaces of output (5) and operand (0)",),
    libtpu="0.0.52",
)


def seed(name: str) -> Program:
    return decode((SEED / f"{name}.json").read_bytes())


def run(text: str, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "repro.py"
    path.write_text(text)
    base = {k: v for k, v in os.environ.items() if not k.startswith(("TPU_", "JAX_"))}
    return subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=False, env={**base, **environment}
    )


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("flat", 1, "compiled, with 49152 bytes of temporary host memory"),
        ("nested", 1, "compiled, with 12288 bytes of temporary host memory"),
        ("trip_count_one", 0, "AS RECORDED"),
        ("trip_count_one_no_barrier", 1, "compiled, with 49152 bytes of temporary host memory"),
    ],
)
def test_seed_programs(name: str, code: int, says: str, tmp_path: Path) -> None:
    done = run(repro_script(seed(name), BITCAST, topology="v5e:2x2"), tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert says in done.stdout


def test_a_lost_offload_is_recognised_by_its_host_memory(tmp_path: Path) -> None:
    found = Recorded("compiled", libtpu="0.0.52", host_temp=12288)
    done = run(repro_script(seed("nested"), found, topology="v5e:2x2"), tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "AS RECORDED")


def test_a_library_that_is_not_there_is_not_judged(tmp_path: Path) -> None:
    text = repro_script(seed("flat"), BITCAST, topology="v5e:2x2")
    done = run(text, tmp_path, TPU_LIBRARY_PATH=str(tmp_path / "libtpu.so"))
    assert done.returncode == 3
    assert done.stdout.startswith("CANNOT JUDGE: ")
    assert "there is no such file" in done.stdout


@pytest.mark.parametrize(
    ("instead", "found", "code"),
    [
        ("os.abort()", Recorded("crashed", "SIGABRT"), 0),
        ("os.kill(os.getpid(), signal.SIGSEGV)", Recorded("crashed", "SIGABRT"), 2),
        ("__import__('time').sleep(600)", Recorded("timed-out"), 0),
    ],
)
def test_a_compiler_that_dies_or_hangs_is_judged(instead: str, found: Recorded, code: int, tmp_path: Path) -> None:
    text = repro_script(seed("flat"), found, topology="v5e:2x2", timeout=20 if "sleep" in instead else 600)
    compile_ = "        compiled = lowered.compile(compiler_options=OPTIONS or None)\n"
    assert compile_ in text
    dying = f"        if not probe:\n            {instead}\n"
    done = run(text.replace(compile_, dying + compile_), tmp_path)
    assert done.returncode == code, done.stdout + done.stderr


MODULES = """
import sys
from jax.experimental import topologies
from reducer.ir.codec import decode
from reducer.lowering.load import load
devices = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices
program = decode(open(sys.argv[1], "rb").read())
lowered = load(program, typed=True).lower(devices)
open(sys.argv[2], "w").write(lowered.as_text())
compiled = lowered.compile()
print("HOST", compiled.memory_analysis().host_temp_size_in_bytes)
"""


def compile_here(program: Program, tmp_path: Path) -> tuple[subprocess.CompletedProcess[str], str]:
    """Compile typed text in a process of its own; also gives the module."""
    from reducer.ir.codec import encode
    from reducer.oracle.environment import FIXED

    source, module, script = tmp_path / "program.json", tmp_path / "module.mlir", tmp_path / "compile.py"
    source.write_bytes(encode(program))
    script.write_text(MODULES)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TPU_", "JAX_"))} | FIXED
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, str(script), str(source), str(module)],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    return done, module.read_text() if module.exists() else ""


def test_a_module_script_judges_like_the_program(tmp_path: Path) -> None:
    done, module = compile_here(seed("trip_count_one"), tmp_path)
    assert "Bitcast cannot have different memory spaces" in done.stderr
    done = run(module_script(module, BITCAST, topology="v5e:2x2"), tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "AS RECORDED"), done.stdout + done.stderr
    _, module = compile_here(seed("nested"), tmp_path)
    found = Recorded("compiled", host_temp=12288)
    assert run(module_script(module, found, topology="v5e:2x2"), tmp_path).returncode == 0


def test_four_devices_with_collectives_and_host_inputs(tmp_path: Path) -> None:
    """Sharded and unspecified inputs, one on the host, a shard_map with a psum, a host result, donation."""
    x_type, h_type = Type("float32", (8, 128)), Type("float32", (8, 128), "host")
    local = Type("float32", (4, 128))
    psum = Op(outs=(Var(1, local),), primitive="psum", args=(0,), attributes=(("axes", ("b",)),))
    inner = Builder()
    inner.param(local)
    body = msgspec.structs.replace(inner.block(1), eqns=(psum,))
    b = Builder()
    x, h, s = b.param(x_type), b.param(h_type), b.param(Type("float32"))
    y = b.op("add", b.constrain(x, ("a", "b")), b.transfer(h, "device"))
    (z,) = b.shard_map(body, y, in_specs=(("a", None),), out_specs=(("a",),), to=(x_type,))
    block = b.block(b.op("mul", z, s), b.transfer(b.op("mul", z, lit(2.0)), "host"))
    program = Program(
        block,
        mesh=Mesh((("a", 2), ("b", 2))),
        inputs=(Entry(("a",), donated=True), Entry(), Entry()),
        result_specs=(("b",), None),
    )
    done, module = compile_here(program, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mhlo.num_partitions = 4" in module
    assert "sdy.manual_computation" in module
    assert module.count('mhlo.memory_kind = "pinned_host"') == 2
