"""What the real compiler answers, by kind of job and by release, and what the machine's doctor says."""

import sys

import msgspec
import pytest

from reducer.errors import TargetError
from reducer.oracle import (
    Compiled,
    Incompatible,
    Invalid,
    ModuleJob,
    OutcomeCache,
    Pool,
    ProgramJob,
    Rejected,
    ScriptJob,
    Skipped,
    diagnose,
    is_finding,
    is_out_of_memory,
    is_user_error,
    resolve_target,
    signature,
)
from reducer.oracle.releases import fetch_release

HEAD = """
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.sharding import SingleDeviceSharding

HOST = jax.memory.Space.Host
BARRIER = {"skip-simplify-while-loops_trip-count-one": "true"}

def lowered(f, devices, shape, dtype=jnp.float32):
    x = jax.ShapeDtypeStruct(shape, dtype, sharding=SingleDeviceSharding(devices[0]))
    return jax.jit(f).lower(x)
"""

# The smallest failing program known: two loops of one step, the inner one stacking its carry on the host.
TRIP_COUNT_ONE = (
    HEAD
    + """
def lower(devices):
    def inner(c, _):
        return jnp.sin(c), jax.device_put(c, HOST)
    def outer(c, _):
        return lax.scan(inner, c, None, length=1)
    def f(x):
        with set_xla_metadata(**BARRIER):
            return lax.scan(outer, x, None, length=1)[1] * 1
    return lowered(f, devices, (8, 128))
"""
)

NARROW_RESIDUAL = (
    HEAD
    + """
def lower(devices):
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["h"],
        offload_src="device", offload_dst="pinned_host")
    from jax.ad_checkpoint import checkpoint_name
    def layer(x, _):
        return jnp.sin(checkpoint_name(jnp.sin(x), "h")), None
    def f(x):
        def loss(x):
            return lax.scan(jax.checkpoint(layer, policy=policy), x, None, length=4)[0].astype(jnp.float32).sum()
        return jax.grad(loss)(x)
    return lowered(f, devices, (256,), jnp.bfloat16)
"""
)

NO_HOST = HEAD + "def lower(devices):\n    return lowered(jnp.sin, devices, (8, 128))\n"
TO_HOST = HEAD + "def lower(devices):\n    return lowered(lambda x: jax.device_put(x * 2, HOST), devices, (8, 128))\n"
HUGE = HEAD + "def lower(devices):\n    return lowered(lambda x: jnp.sin(x) @ x, devices, (100000, 100000))\n"

SCRIPT = """
print("noise")
import jax, jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import neighbour

def plain():
    print("more noise")
    return (lambda x, k: jnp.sin(x) * k), (jax.ShapeDtypeStruct((4, 4), jnp.float32), 3.0)

def jitted():
    return jax.jit(neighbour.f), (jax.ShapeDtypeStruct((4, 4), jnp.float32),)

def meshed(devices):
    mesh = Mesh(np.array(devices).reshape(4), ("x",))
    split = NamedSharding(mesh, P("x"))
    return (lambda x, y: x @ y), (jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=split), np.ones((8, 8)))

def arrays():
    return (lambda tree: tree["a"] + 1), ({"a": jnp.ones((8, 128))},)

def number():
    return 3

def no_arguments():
    return jnp.sin, 3

def raises():
    raise ValueError("not today")

def raises_while_tracing():
    return (lambda x: x + undefined), (jax.ShapeDtypeStruct((4,), jnp.float32),)
"""


def answer(pool, source, **options):
    return pool.submit(ProgramJob(source, **options)).result().answer


def test_a_program_compiles(pool):
    found = answer(pool, NO_HOST)
    assert isinstance(found, Compiled)
    assert found.memory.argument == found.memory.output == 4096
    assert found.memory.host_temp == 0


def test_trip_count_one_fails_as_ever(pool):
    result = pool.submit(ProgramJob(TRIP_COUNT_ONE, require_host_placement=True), want_module=True).result()
    found = signature(result.outcome)
    assert found is not None
    assert found.text == (
        "INTERNAL [post-optimization] Bitcast cannot have different memory spaces of output (5) and operand (0) "
        "([S(5)]) ([])"
    )
    assert is_finding(result.outcome)
    assert isinstance(result.answer, Rejected)
    assert "reducer/oracle" not in result.answer.message, "frames of ours say nothing of the program"
    assert "<program>" in result.answer.message
    # The module that came of it fails in the same way, and needs nothing but itself.
    module = pool.submit(ModuleJob.of(result.module, require_host_placement=True)).result()
    assert signature(module.outcome) == found
    assert module.module_key == result.module_key


def test_outcomes_that_are_no_findings(pool):
    assert answer(pool, NO_HOST, require_host_placement=True) == Skipped("no host placement")
    to_host = answer(pool, TO_HOST, require_host_placement=True)
    assert isinstance(to_host, Compiled)
    huge = answer(pool, HUGE)
    assert is_out_of_memory(huge)
    assert not is_finding(huge)
    assert not is_user_error(huge)


def test_programs_that_do_not_lower(pool):
    assert answer(pool, "x = 1") == Invalid("the program's text defines no function lower(devices)")
    assert answer(pool, "def lower(devices):\n    return 3") == Invalid(
        "lower(devices) returned int, not a jax.stages.Lowered"
    )
    assert answer(pool, "def lower(devices):\n    1 / 0") == Invalid(
        "ZeroDivisionError: division by zero\n  at <program>:2 in lower"
    )
    found = answer(pool, "def lower(")
    assert isinstance(found, Invalid)
    assert found.message.startswith("File")
    assert "SyntaxError" in found.message


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    folder = tmp_path_factory.mktemp("script")
    (folder / "neighbour.py").write_text("import jax.numpy as jnp\ndef f(x):\n    return jnp.cos(x)\n")
    (folder / "program.py").write_text(SCRIPT)
    return str(folder / "program.py")


