"""A deep stack in JAX and optax whose policy stands in unusual places: around the whole nest, on both levels of it, and
on values too small to be offloaded well. Three ways to fail that differ from those of the other models.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.ad_checkpoint import checkpoint_name

BLOCKS, LAYERS = 2, 3
WIDTH, STATES, VOCABULARY, LENGTH, BATCH = 128, 16, 256, 64, 2
SHAPES = {
    "norm": (WIDTH,),
    "bias": (WIDTH,),
    "in": (WIDTH, 2 * WIDTH),
    "decay": (STATES,),
    "read": (STATES, WIDTH),
    "write": (WIDTH, STATES),
    "gate": (WIDTH, WIDTH),
    "gate_bias": (WIDTH,),
    "out": (2 * WIDTH, WIDTH),
    "out_bias": (WIDTH,),
}


def offload(*names):
    return jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=list(names),
        offload_src="device",
        offload_dst="pinned_host",
    )


def norm(x, w):
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-6) * w["norm"] + w["bias"]


def layer(x, w):
    """A state-space mixer by a parallel scan over the sequence, a gate, and a norm of the layer's own output."""
    x = checkpoint_name(x, "layer_input")
    h = norm(x, w)
    decay = jnp.broadcast_to(jax.nn.sigmoid(w["decay"]), (BATCH, LENGTH, STATES))

    def join(first, second):
        return first[0] * second[0], first[1] * second[0] + second[1]

    _, states = lax.associative_scan(join, (decay, h @ w["write"]), axis=1)
    h = h * jax.nn.silu(h @ w["gate"] + w["gate_bias"]) + states @ w["read"]
    y = jax.nn.gelu(h @ w["in"]) @ w["out"] + w["out_bias"]
    size = checkpoint_name(jnp.sqrt((y**2).mean() + 1e-6), "size")
    gain = checkpoint_name((y / size).mean((0, 1)).astype(jnp.bfloat16), "gain")
    return x + y / size * jax.nn.sigmoid(gain.astype(jnp.float32)), size


def train_with(stack):
    """A training step over `stack(x, layers) -> x, sizes`."""

    def loss(params, tokens):
        x, sizes = stack(params["embed"][tokens], params["layers"])
        logits = norm(x, params) @ params["embed"].T
        found = optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()
        return found + 1e-3 * jnp.log(sizes).mean()

    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3), optax.ema(0.99))

    def train(params, state, tokens):
        value, grads = jax.value_and_grad(loss)(params, tokens)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    f32 = jnp.float32
    params = {
        "embed": jax.ShapeDtypeStruct((VOCABULARY, WIDTH), f32),
        "norm": jax.ShapeDtypeStruct((WIDTH,), f32),
        "bias": jax.ShapeDtypeStruct((WIDTH,), f32),
        "layers": {name: jax.ShapeDtypeStruct((BLOCKS, LAYERS, *shape), f32) for name, shape in SHAPES.items()},
    }
    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32)
    return jax.jit(train, donate_argnums=(0, 1)), (params, jax.eval_shape(optimizer.init, params), tokens)


def nested(x, layers, *, inner=lambda f: f, block=lambda f: f):
    return lax.scan(block(lambda x, w: lax.scan(inner(layer), x, w)), x, layers)


def under(*names):
    return partial(jax.checkpoint, policy=offload(*names), prevent_cse=False)


def whole():
    """One policy around the whole nest."""
    return train_with(jax.checkpoint(nested, policy=offload("layer_input"), prevent_cse=False))


def both():
    """A policy on the layers and another on the blocks."""
    return train_with(partial(nested, inner=under("layer_input"), block=under("layer_input")))


def scalars():
    """One number per layer, offloaded."""
    return train_with(partial(nested, inner=under("size")))


def vectors():
    """One bfloat16 vector per layer, offloaded."""
    return train_with(partial(nested, inner=under("gain")))
