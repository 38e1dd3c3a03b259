"""What users bring, with the real compiler: captures, HLO text, scripts; and hostile modules."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from reducer.cli.inputs import read
from reducer.errors import InputError
from reducer.ir.equations import Checkpoint, Scan
from reducer.ir.walk import equations
from reducer.oracle.hlo import convert_hlo
from reducer.oracle.jobs import ModuleJob, ScriptJob
from reducer.oracle.outcome import Crashed, Invalid, Rejected
from reducer.oracle.pool import Pool
from reducer.oracle.scripts import ScriptError, capture_script
from reducer.oracle.signature import signature
from reducer.oracle.target import resolve_target

SEED = Path(__file__).parents[1] / "seed"
HLO = """HloModule jit_step, num_partitions=4, replica_count=1

ENTRY %main (x: f32[8,128]) -> f32[8,128] {
  %x = f32[8,128]{1,0} parameter(0)
  ROOT %y = f32[8,128]{1,0} tanh(%x)
}
"""


def test_hlo_text_is_converted() -> None:
    job, notes = convert_hlo(HLO.encode(), "x.txt")
    assert (job.partitions, job.replicas, notes) == (4, 1, ())
    assert b"stablehlo.tanh %arg0 : tensor<8x128xf32>" in job.module


def test_an_attribute_of_a_newer_compiler_is_left_out() -> None:
    job, notes = convert_hlo(HLO.replace("tanh(%x)", "tanh(%x), of_the_future=true").encode(), "x.txt")
    assert b"stablehlo.tanh" in job.module
    assert notes == ("x.txt is newer than this jaxlib, and was read without of_the_future",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is no HLO text"),
        ("module {}", "is no HLO text"),
        ("HloModule x", "cannot read this HLO text: "),
        (HLO[:-30], "cannot read this HLO text: "),
        (HLO.replace("tanh", "no_such_op"), "cannot read this HLO text: was parsing 5:"),
        (HLO.replace("num_partitions", "is_scheduled=true, num_partitions"), "is optimised already"),
    ],
)
def test_hlo_text_that_is_none(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        convert_hlo(text.encode(), "x.txt")
    assert caught.value.message.startswith("x.txt: ")
    assert says in caught.value.message
    assert "\n" not in str(caught.value)


def test_a_dump_fails_as_its_module(pool: Pool, tmp_path: Path) -> None:
    item = read(str(SEED / "trip_count_one.json"))
    dumped = resolve_target(options={"xla_dump_to": str(tmp_path)})
    with Pool(dumped, 1) as other:
        was = other.submit(item.job).result().outcome
    assert isinstance(was, Rejected)
    # A worker first compiles x + 1 with the options, which is dumped as well.
    text = max(tmp_path.glob("*.before_optimizations.txt"), key=lambda path: path.stat().st_size)
    found = pool.submit(read(str(text)).job).result().outcome
    assert isinstance(found, Rejected)
    assert signature(found) == signature(was)


MODULES: dict[str, bytes] = {
    "no MLIR": b"hello",
    "cut off": b"module {\n func.func public @main(",
    "unknown dialect": b"module { func.func public @main() { %0 = nonsense.op : () -> i32 return } }",
    "unknown operation": b'module { func.func public @main() { %0 = "stablehlo.nonsense"() : () -> i32 return } }',
    "ill-typed": b"module { func.func public @main(%a: tensor<2xf32>) -> tensor<3xf32> { return %a : tensor<2xf32> } }",
    "damaged bytecode": b"ML\xefR\x06MLIR\x00garbage",
    "deeply nested": b"module { func.func private @f() attributes {a = " + b"[" * 200_000 + b"]" * 200_000 + b"} }",
}


@pytest.mark.parametrize("name", MODULES)
def test_a_hostile_module_never_reaches_the_compiler(pool: Pool, name: str) -> None:
    outcome = pool.submit(ModuleJob.of(MODULES[name])).result().outcome
    assert isinstance(outcome, Invalid) or (isinstance(outcome, Crashed) and outcome.phase == "lower")


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("empty.mlir", b"", "is empty"),
        ("blank.mlir", b" \n\n", "is empty"),
        ("cut.mlir.gz", gzip.compress(b"module {}" * 1000)[:-20], "is cut short"),
        ("plain.mlir.gz", b"module {}", "not a gzip file"),
        ("bomb.mlir.gz", gzip.compress(bytes(200 << 20), 1), "unpacks to more than 64 MiB"),
    ],
)
def test_a_file_that_holds_no_module(tmp_path: Path, name: str, data: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=says):
        read(str(tmp_path / name))


def test_a_module_of_200_megabytes(tmp_path: Path) -> None:
    with (tmp_path / "large.mlir").open("wb") as stream:
        stream.truncate(200 << 20)
    with pytest.raises(InputError, match="200 MiB is beyond the limit of 64 MiB"):
        read(str(tmp_path / "large.mlir"))


SCRIPT = """
import jax, jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

