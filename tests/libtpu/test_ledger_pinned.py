"""Programs whose offload is known to be kept, or known to be lost, on the releases that were looked at by hand.

Byte counts cannot tell them apart: the first ones use less host memory than their policies name, some of the others
more than they owe.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reducer.ledger import Ledger
from reducer.oracle.jobs import ProgramJob
from reducer.oracle.outcome import Compiled, Result
from reducer.oracle.pool import Pool
from reducer.oracle.target import resolve_target
from reducer.oracle.verdict import verdict

pytestmark = pytest.mark.slow

HEAD = """
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name as name
from jax.experimental.xla_metadata import set_xla_metadata
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

HOST, DEVICE = jax.memory.Space.Host, jax.memory.Space.Device
BARRIER = {"skip-simplify-while-loops_trip-count-one": "true"}

def offloaded(f, *names):
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=list(names),
        offload_src="device", offload_dst="pinned_host")
    return jax.checkpoint(f, policy=policy, prevent_cse=False)

def layer(c, w):
    return jnp.tanh(name(c, "h") @ w), None

def flat(x, ws):
    return lax.scan(offloaded(layer, "h"), x, ws)[0]

def nested(x, ws):
    return lax.scan(lambda c, w: (flat(c, w), None), x, ws)[0]

def total(f):
    return lambda x, *rest: f(x, *rest).astype(jnp.float32).sum()

def place(devices, on_host=False):
    if on_host:
        return NamedSharding(Mesh(np.array(devices[:1]), ("d",)), P(), memory_kind="pinned_host")
    return SingleDeviceSharding(devices[0])

def abstract(devices, *shapes, dtype=jnp.float32):
    return [jax.ShapeDtypeStruct(shape, dtype, sharding=place(devices)) for shape in shapes]

def lower(devices):
    return trace(devices).lower()
"""

FLAT = """
def trace(devices):
    return jax.jit(jax.grad(total(flat), 1)).trace(*abstract(devices, (8, 128), (12, 128, 128)))
"""

ACCUMULATION = """
def trace(devices):
    def f(batches, ws):
        def step(total_gradient, x):
            return total_gradient + jax.grad(total(flat), 1)(x, ws), None
        return lax.scan(step, jnp.zeros_like(ws), batches)[0]
    return jax.jit(f).trace(*abstract(devices, (4, 8, 128), (6, 128, 128)))
"""

TWO_STACKS = """
def trace(devices):
    def body(c, w):
        c = jnp.tanh(name(c, "h") @ w)
        return jnp.sin(name(c, "g")), None
    def f(x, ws):
        return lax.scan(offloaded(body, "h", "g"), x, ws)[0]
    return jax.jit(jax.grad(total(f), 1)).trace(*abstract(devices, (8, 128), (12, 128, 128)))
"""

ONE_AFTER_THE_OTHER = """
def trace(devices):
    def f(x, ws):
        first = jax.grad(total(flat), 1)(x, ws)
        return jax.grad(total(flat), 1)(x + 1, ws + first)
    return jax.jit(f).trace(*abstract(devices, (8, 128), (12, 128, 128)))
"""

TWO_NAMES = """
def trace(devices):
    def body(c, w):
        return jnp.tanh(name(name(c, "h"), "g") @ w), None
    def f(x, ws):
        return lax.scan(offloaded(body, "h", "g"), x, ws)[0]
    return jax.jit(jax.grad(total(f), 1)).trace(*abstract(devices, (8, 128), (12, 128, 128)))
"""

INVARIANT = """
def trace(devices):
    def f(x, ws):
        def body(c, w):
            k = name(jnp.sin(x), "k")
            return jnp.tanh(c @ w) * k * jnp.sin(k), None
        return lax.scan(offloaded(body, "k"), x, ws)[0]
    return jax.jit(jax.grad(total(f), (0, 1))).trace(*abstract(devices, (8, 128), (12, 128, 128)))
"""

RAGGED = """
def trace(devices):
    return jax.jit(jax.grad(total(flat), 1)).trace(*abstract(devices, (3, 5), (12, 5, 5)))
