"""The hook in real processes with JAX on the CPU: what is captured, what is not, and that nothing else changes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reducer.captures import captures_in, load_capture

from .conftest import Capture

pytestmark = pytest.mark.slow
Script = Callable[..., str]

#: `step` fails to compile: the compiler knows no such option.
FAILING = """
import jax, jax.numpy as jnp
def step(x): return jnp.tanh(x) * 2
def good(x): return x + 1
bad = {"xla_no_such_option": True}
"""
#: The next compile ends as `how()` does, inside the compiler as far as JAX can tell.
DYING = """
import os, signal, sys, time
import jax, jax.numpy as jnp
from jax._src import compiler
def compiler_that(how):
    class Jax:
        def __getattr__(self, name):
            if name == "CompileOnlyPyClient": how()
            return getattr(real, name)
    real, compiler._jax = compiler._jax, Jax()
def step(x): return jnp.tanh(x) * 2
x = jax.ShapeDtypeStruct((4,), jnp.float32)
lowered = jax.jit(step).lower(x)
"""
WAITS = "compiler_that(lambda: (print('compiling', flush=True), time.sleep(600)))"


LOCKED = """
import jax
try:
    raise RuntimeError("ABORTED: Internal error when accessing libtpu multi-process lockfile.")
except RuntimeError as error:
    raise ValueError("no topology") from error
"""


def said(ran: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The object of ``--json``."""
    data = json.loads(ran.stderr.splitlines()[-1])
    assert (data["schema"], data["command"]) == (1, "capture")
    return data


def test_a_lock_that_another_process_holds_is_said_with_what_to_do(run: Capture, script: Script) -> None:
    ran = run("--", sys.executable, script(LOCKED))
    assert ran.returncode == 1
    assert (
        "scanshrink capture: warning: another process holds libtpu's lock file; where none of them uses a TPU, "
        "ALLOW_MULTIPLE_LIBTPU_LOAD=1 lets each load libtpu\n"
    ) in ran.stderr
    handled = run("--", sys.executable, script(f"try:\n{textwrap.indent(LOCKED, ' ')}\nexcept ValueError: pass"))
    assert (handled.returncode, "lock file" in handled.stderr) == (0, False)


CALLS = {
    "a call": "jax.jit(step, compiler_options=bad)(jnp.ones(4))",
    "ahead of time": "jax.jit(step).lower(jnp.ones(4)).compile(compiler_options=bad)",
}


@pytest.mark.parametrize("call", CALLS)
def test_a_failure_is_captured(run: Capture, script: Script, tmp_path: Path, call: str) -> None:
    path = script(f"{FAILING}\njax.jit(good)(1)\n{CALLS[call]}")
    ran = run("--json", "--", sys.executable, path, JAX_TOKEN="hush", XLA_FLAGS="--xla_cpu_enable_fast_math=false")
    assert ran.returncode == 1
    assert ran.stdout == ""
    data = said(ran)
    (folder,) = captures_in(tmp_path / "captures")
    assert data["next"] == f"scanshrink reduce captures/{folder.name}"
    assert f"scanshrink capture: next: {data['next']}\n" in ran.stderr
    assert (data["status"], data["failed"], data["processes"]) == (1, 1, 1)
    assert data["compiled"] > 0
    (row,) = data["captures"]
    assert (row["folder"], row["name"], row["outcome"]) == (str(folder), "jit_step", "failed")
    found = load_capture(folder)
    assert folder.name == f"jit_step-{found.pid}"
    assert (found.partitions, found.replicas, found.platform, found.topology) == (1, 1, "cpu", "")
    assert found.options == {"xla_no_such_option": True}
    assert found.error.type in ("JaxRuntimeError", "XlaRuntimeError")
    assert "xla_no_such_option" in found.error.message
    # JAX itself sets those of TPUs where a libtpu is installed.
    assert {k: v for k, v in found.environment.variables.items() if not k.startswith("TPU_")} == {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_cpu_enable_fast_math=false",
    }
    assert found.environment.python == ".".join(map(str, sys.version_info[:3]))
    assert found.module.startswith(b"module @jit_step")
    assert b"stablehlo.tanh" in found.module
    assert found.jaxpr is not None
    assert "tanh" in found.jaxpr.read_text()
    assert found.portable is not None
    assert "hush" not in "".join(p.read_text(errors="replace") for p in folder.iterdir())
    assert sorted(p.name for p in (tmp_path / "captures").iterdir()) == [folder.name]