policy = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[], names_which_can_be_offloaded=["h"], offload_src="device", offload_dst="pinned_host")
W, X = jax.ShapeDtypeStruct((3, 128, 128), jnp.float32), jax.ShapeDtypeStruct((8, 128), jnp.float32)

def loss(w, x):
    layer = jax.checkpoint(lambda c, w: (jnp.tanh(checkpoint_name(c @ w, "h")), None), policy=policy, prevent_cse=False)
    return jax.lax.scan(layer, x, w)[0].sum()

def step(): return jax.value_and_grad(loss), (W, X)
def on_devices(devices): return jax.value_and_grad(loss), (W, X)
def sgd(): return lambda w, x: w - 0.1 * jax.grad(loss)(w, x), (W, X)
def forward(): return lambda x: jnp.tanh(x), (X,)
def callback(): return lambda x: jax.pure_callback(lambda v: v, x, x), (X,)
def number(): return 1
def raises(): return (lambda x: undefined), (X,)
def leaves(): import os; os._exit(3)
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    (tmp_path / "train.py").write_text(SCRIPT)
    return str(tmp_path / "train.py")


@pytest.mark.parametrize("function", ["step", "on_devices"])
def test_a_script_gives_both_tiers(script: str, function: str) -> None:
    found = capture_script(ScriptJob(path=script, function=function), resolve_target())
    assert (found.exact, found.reason) == (True, "")
    assert found.program is not None
    assert [type(e) for _, _, e in equations(found.program) if isinstance(e, Scan | Checkpoint)] == [Scan, Checkpoint]
    assert found.placement is not None
    assert found.placement.gradient is None


def test_part_of_a_script_or_one_tier(script: str) -> None:
    def capture(function: str) -> tuple[bool, bool, str]:
        found = capture_script(ScriptJob(path=script, function=function), resolve_target())
        return found.program is not None, found.placement is not None, found.reason

    assert capture("sgd") == (True, True, "the function does more than take this derivative")
    assert capture("forward") == (False, True, "the function takes no derivative")
    program, placement, reason = capture("callback")
    assert (program, placement) == (False, False)
    assert reason.startswith("not expressible: pure_callback -> float32[8,128] at ")


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("number", "number() returned int, not a pair (fn, abstract_args)"),
        ("nothing", "has no function 'nothing'; it has"),
        ("leaves", "its process ended with status 3"),
    ],
)
def test_a_script_that_gives_nothing(script: str, function: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        capture_script(ScriptJob(path=script, function=function), resolve_target())
    assert says in caught.value.message


def test_the_traceback_of_a_script_is_its_own(script: str) -> None:
    with pytest.raises(ScriptError) as caught:
        capture_script(ScriptJob(path=script, function="raises"), resolve_target())
    line = SCRIPT.splitlines().index("def raises(): return (lambda x: undefined), (X,)") + 1
    assert caught.value.message == f"{script}:raises: NameError: name 'undefined' is not defined at {script}:{line}"
    assert caught.value.traceback.splitlines()[1] == f'  File "{script}", line {line}, in <lambda>'
    assert "scanshrink" not in caught.value.traceback
