"""Named shapes of programs that offload, drawn with random sizes, each with the stacks it is known to offload.

The stacks are known from how the text is put together, not from its jaxpr: nothing here is shared with
`reducer.ledger`. Shapes are written as HLO prints them: ``("f32", (12, 8, 128))``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from random import Random

Stack = tuple[str, tuple[int, ...]]

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
    return jax.checkpoint(f, policy=policy, prevent_cse=PREVENT_CSE)

def saved(f, *names):
    policy = jax.checkpoint_policies.save_only_these_names(*names)
    return jax.checkpoint(f, policy=policy, prevent_cse=PREVENT_CSE)

def layer(c, w):
    return ACT(name(c, "h") @ w), None

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

def given(devices, *shapes, on_host=False):
    return [jax.ShapeDtypeStruct(s, DTYPE, sharding=place(devices, on_host)) for s in shapes]

def lower(devices):
    return trace(devices).lower()
"""


@dataclass(frozen=True)
class Planted:
    """A program's text and what it offloads; `turn`: elements of one turn of an unrolled loop."""

    shape: str
    text: str
    stacks: tuple[Stack, ...]
    partitions: int = 1
    turn: int = 0


@dataclass(frozen=True)
class _Sizes:
    length: int
    batch: int
    width: int
    dtype: str
    head: str


def _sizes(
    rng: Random, *, ragged: bool = False, dtypes: tuple[str, ...] = ("f32",), width: int | None = None
) -> _Sizes:
    batch = rng.choice([3, 5, 7, 9, 12, 20]) if ragged else rng.choice([8, 16, 24, 32, 64])
    chosen = width or (rng.choice([5, 7, 65, 100, 130, 200]) if ragged else rng.choice([128, 256, 384]))
    dtype = rng.choice(dtypes)
    act = rng.choice(["jnp.tanh", "jnp.sin", "jax.nn.gelu", "jax.nn.silu"])
    names = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
    head = f"PREVENT_CSE = {rng.random() < 0.3}\n{HEAD}\nACT, DTYPE = {act}, jnp.{names[dtype]}\n"
    return _Sizes(rng.randint(3, 14), batch, chosen, dtype, head)


def _gradient(rng: Random, function: str, argnums: str = "1") -> str:
    which = "value_and_grad" if rng.random() < 0.4 else "grad"
    return f"jax.{which}(total({function}), {argnums})"


def flat(rng: Random, *, shape: str = "flat", ragged: bool = False, dtypes: tuple[str, ...] = ("f32",)) -> Planted:
    """One scan over layers, the layer's input offloaded."""
    s = _sizes(rng, ragged=ragged, dtypes=dtypes)
    x, ws = (s.batch, s.width), (s.length, s.width, s.width)
    call = f"jax.jit({_gradient(rng, 'flat')}).trace(*given(devices, {x}, {ws}))"
    text = f"{s.head}\ndef trace(devices):\n    return {call}\n"
    return Planted(shape, text, ((s.dtype, (s.length, *x)),))


def accumulation(rng: Random) -> Planted:
    """A scan over microbatches of the gradient of a scan."""
    s = _sizes(rng)
    micro = rng.randint(2, 5)
    text = f"""{s.head}
def trace(devices):
    def f(batches, ws):
        def step(acc, x):
            return acc + jax.grad(total(flat), 1)(x, ws), None
        return lax.scan(step, jnp.zeros_like(ws), batches)[0]
    return jax.jit(f).trace(*given(devices, {(micro, s.batch, s.width)}, {(s.length, s.width, s.width)}))
"""
    return Planted("gradient accumulation", text, ((s.dtype, (s.length, s.batch, s.width)),))