def test_one_failure_is_one_capture_and_the_program_goes_on(run: Capture, script: Script, tmp_path: Path) -> None:
    path = script(
        f"{FAILING}\n"
        "for n in (4, 4, 8):\n"
        "    try: jax.jit(step, compiler_options=bad)(jnp.ones(n))\n"
        "    except Exception as error: print(type(error).__name__)\n"
        "print(jax.jit(good)(1))"
    )
    ran = run("--json", "--", sys.executable, path)
    assert ran.returncode == 0
    assert ran.stdout.splitlines()[-1] == "2"
    data = said(ran)
    assert (len(data["captures"]), data["failed"]) == (2, 3)
    assert len(captures_in(tmp_path / "captures")) == 2


def test_nothing_fails(run: Capture, script: Script, tmp_path: Path) -> None:
    ran = run("--", sys.executable, script(f"{FAILING}\njax.jit(good)(1)"))
    assert ran.returncode == 0
    assert ran.stderr == "scanshrink capture: nothing captured: 1 module compiled, 0 failed\n"
    assert not (tmp_path / "captures").exists()


def test_nothing_is_compiled(run: Capture, script: Script) -> None:
    ran = run("--", sys.executable, script("import jax, sys; sys.exit(3)"))
    assert (ran.returncode, ran.stderr) == (3, "scanshrink capture: nothing captured: nothing was compiled\n")


def test_all_keeps_what_compiles(run: Capture, script: Script, tmp_path: Path) -> None:
    path = script(f"{FAILING}\njax.jit(good)(1)\njax.jit(step)(1.)")
    ran = run("--all", "--match", "good", "--", sys.executable, path)
    assert ran.returncode == 0
    (folder,) = captures_in(tmp_path / "captures")
    found = load_capture(folder)
    assert (found.name, found.outcome) == ("jit_good", "compiled")
    assert ran.stderr == f"scanshrink capture: captures/{folder.name}: jit_good, 1 x cpu: compiles\n"


def test_match_leaves_the_others_alone(run: Capture, script: Script, tmp_path: Path) -> None:
    path = script(f"{FAILING}\njax.jit(step, compiler_options=bad)(jnp.ones(4))")
    ran = run("--match", "^jit_other$", "--json", "--", sys.executable, path)
    assert ran.returncode == 1
    assert said(ran)["unmatched"] == 1
    assert "1 other module failed to compile, not matching --match" in ran.stderr
    assert not (tmp_path / "captures").exists()


PROCESSES = {
    "spawn": "multiprocessing.get_context('spawn').Process(target=work)",
    "fork": "multiprocessing.get_context('fork').Process(target=work)",
    "subprocess": "None",
}


@pytest.mark.parametrize("how", PROCESSES)
def test_child_processes_are_followed(run: Capture, script: Script, tmp_path: Path, how: str) -> None:
    body = f"    {FAILING.strip().replace(chr(10), chr(10) + '    ')}\n    {CALLS['a call']}\n"
    script(f"def work():\n{body}\nif __name__ == '__main__': work()", "child.py")
    if how == "subprocess":
        start = "[subprocess.Popen([sys.executable, 'child.py'], stderr=subprocess.DEVNULL) for _ in range(2)]"
        path = script(f"import subprocess, sys\nfor p in {start}: p.wait()")
    else:
        path = script(
            "import multiprocessing\nfrom child import work\n"
            f"if __name__ == '__main__':\n    them = [{PROCESSES[how]} for _ in range(2)]\n"
            "    for p in them: p.start()\n    for p in them: p.join()"
        )
    ran = run("--json", "--", sys.executable, path)
    assert ran.returncode == 0
    folders = captures_in(tmp_path / "captures")
    pids = {load_capture(folder).pid for folder in folders}
    assert len(pids) == len(folders) == 2
    assert said(ran)["failed"] == 2


ENDINGS = {
    "os.abort": "the process was killed by SIGABRT while the compiler was at work",
    "lambda: os.kill(os.getpid(), signal.SIGKILL)": (
        "the process was killed by SIGKILL while the compiler was at work (out of memory, or by hand)"
    ),
    "lambda: os._exit(9)": "the process ended with status 9 while the compiler was at work",
}


@pytest.mark.parametrize("how", ENDINGS)
def test_a_process_that_dies_in_the_compiler(run: Capture, script: Script, tmp_path: Path, how: str) -> None:
    ran = run("--json", "--", sys.executable, script(f"{DYING}\ncompiler_that({how})\nlowered.compile()"))
    status = {"os.abort": 134, "lambda: os._exit(9)": 9}.get(how, 137)
    assert ran.returncode == status
    (folder,) = captures_in(tmp_path / "captures")
    found = load_capture(folder)
    assert (found.outcome, found.error.message) == ("died", ENDINGS[how])
    assert b"stablehlo.tanh" in found.module
    assert found.portable is not None
    assert said(ran)["failed"] == 1
    assert [p.name for p in (tmp_path / "captures").iterdir()] == [folder.name]