"""

NARROW = """
def trace(devices):
    return jax.jit(jax.grad(total(flat), 1)).trace(
        *abstract(devices, (16, 128), (12, 128, 128), dtype=jnp.bfloat16))
"""

OUTPUTS = """
def trace(devices):
    def f(x, ws, old):
        def body(c, w):
            c = jnp.tanh(c @ w)
            return c, jax.device_put(c, HOST)
        c, stack = lax.scan(body, x, ws)
        return c + jax.device_put(old, DEVICE)[0], stack
    x, ws = abstract(devices, (8, 128), (12, 128, 128))
    old = jax.ShapeDtypeStruct((12, 8, 128), jnp.float32, sharding=place(devices, on_host=True))
    out = (None, place(devices, on_host=True))
    return jax.jit(f, donate_argnums=2, out_shardings=out).trace(x, ws, old)
"""

OPTIMIZER = """
def trace(devices):
    def f(x, ws, moments):
        gradient = jax.grad(total(flat), 1)(x, ws)
        moments = 0.9 * jax.device_put(moments, DEVICE) + gradient
        return ws - moments, jax.device_put(moments, HOST)
    x, ws = abstract(devices, (8, 128), (12, 128, 128))
    moments = jax.ShapeDtypeStruct((12, 128, 128), jnp.float32, sharding=place(devices, on_host=True))
    out = (None, place(devices, on_host=True))
    return jax.jit(f, donate_argnums=(1, 2), out_shardings=out).trace(x, ws, moments)
"""

UNROLLED = """
def trace(devices):
    def f(x, ws):
        return lax.scan(offloaded(layer, "h"), x, ws, unroll=6)[0]
    return jax.jit(jax.grad(total(f), 1)).trace(*abstract(devices, (128, 128), (6, 128, 128)))
"""

SHARDED = """
def trace(devices):
    mesh = Mesh(np.array(devices[:4]).reshape(2, 2), ("a", "b"))
    def given(shape, *spec):
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))
    with jax.set_mesh(mesh):
        return jax.jit(jax.grad(total(flat), 1)).trace(given((32, 256), "a"), given((6, 256, 256), None, None, "b"))
"""

COND = """
def trace(devices):
    def body(c, w):
        c = name(c, "h")
        return lax.cond(w[0, 0] > 0, jnp.tanh, jnp.sin, c @ w), None
    def f(x, ws):
        return lax.scan(offloaded(body, "h"), x, ws)[0]
    return jax.jit(jax.grad(total(f), 1)).trace(*abstract(devices, (8, 128), (6, 128, 128)))
"""

OUT_OF_A_BRANCH = """
def trace(devices):
    def body(c, w):
        return lax.cond(w[0, 0] > 0, offloaded(lambda c, w: layer(c, w)[0], "h"), lambda c, w: c, c, w), None
    def f(x, ws):
        return lax.scan(body, x, ws)[0]
    return jax.jit(jax.grad(total(f), 1)).trace(*abstract(devices, (8, 128), (6, 128, 128)))
"""

NESTED = """
def trace(devices):
    return jax.jit(jax.grad(total(nested), 1)).trace(*abstract(devices, (8, 128), (4, 3, 128, 128)))
"""

NESTED_RAGGED = """
def trace(devices):
    return jax.jit(jax.grad(total(nested), 1)).trace(*abstract(devices, (3, 5), (4, 3, 5, 5)))
"""

FLAT_AND_NESTED = """
def trace(devices):
    def f(x, ws, vs):
        return flat(x, vs) + nested(x, ws)
    return jax.jit(jax.grad(total(f), (1, 2))).trace(
        *abstract(devices, (8, 128), (4, 3, 128, 128), (7, 128, 128)))
"""

THREE_DEEP = """
def trace(devices):
    def body(c, _):
        return jnp.sin(name(c, "h")), None
    def f(x):
        def twice(c, _):
            def middle(c, _):
                return lax.scan(body, c, None, length=1)[0], None
            return offloaded(lambda c: lax.scan(middle, c, None, length=2)[0], "h")(c), None
        return lax.scan(twice, x, None, length=2)[0]
    return jax.jit(jax.grad(total(f))).trace(*abstract(devices, (2,)))