def several(rng: Random) -> Planted:
    """Two or three values of a layer offloaded."""
    s = _sizes(rng)
    names = ["h", "g", "k"][: rng.randint(2, 3)]
    steps = "\n".join(f'        c = {rng.choice(["jnp.tanh", "jnp.sin"])}(name(c, "{n}") @ w)' for n in names)
    text = f"""{s.head}
def trace(devices):
    def body(c, w):
{steps}
        return c, None
    def f(x, ws):
        return lax.scan(offloaded(body, {", ".join(repr(n) for n in names)}), x, ws)[0]
    return jax.jit({_gradient(rng, "f")}).trace(*given(devices, {(s.batch, s.width)}, {(s.length, s.width, s.width)}))
"""
    return Planted("several stacks", text, ((s.dtype, (s.length, s.batch, s.width)),) * len(names))


def shared(rng: Random) -> Planted:
    """One value under two names, or used twice."""
    s = _sizes(rng)
    use = rng.choice(['name(name(c, "h"), "g")', 'name(c, "h") + 0 * name(c, "g")'])
    text = f"""{s.head}
def trace(devices):
    def body(c, w):
        v = {use}
        return ACT(v @ w) * jnp.cos(v), None
    def f(x, ws):
        return lax.scan(offloaded(body, "h", "g"), x, ws)[0]
    return jax.jit({_gradient(rng, "f")}).trace(*given(devices, {(s.batch, s.width)}, {(s.length, s.width, s.width)}))
"""
    return Planted("shared values", text, ((s.dtype, (s.length, s.batch, s.width)),))


def invariant(rng: Random) -> Planted:
    """A changing value and one the loop does not change; of the latter, nobody promises a stack."""
    s = _sizes(rng)
    text = f"""{s.head}
def trace(devices):
    def f(x, ws):
        def body(c, w):
            k = name(jnp.sin(x), "k")
            return ACT(name(c, "h") @ w) * k * jnp.sin(k), None
        return lax.scan(offloaded(body, "h", "k"), x, ws)[0]
    return jax.jit({_gradient(rng, "f", "(0, 1)")}).trace(
        *given(devices, {(s.batch, s.width)}, {(s.length, s.width, s.width)}))
"""
    return Planted("invariants", text, ((s.dtype, (s.length, s.batch, s.width)),))


def outputs(rng: Random) -> Planted:
    """A stack returned on the host; another one donated."""
    s = _sizes(rng)
    x, ws, old = (s.batch, s.width), (s.length, s.width, s.width), (s.length, s.batch, s.width)
    text = f"""{s.head}
def trace(devices):
    def f(x, ws, old):
        def body(c, w):
            c = ACT(c @ w)
            return c, jax.device_put(c, HOST)
        c, stack = lax.scan(body, x, ws)
        return c + jax.device_put(old, DEVICE)[0], stack
    old, = given(devices, {old}, on_host=True)
    out = (None, place(devices, on_host=True))
    return jax.jit(f, donate_argnums=2, out_shardings=out).trace(*given(devices, {x}, {ws}), old)
"""
    return Planted("host outputs with donation", text, ((s.dtype, old),))


def sharded(rng: Random) -> Planted:
    """Over a mesh of four, batch or width divided."""
    s = _sizes(rng, width=rng.choice([256, 512]))
    batch = 4 * s.batch
    x_spec, w_spec = rng.choice(
        [
            ('"a"', "None, None, None"),
            ('("a", "b")', "None, None, None"),
            ('"a"', 'None, None, "b"'),
            ("None", 'None, "a", "b"'),
        ]
    )
    text = f"""{s.head}
def trace(devices):
    mesh = Mesh(np.array(devices[:4]).reshape(2, 2), ("a", "b"))
    def over(shape, *spec):
        return jax.ShapeDtypeStruct(shape, DTYPE, sharding=NamedSharding(mesh, P(*spec)))
    with jax.set_mesh(mesh):
        return jax.jit({_gradient(rng, "flat")}).trace(
            over({(batch, s.width)}, {x_spec}), over({(s.length, s.width, s.width)}, {w_spec}))
"""
    return Planted("sharded", text, ((s.dtype, (s.length, batch, s.width)),), 4)