def test_a_child_that_dies_in_the_compiler(run: Capture, script: Script, tmp_path: Path) -> None:
    path = script(f"{DYING}\ncompiler_that(os.abort)\nlowered.compile()", "child.py")
    ran = run("--", "sh", "-c", f"{sys.executable} {path}; echo after")
    assert (ran.returncode, ran.stdout) == (0, "after\n")
    (folder,) = captures_in(tmp_path / "captures")
    found = load_capture(folder)
    assert found.error.message == f"process {found.pid} died while the compiler was at work"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_compile_is_not_kept(
    environment: dict[str, str], script: Script, tmp_path: Path, number: signal.Signals
) -> None:
    path = script(f"{DYING}\n{WAITS}\nlowered.compile()")
    process = subprocess.Popen(
        [sys.executable, "-m", "reducer.cli", "capture", "--json", "--", sys.executable, path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "compiling\n"
    process.send_signal(number)
    _, stderr = process.communicate()
    # Python turns SIGINT into an exception, which passes through the hook; of SIGTERM it dies.
    lost = "; not kept, because it was being compiled: jit_step" if number == signal.SIGTERM else ""
    assert f"scanshrink capture: interrupted{lost}\n" in stderr
    assert process.returncode == 128 + number
    assert json.loads(stderr.splitlines()[-1])["interrupted"] is True
    assert not (tmp_path / "captures").exists()


def test_a_capture_that_is_killed_leaves_nothing_that_looks_complete(
    environment: dict[str, str], script: Script, tmp_path: Path
) -> None:
    path = script(f"{DYING}\nprint(os.getpid(), flush=True)\n{WAITS}\nlowered.compile()")
    process = subprocess.Popen(
        [sys.executable, "-m", "reducer.cli", "capture", "--", sys.executable, path],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    assert process.stdout.readline() == "compiling\n"
    process.kill()
    process.wait()
    os.kill(child, signal.SIGKILL)
    assert captures_in(tmp_path / "captures") == []
    process.stdout.close()


def test_a_hit_in_the_persistent_cache_is_reported(run: Capture, script: Script, tmp_path: Path) -> None:
    path = script(f"{FAILING}\njax.jit(good)(1)")
    cache = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
    }
    first, second = (run("--json", "--", sys.executable, path, **cache) for _ in range(2))
    assert (said(first)["cached"], said(first)["compiled"]) == (0, 1)
    assert (said(second)["cached"], said(second)["compiled"]) == (1, 0)
    assert (
        "scanshrink capture: 1 module came out of JAX's persistent compilation cache, not compiled "
        "(JAX_ENABLE_COMPILATION_CACHE=false compiles them)\n"
    ) in second.stderr


def test_nothing_that_the_program_computes_or_prints_changes(
    run: Capture, script: Script, environment: dict[str, str], tmp_path: Path
) -> None:
    path = script(
        f"{FAILING}\nimport os, sys\n"
        "print(sys.path, sorted(k for k in os.environ if 'SCANSHRINK' not in k))\n"
        "lowered = jax.jit(jax.grad(lambda x: step(x).sum())).lower(jnp.arange(4.))\n"
        "print(lowered.as_text(debug_info=True), lowered.compile()(jnp.arange(4.)))\n"
        f"{CALLS['a call']}"
    )
    plain = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    ran = run("--", sys.executable, path)
    assert ran.stdout == plain.stdout
    assert ran.returncode == plain.returncode == 1
    ours = [line for line in ran.stderr.splitlines() if not line.startswith("scanshrink capture: ")]
    assert ours == plain.stderr.splitlines()


def test_a_folder_that_cannot_be_written_costs_one_line(run: Capture, script: Script, tmp_path: Path) -> None:
    path = script(f"import shutil\n{FAILING}\nshutil.rmtree('captures')\nfor n in (1, 2): print(jax.jit(good)(n))")
    ran = run("--", sys.executable, path)
    assert (ran.returncode, ran.stdout) == (0, "2\n3\n")
    assert ran.stderr.count("cannot write a module before it is compiled: FileNotFoundError") == 1
    assert "scanshrink capture: warning: write a module before it is compiled: FileNotFoundError" in ran.stderr
    assert not (tmp_path / "captures").exists()
