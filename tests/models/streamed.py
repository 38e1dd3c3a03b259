"""Layers' parameters live in host memory and are moved to the device one layer at a time, cast on arrival.

Their gradients are moved back as they come, through a custom derivative; activations of the blocks are offloaded too.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental.xla_metadata import set_xla_metadata
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

GROUPS = 3
WIDTH, HEADS, VOCABULARY, LENGTH, BATCH = 128, 2, 256, 64, 2
HOST, DEVICE = jax.memory.Space.Host, jax.memory.Space.Device
OFFLOAD = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[],
    names_which_can_be_offloaded=["group_input"],
    offload_src="device",
    offload_dst="pinned_host",
)
SHAPES = {
    "query": (WIDTH, WIDTH),
    "key": (WIDTH, WIDTH),
    "value": (WIDTH, WIDTH),
    "out": (WIDTH, WIDTH),
    "in": (WIDTH, 2 * WIDTH),
    "down": (2 * WIDTH, WIDTH),
}


@jax.custom_vjp
def arrive(w):
    """A layer's parameters, on the device and in bfloat16."""
    return jax.tree.map(lambda p: jax.device_put(p, DEVICE).astype(jnp.bfloat16), w)


def arrive_forward(w):
    return arrive(w), None


def arrive_backward(_, grads):
    return (jax.tree.map(lambda g: jax.device_put(g.astype(jnp.float32), HOST), grads),)


arrive.defvjp(arrive_forward, arrive_backward)


def norm(x):
    return (x * lax.rsqrt(jnp.mean(jnp.square(x.astype(jnp.float32)), -1, keepdims=True) + 1e-6)).astype(x.dtype)


def layer(x, w):
    x = checkpoint_name(x, "group_input")
    w = arrive(w)
    q, k, v = ((norm(x) @ w[name]).reshape(*x.shape[:2], HEADS, -1) for name in ("query", "key", "value"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) / 8.0
    mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9)).astype(x.dtype)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ w["out"]
    return x + jax.nn.gelu(norm(x) @ w["in"]) @ w["down"], None


def group(x, w):
    with set_xla_metadata(**{"skip-simplify-while-loops_trip-count-one": "true"}):
        return lax.scan(jax.checkpoint(layer, policy=OFFLOAD, prevent_cse=False), x, w)


def loss(layers, embed, tokens):
    x, _ = lax.scan(group, embed[tokens].astype(jnp.bfloat16), layers)
    logits = (norm(x) @ embed.T.astype(jnp.bfloat16)).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()


def step(devices):
    mesh = Mesh(np.array(devices[:1]), ("device",))
    host, device = NamedSharding(mesh, P(), memory_kind="pinned_host"), NamedSharding(mesh, P())
    layers = {
        name: jax.ShapeDtypeStruct((GROUPS, 1, *shape), jnp.float32, sharding=host) for name, shape in SHAPES.items()
    }
    embed = jax.ShapeDtypeStruct((VOCABULARY, WIDTH), jnp.float32, sharding=device)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3), optax.ema(0.99))
    state = jax.eval_shape(optimizer.init, (layers, embed))

    def train(layers, embed, state, tokens):
        value, (layer_grads, embed_grad) = jax.value_and_grad(loss, argnums=(0, 1))(layers, embed, tokens)
        here = jax.tree.map(lambda a: jax.device_put(a, DEVICE), (layers, layer_grads))
        updates, state = optimizer.update((here[1], embed_grad), state, (here[0], embed))
        moved, embed = optax.apply_updates((here[0], embed), updates)
        return jax.tree.map(lambda p: jax.device_put(p, HOST), moved), embed, state, value

    places = (jax.tree.map(lambda _: host, layers), device, jax.tree.map(lambda _: device, state), device)
    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32, sharding=device)
    return jax.jit(train, out_shardings=places, donate_argnums=(0, 2)), (layers, embed, state, tokens)
