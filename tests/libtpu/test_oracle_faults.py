"""A real worker process under every fault: each is an outcome or a clear error, no job is lost, the pool goes on."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from reducer.errors import TargetError, WorkerError
from reducer.oracle.environment import FIXED
from reducer.oracle.jobs import ProgramJob
from reducer.oracle.outcome import Compiled, Crashed, Invalid, Result, TimedOut
from reducer.oracle.pool import Pool
from reducer.oracle.target import resolve_target

ROOT = Path(__file__).parents[2]

GOOD = """
import jax, jax.numpy as jnp
from jax.sharding import SingleDeviceSharding

def lower(devices):
    x = jax.ShapeDtypeStruct((8, 128), jnp.float32, sharding=SingleDeviceSharding(devices[0]))
    return jax.jit(lambda x: jnp.sin(x) + {number}).lower(x)
"""

# Runs `fault` where the compiler would run: the worker calls `compile` of whatever `lower` returns.
WHILE_COMPILING = """
import ctypes, os, sys, time

class Lowered:
    def as_text(self):
        return "module {{}}"
    def compile(self, **options):
        {fault}

def lower(devices):
    return Lowered()
"""

WHILE_LOWERING = """
import ctypes, os, sys, time

def lower(devices):
    {fault}
"""

# The worker's ends of the protocol's pipes are the only ones above standard error.
WRITE_TO_PIPES = """
import os, stat, time

def write_to_pipes():
    for fd in range(3, 64):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, b"garbage" + bytes([10]))
        except OSError:
            pass
    time.sleep(600)
"""


def good(number: int = 1) -> ProgramJob:
    return ProgramJob(GOOD.format(number=number))


def bad(fault: str, *, template: str = WHILE_COMPILING) -> ProgramJob:
    return ProgramJob(WRITE_TO_PIPES + template.format(fault=fault))


def gone(pid: int) -> bool:
    for _ in range(500):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        threading.Event().wait(0.02)
    return False


@pytest.fixture(scope="module")
def one():
    """One worker, replaced after each fault; memory capped below what the hog takes."""
    with Pool(resolve_target(), workers=1, memory_limit=1 << 30) as made:
        yield made


@pytest.mark.parametrize(("template", "phase"), [(WHILE_COMPILING, "compile"), (WHILE_LOWERING, "lower")])
@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("os.abort()", "SIGABRT"),
        ("ctypes.string_at(0)", "SIGSEGV"),
        ("os.kill(os.getpid(), 4)", "SIGILL"),
        ("os._exit(3)", "exit 3"),
    ],
)
def test_death(one, fault, name, template, phase):
    answer = one.submit(bad(fault, template=template)).result().answer
    assert isinstance(answer, Crashed)
    assert (answer.signal, answer.phase) == (name, phase)


def test_the_pool_goes_on_and_keeps_the_other_jobs():
    with Pool(resolve_target(), workers=2) as made:
        futures = [made.submit(bad("os.abort()") if n == 2 else good(n)) for n in range(6)]
        kinds = [type(future.result().answer) for future in futures]
        assert made.stats().deaths == 1
    assert kinds == [Crashed if n == 2 else Compiled for n in range(6)]


def test_hang(one):
    result = one.submit(bad("time.sleep(600)"), timeout=1).result()
    assert result.answer == TimedOut(1)
    assert result.seconds_compile > 0


def test_memory_hog(one):
    hog = "kept = bytearray(3 << 29); kept[::4096] = b'x' * len(kept[::4096]); time.sleep(600)"
    answer = one.submit(bad(hog)).result().answer
    assert answer == Crashed("memory-cap", "used more than 1024 MiB of memory")


def test_garbage_on_the_protocols_pipes(one):
    answer = one.submit(bad("write_to_pipes()")).result().answer
    assert isinstance(answer, Invalid)
    assert "pipe" in answer.message


def test_output_is_no_part_of_the_protocol(one):
    noise = (
        "print('x' * 10**6); os.write(1, b'{\"type\": \"answered\"}\\n' * 1000); os.write(2, b'y' * 10**6); sys.exit(1)"
    )
    line = (WRITE_TO_PIPES + WHILE_LOWERING).split("{fault}")[0].count("\n") + 1
    assert one.submit(bad(noise, template=WHILE_LOWERING)).result().answer == Invalid(
        f"SystemExit: 1\n  at <program>:{line} in lower"
    )
    assert isinstance(one.submit(good()).result().answer, Compiled)


HANGS_ONCE = """
import os, time

def lower(devices):
    real = good_lower(devices)
    class Lowered:
        as_text = real.as_text
        def compile(self, **options):
            if not os.path.exists({flag!r}):
                with open({flag!r} + ".new", "w") as file:
                    file.write(str(os.getpid()))
                os.rename({flag!r} + ".new", {flag!r})
                time.sleep(600)
            return real.compile(**options)
    return Lowered()