"""

TRIP_COUNT_ONE = """
def trace(devices):
    def f(x, ws):
        with set_xla_metadata(**BARRIER):
            return lax.scan(lambda c, w: (flat(c, w), None), x, ws)[0]
    return jax.jit(jax.grad(total(f), 1)).trace(*abstract(devices, (8, 128), (12, 1, 128, 128)))
"""

NESTED_NARROW = """
def trace(devices):
    return jax.jit(jax.grad(total(nested), 1)).trace(
        *abstract(devices, (16, 128), (4, 3, 128, 128), dtype=jnp.bfloat16))
"""

UNROLLED_IN_PART = """
def trace(devices):
    def f(x, ws):
        return lax.scan(offloaded(layer, "h"), x, ws, unroll=3)[0]
    return jax.jit(jax.grad(total(f), 1)).trace(*abstract(devices, (16, 128), (12, 128, 128)))
"""

UNROLLED_INSIDE = """
def trace(devices):
    def f(x, ws):
        return lax.scan(lambda c, w: (lax.scan(offloaded(layer, "h"), c, w, unroll=4)[0], None), x, ws)[0]
    return jax.jit(jax.grad(total(f), 1)).trace(*abstract(devices, (16, 128), (5, 4, 128, 128)))
"""

ONE_OF_TWO_ALIKE = """
def trace(devices):
    def body(c, w):
        c = jnp.sin(name(c, "h"))
        return lax.cond(w[0, 0] > 0, lambda c, w: jnp.tanh(name(c, "g") @ w), lambda c, w: c, c, w), None
    def f(x, ws):
        return lax.scan(offloaded(body, "h", "g"), x, ws)[0]
    return jax.jit(jax.grad(total(f), 1)).trace(*abstract(devices, (8, 128), (6, 128, 128)))