@pytest.mark.parametrize("function", ["plain", "jitted", "meshed", "arrays"])
def test_scripts(pool, script, function):
    result = pool.submit(ScriptJob(script, function)).result()
    assert isinstance(result.answer, Compiled), result.answer


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("number", "number() returned int, not a pair (fn, abstract_args)"),
        ("no_arguments", "no_arguments() returned int as abstract_args, not a tuple"),
        ("raises", "ValueError: not today\n  at {script}:30 in raises"),
        ("raises_while_tracing", "NameError: name 'undefined' is not defined\n  at {script}:33 in <lambda>"),
        (
            "absent",
            "{script} has no function 'absent'; it has plain, jitted, meshed, arrays, number, no_arguments, raises, "
            "raises_while_tracing",
        ),
    ],
)
def test_scripts_that_are_wrong(pool, script, function, message):
    result = pool.submit(ScriptJob(script, function)).result()
    assert result.answer == Invalid(message.format(script=script))


def test_a_script_that_is_not_there(pool, tmp_path):
    path = tmp_path / "none.py"
    assert pool.submit(ScriptJob(str(path), "f")).result().answer == Invalid(f"there is no file {path}")


def test_modules(pool):
    text = (
        "func.func @main(%a: tensor<8x128xf32>) -> tensor<8x128xf32> {\n"
        "  %0 = stablehlo.sine %a : tensor<8x128xf32>\n  return %0 : tensor<8x128xf32>\n}"
    )
    assert isinstance(pool.submit(ModuleJob.of(text)).result().answer, Compiled)
    named = f"module @m attributes {{mhlo.num_partitions = 4 : i32}} {{\n{text}\n}}"
    assert isinstance(pool.submit(ModuleJob.of(named)).result().answer, Compiled)
    nine = pool.submit(ModuleJob.of(text, partitions=9)).result().answer
    assert nine == Invalid("the module wants 9 partitions x 1 replicas, but the topology has 4 devices")
    garbage = pool.submit(ModuleJob.of("module { garbage }")).result().answer
    assert isinstance(garbage, Invalid)
    assert garbage.message.startswith("the module does not parse: ")


def test_a_module_is_compiled_once(tmp_path):
    with OutcomeCache(tmp_path / "o.sqlite3") as cache, Pool(resolve_target(), cache=cache) as own:
        first = own.submit(ProgramJob(TRIP_COUNT_ONE, key="one")).result()
        again = own.submit(ProgramJob(TRIP_COUNT_ONE + "\n# another text\n", key="two")).result()
        assert not first.cached
        assert again.cached
        assert again.answer == first.answer
        assert again.seconds_lower > 0
        assert own.submit(ProgramJob(TRIP_COUNT_ONE, key="one")).result().worker_pid == 0
        assert own.stats().compiled == 1
    with OutcomeCache(tmp_path / "o.sqlite3") as cache, Pool(resolve_target(topology="v5p:2x2x1"), cache=cache) as own:
        assert not own.submit(ProgramJob(TRIP_COUNT_ONE, key="one")).result().cached


@pytest.fixture(scope="module")
def release():
    """Give `resolve_target`, or skip where a release can be neither found nor fetched."""

    def resolve(version, **options):
        try:
            fetch_release(version)
        except TargetError as error:
            if "pip cannot" in str(error):
                pytest.skip(str(error))
            raise
        return resolve_target(version, **options)

    return resolve


@pytest.mark.parametrize(
    ("version", "trip_count_one", "narrow_residual"),
    [
        ("0.0.50.1", "bitcast-memory-space", "sublane-slice"),
        ("0.0.42.1", "bitcast-memory-space", "sublane-slice"),
    ],
)
def test_older_releases(release, version, trip_count_one, narrow_residual):
    with Pool(release(version)) as own:
        families = [signature(answer(own, source)).family for source in (TRIP_COUNT_ONE, NARROW_RESIDUAL)]
    assert families == [trip_count_one, narrow_residual]


def test_a_release_too_old_is_incompatible(release):
    with Pool(release("0.0.11")) as own:
        unfit = own.wait_ready()
        assert isinstance(unfit, Incompatible)
        assert "does not implement the bytecode interface" in unfit.message
        assert answer(own, NO_HOST) == unfit


def test_an_unknown_release_names_near_ones():
    with pytest.raises(TargetError) as raised:
        resolve_target("0.0.999")
    if "pip cannot" in raised.value.message:
        pytest.skip(raised.value.message)
    assert raised.value.message == "there is no libtpu release 0.0.999"
    assert "0.0.52" in raised.value.hint


def test_doctor(monkeypatch):
    monkeypatch.setenv("TPU_LIBRARY_PATH", "/nowhere/libtpu.so")
    found = diagnose(topologies=["v5e:2x2", "v6e:1x1"])
    assert found.can_compile
    assert found.topologies == ("v5e:2x2", "v6e:1x1")
    target = resolve_target()
    assert (found.libtpu, found.loaded_path, found.loaded_sha256) == (target.libtpu, target.path, target.sha256)
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    [problem] = found.problems
    assert not problem.fatal
    assert "TPU_LIBRARY_PATH is set to /nowhere/libtpu.so, and the file does not exist" in problem.message
    assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found


def test_doctor_finds_a_cache_that_cannot_be_written(monkeypatch):
    monkeypatch.setenv("SCANSHRINK_CACHE", "/proc/nowhere")
    [problem] = diagnose("/nowhere/libtpu.so").problems[:1]
    assert (problem.fatal, problem.message) == (False, "the cache folder /proc/nowhere cannot be written")