"""


def wait_for(path: Path) -> str:
    """The text of a file, once it is there."""
    for _ in range(3000):
        if path.exists():
            return path.read_text()
        threading.Event().wait(0.02)
    raise AssertionError(f"{path} never came")


def test_killed_from_outside_is_tried_again(one, tmp_path):
    flag = tmp_path / "flag"
    source = GOOD.format(number=1).replace("def lower", "def good_lower") + HANGS_ONCE.format(flag=str(flag))
    before = one.stats().deaths
    future = one.submit(ProgramJob(source))
    pid = int(wait_for(flag))
    os.kill(pid, signal.SIGKILL)
    result = future.result()
    assert isinstance(result.answer, Compiled)
    assert result.worker_pid != pid
    assert one.stats().deaths == before + 1


def test_death_while_idle(one):
    pid = one.submit(good()).result().worker_pid
    os.kill(pid, signal.SIGKILL)
    assert gone(pid)
    result = one.submit(good()).result()
    assert isinstance(result.answer, Compiled)
    assert result.worker_pid != pid


def test_confirming_a_crash(one):
    confirmation = one.confirm(bad("os.abort()"), 2).result()
    assert confirmation.counts == {"SIGABRT": 2}
    assert confirmation.confirms(Result(Crashed("SIGABRT", "")))


# --- death at start-up, for each reason


def test_a_path_that_does_not_exist_is_an_error_not_a_fallback(tmp_path):
    with pytest.raises(TargetError, match="no libtpu at"):
        resolve_target(str(tmp_path / "libtpu.so"))


def test_a_file_removed_after_it_was_resolved_is_an_error_not_a_fallback(tmp_path):
    path = tmp_path / "libtpu.so"
    path.symlink_to(resolve_target().path)
    copy = tmp_path / "copy" / "libtpu.so"
    copy.parent.mkdir()
    copy.write_bytes(b"gone soon")
    target = resolve_target(str(copy))
    copy.unlink()
    with Pool(target) as made, pytest.raises(TargetError, match="does not load as a libtpu"):
        made.wait_ready()
    assert resolve_target(str(path)).path == resolve_target().path


def test_a_file_that_is_no_library(tmp_path):
    path = tmp_path / "libtpu.so"
    path.write_text("not a library")
    with Pool(resolve_target(str(path))) as made:
        with pytest.raises(TargetError, match="does not load as a libtpu"):
            made.submit(good()).result()
        with pytest.raises(TargetError, match=str(path)):
            made.wait_ready()


def test_a_library_that_is_no_libtpu():
    math = next(
        line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libm" in line.split()[-1]
    )
    with Pool(resolve_target(math)) as made, pytest.raises(TargetError, match="does not load as a libtpu"):
        made.wait_ready()


def test_options_the_compiler_does_not_know():
    target = resolve_target(options={"xla_no_such_option": True})
    with Pool(target) as made, pytest.raises(TargetError, match="No such compile option: 'xla_no_such_option'"):
        made.wait_ready()
    target = resolve_target(options={"xla_tpu_scoped_vmem_limit_kib": "many"})
    with Pool(target) as made, pytest.raises(TargetError, match="xla_tpu_scoped_vmem_limit_kib"):
        made.submit(good()).result()


def test_a_lock_file_held_by_another_process(monkeypatch):
    # What every worker is given so that it needs no lock, taken away again.
    monkeypatch.delitem(FIXED, "ALLOW_MULTIPLE_LIBTPU_LOAD")
    with Pool(resolve_target()) as holder:
        try:
            assert holder.wait_ready() is None
        except WorkerError as error:
            # The lock is the machine's, not this test's: somebody else is using libtpu right now.
            pytest.skip(str(error))
        with Pool(resolve_target()) as made:
            with pytest.raises(WorkerError, match=r"lock is held.*libtpu_lockfile") as raised:
                made.wait_ready()
            assert "delete /tmp/libtpu_lockfile" in raised.value.hint


def test_workers_that_jax_cannot_be_imported_in(tmp_path, monkeypatch):
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("raise ImportError('this jax is broken')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Pool(resolve_target()) as made, pytest.raises(WorkerError, match=r"cannot import JAX.*this jax is broken"):
        made.wait_ready()


# --- the parent dies


@pytest.mark.parametrize("busy", [False, True])
def test_no_orphan_stays(tmp_path, busy):
    script = tmp_path / "parent.py"
    flag = tmp_path / "flag"
    script.write_text(
        "import os, signal, sys, time\n"
        "from reducer.oracle.jobs import ProgramJob\n"
        "from reducer.oracle.pool import Pool\n"
        "from reducer.oracle.target import resolve_target\n"
        "pool = Pool(resolve_target())\n"
        f"pid = pool.submit(ProgramJob({GOOD.format(number=1)!r})).result().worker_pid\n"
        "print(pid, flush=True)\n"
        f"if {busy}:\n"
        f"    pool.submit(ProgramJob({BUSY.format(flag=str(flag))!r}))\n"
        f"    while not os.path.exists({str(flag)!r}): time.sleep(0.01)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert gone(int(done.stdout))


BUSY = """
def lower(devices):
    open({flag!r}, "w").close()
    while True:
        pass
"""