"""

SILENT = {
    "flat": FLAT,
    "gradient accumulation": ACCUMULATION,
    "two stacks": TWO_STACKS,
    "one gradient after the other": ONE_AFTER_THE_OTHER,
    "one value under two names": TWO_NAMES,
    "loop-invariant name": INVARIANT,
    "ragged tiles": RAGGED,
    "two bytes": NARROW,
    "host outputs with donation": OUTPUTS,
    "optimizer state on the host": OPTIMIZER,
    "unrolled, with weights of the stack's shape": UNROLLED,
    "sharded": SHARDED,
    "cond": COND,
}


@pytest.fixture(scope="module")
def older(private_cache: Path) -> Iterator[dict[str, Pool]]:
    del private_cache  # must be set before a worker inherits the environment
    with Pool(resolve_target("0.0.42.1"), 1) as a, Pool(resolve_target("0.0.36"), 1) as b:
        yield {"0.0.42.1": a, "0.0.36": b}


def ask(pool: Pool, text: str) -> Result:
    return pool.submit(ProgramJob(HEAD + text), want_ledger=True).result()


def ledger(result: Result) -> Ledger:
    assert isinstance(result.answer, Compiled), result.answer
    assert result.ledger is not None
    assert result.ledger.reason == ""
    return result.ledger


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
@pytest.mark.parametrize("release", ["installed", "0.0.42.1"])
def test_what_is_kept_is_no_loss(release: str, text: str, pool: Pool, older: dict[str, Pool]) -> None:
    result = ask(pool if release == "installed" else older[release], text)
    found = ledger(result)
    assert verdict(result).word == "ok"
    assert found.lines, "nothing is owed: the test shows nothing"
    assert {line.standing for line in found.lines} <= {"kept", "undecided"}


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        (NESTED, "outer stack, 2 loops deep"),
        (NESTED_RAGGED, "outer stack, 2 loops deep"),
        (FLAT_AND_NESTED, "part, 2 loops deep"),
        (THREE_DEEP, "outer stack, 3 loops deep"),
        (OUT_OF_A_BRANCH, "outer stack, 1 loop deep"),
        (NESTED_NARROW, "outer stack, 2 loops deep"),
        (UNROLLED_IN_PART, "outer stack, 1 loop deep"),
        (UNROLLED_INSIDE, "outer stack, 2 loops deep"),
        (ONE_OF_TWO_ALIKE, "part, 1 loop deep"),
    ],
    ids=[
        "nested",
        "nested ragged",
        "flat and nested",
        "three deep",
        "out of a branch",
        "nested, two bytes",
        "unrolled in part",
        "unrolled inside",
        "one of two alike",
    ],
)
def test_what_the_installed_release_loses(text: str, loss: str, pool: Pool) -> None:
    if pool.target.libtpu != "0.0.52":
        pytest.skip(f"what libtpu {pool.target.libtpu} does was not looked at by hand")
    result = ask(pool, text)
    assert ledger(result).loss == loss
    assert verdict(result).word == "lost-offload"


def test_what_leaves_a_branch_is_lost_on_an_older_release(older: dict[str, Pool]) -> None:
    assert ledger(ask(older["0.0.42.1"], OUT_OF_A_BRANCH)).loss == "outer stack, 1 loop deep"


def test_of_two_alike_one_is_lost_on_an_older_release(older: dict[str, Pool]) -> None:
    found = ledger(ask(older["0.0.42.1"], ONE_OF_TWO_ALIKE))
    assert found.loss == "part, 1 loop deep"
    assert [(line.standing, line.alike, line.found) for line in found.lines] == [
        ("kept", 1, ("f32[6,8,128]",)),
        ("lost", 2, ("f32[6,8,128]",)),
    ]


def test_an_inner_loop_of_one_step_lost_on_an_older_release(older: dict[str, Pool]) -> None:
    result = ask(older["0.0.36"], TRIP_COUNT_ONE)
    assert ledger(result).loss == "outer stack, 2 loops deep"


def test_more_host_memory_than_is_owed_does_not_hide_a_loss(pool: Pool) -> None:
    """Padded to whole tiles, the inner stack of a ragged value takes more room than the whole offload owes."""
    if pool.target.libtpu != "0.0.52":
        pytest.skip(f"what libtpu {pool.target.libtpu} does was not looked at by hand")
    result = ask(pool, NESTED_RAGGED)
    (line,) = ledger(result).lines
    assert isinstance(result.answer, Compiled)
    assert result.answer.memory.host_temp is not None
    assert result.answer.memory.host_temp > line.owed
    assert line.standing == "lost"


def test_an_offload_that_owes_nothing_prints_nothing(pool: Pool) -> None:
    text = "\ndef trace(devices):\n    return jax.jit(jnp.sin).trace(*abstract(devices, (8, 128)))\n"
    assert ledger(ask(pool, text)).lines == ()


def test_a_module_says_why_it_is_not_judged(pool: Pool) -> None:
    from reducer.oracle.jobs import ModuleJob

    module = pool.submit(ProgramJob(HEAD + FLAT), want_module=True).result().module
    result = pool.submit(ModuleJob.of(module), want_ledger=True).result()
    assert isinstance(result.answer, Compiled)
    assert verdict(result).word == "not-measurable"
    assert verdict(result).reason == "it compiles, but a module's text does not say which values it offloads"


def test_a_program_that_names_what_no_backward_pass_needs_is_told_so(pool: Pool) -> None:
    """The name is on the layer's result, which the next layer takes as its own residual under no name."""
    from reducer.ir.build import Builder
    from reducer.ir.equations import Grad, Program
    from reducer.ir.policies import OffloadNames
    from reducer.ir.types import Type
    from reducer.oracle.programs import program_job
    from reducer.oracle.verdict import verdict_of

    tile = Type("float32", (8, 128))
    inner = Builder()
    body = inner.block(inner.name(inner.op("tanh", inner.param(tile)), "h"))
    layer = Builder()
    step = layer.block(*layer.checkpoint(body, layer.param(tile), policy=OffloadNames(("h",)), prevent_cse=False))
    b = Builder()
    program = Program(b.block(*b.scan(step, length=4, carry=(b.param(tile),))), gradient=Grad((0,)))
    found = verdict_of(program, pool.submit(program_job(program), want_ledger=True).result())
    assert (found.word, found.reason) == ("nothing-to-offload", "h: the backward pass does not need this value")
