"""Gradients of a loss accumulated over microbatches, an offloading stack of layers in it, in JAX and optax alone.

Two loops and nothing unusual: the shape that people meet first. Up to libtpu 0.0.51 it fails; newer ones
compile it, and leave on the device what should lie on the host.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.ad_checkpoint import checkpoint_name

LAYERS, MICROBATCHES = 4, 2
WIDTH, HEADS, VOCABULARY, LENGTH, BATCH = 128, 2, 256, 128, 2
OFFLOAD = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=["gate"],
    names_which_can_be_offloaded=["residual"],
    offload_src="device",
    offload_dst="pinned_host",
)
SHAPES = {
    "norm": (WIDTH,),
    "query": (WIDTH, WIDTH),
    "key": (WIDTH, WIDTH),
    "value": (WIDTH, WIDTH),
    "out": (WIDTH, WIDTH),
    "gate": (WIDTH, 2 * WIDTH),
    "up": (WIDTH, 2 * WIDTH),
    "down": (2 * WIDTH, WIDTH),
}


def norm(x, scale):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def rotate(x):
    angle = jnp.arange(LENGTH)[:, None] / 10_000 ** (jnp.arange(x.shape[-1] // 2) / (x.shape[-1] // 2))
    sin, cos = jnp.sin(angle)[:, None], jnp.cos(angle)[:, None]
    first, second = jnp.split(x, 2, -1)
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], -1)


def attention(x, w):
    q, k, v = ((x @ w[name]).reshape(*x.shape[:2], HEADS, -1) for name in ("query", "key", "value"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", rotate(q), rotate(k)) / 8.0
    mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(mask, scores, -1e9)), v)
    return mixed.reshape(x.shape) @ w["out"]


def layer(x, w):
    x = checkpoint_name(x + attention(norm(x, w["norm"]), w), "residual")
    gate = checkpoint_name(jax.nn.silu(x @ w["gate"]), "gate")
    return x + (gate * (x @ w["up"])) @ w["down"], None


def loss(params, tokens):
    x = params["embed"][tokens]
    x, _ = lax.scan(jax.checkpoint(layer, policy=OFFLOAD, prevent_cse=False), x, params["layers"])
    logits = norm(x, params["norm"]) @ params["embed"].T
    return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()


def step():
    optimizer = optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-3, 100, 1000))
    f32 = jnp.float32
    params = {
        "embed": jax.ShapeDtypeStruct((VOCABULARY, WIDTH), f32),
        "norm": jax.ShapeDtypeStruct((WIDTH,), f32),
        "layers": {name: jax.ShapeDtypeStruct((LAYERS, *shape), f32) for name, shape in SHAPES.items()},
    }

    def mean_loss(params, tokens):
        total, values = lax.scan(lambda total, part: (total + (value := loss(params, part)), value), 0.0, tokens)
        return total / MICROBATCHES, values.std()

    def train(params, state, tokens):
        (value, deviation), grads = jax.value_and_grad(mean_loss, has_aux=True)(params, tokens)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value, deviation

    tokens = jax.ShapeDtypeStruct((MICROBATCHES, BATCH, LENGTH), jnp.int32)
    return jax.jit(train, donate_argnums=(0, 1)), (params, jax.eval_shape(optimizer.init, params), tokens)