def cond(rng: Random) -> Planted:
    """A branch in the layer, behind the offloaded value."""
    s = _sizes(rng)
    text = f"""{s.head}
def trace(devices):
    def body(c, w):
        c = name(c, "h")
        return lax.cond(w[0, 0] > 0, ACT, jnp.cos, c @ w), None
    def f(x, ws):
        return lax.scan(offloaded(body, "h"), x, ws)[0]
    return jax.jit({_gradient(rng, "f")}).trace(*given(devices, {(s.batch, s.width)}, {(s.length, s.width, s.width)}))
"""
    return Planted("cond", text, ((s.dtype, (s.length, s.batch, s.width)),))


SHAPES: dict[str, Callable[[Random], Planted]] = {
    "flat": flat,
    "gradient accumulation": accumulation,
    "several stacks": several,
    "shared values": shared,
    "invariants": invariant,
    "ragged shapes": lambda rng: flat(rng, shape="ragged shapes", ragged=True),
    "2-byte dtypes": lambda rng: flat(rng, shape="2-byte dtypes", dtypes=("bf16", "f16")),
    "host outputs with donation": outputs,
    "sharded": sharded,
    "cond": cond,
}
"""The shapes whose offload is usually kept."""


def nest(rng: Random, *, barrier: bool) -> Planted:
    """Two loops, the inner one of one step and held by the barrier if `barrier`; sometimes a kept stack beside it."""
    s = _sizes(rng, ragged=rng.random() < 0.3, dtypes=("f32", "f32", "bf16"))
    inner = 1 if barrier else rng.randint(2, 5)
    x, ws = (s.batch, s.width), (s.length, inner, s.width, s.width)
    beside = rng.random() < 0.25
    other = (s.length + 3, s.width, s.width)
    body = "nested(x, ws) + flat(x, vs)" if beside else "nested(x, ws)"
    arguments = "x, ws, vs" if beside else "x, ws"
    shapes = f"{x}, {ws}, {other}" if beside else f"{x}, {ws}"
    text = f"""{s.head}
def trace(devices):
    def f({arguments}):
        with set_xla_metadata(**({"BARRIER" if barrier else "{}"})):
            return {body}
    return jax.jit({_gradient(rng, "f")}).trace(*given(devices, {shapes}))
"""
    return Planted("trip count one" if barrier else "nested", text, ((s.dtype, (s.length, inner, *x)),))


def unrolled(rng: Random) -> Planted:
    """A scan that does several steps a turn, alone or inside another; batch and width differ from the weights'."""
    s = _sizes(rng, dtypes=("f32", "f32", "bf16"))
    at_once, turns, outer = rng.randint(2, 4), rng.randint(2, 5), rng.randint(2, 4)
    inside, x, w = rng.random() < 0.5, (s.batch, s.width), (s.width, s.width)
    # Inside, all steps at once: the inner loop is gone, and the outer one carries the stack.
    loops = (outer, at_once) if inside else (turns * at_once,)
    body = "lax.scan(lambda c, w: (steps(c, w), None), x, ws)[0]" if inside else "steps(x, ws)"
    text = f"""{s.head}
def trace(devices):
    def steps(x, ws):
        return lax.scan(offloaded(layer, "h"), x, ws, unroll={at_once})[0]
    def f(x, ws):
        return {body}
    return jax.jit({_gradient(rng, "f")}).trace(*given(devices, {x}, {(*loops, *w)}))
"""
    turn = prod((*loops, *x)) // (outer if inside else turns)
    return Planted("unrolled", text, ((s.dtype, (*loops, *x)),), turn=turn)


def branch(rng: Random) -> Planted:
    """Two stacks alike, one of a value inside a branch."""
    s = _sizes(rng)
    text = f"""{s.head}
def trace(devices):
    def body(c, w):
        c = jnp.sin(name(c, "h"))
        return lax.cond(w[0, 0] > 0, lambda c, w: ACT(name(c, "g") @ w), lambda c, w: c, c, w), None
    def f(x, ws):
        return lax.scan(offloaded(body, "h", "g"), x, ws)[0]
    return jax.jit({_gradient(rng, "f")}).trace(*given(devices, {(s.batch, s.width)}, {(s.length, s.width, s.width)}))
"""
    stack = (s.dtype, (s.length, s.batch, s.width))
    return Planted("one of two alike", text, (stack, stack))
