"""A circular pipeline in JAX and optax: stages side by side under vmap, shifted each turn, their inputs offloaded.

Turns, layers of a stage, and pieces of the sequence in a layer: three loops inside what is differentiated.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.ad_checkpoint import checkpoint_name

STAGES, LAYERS, MICROBATCHES, PIECES = 2, 2, 2, 2
WIDTH, VOCABULARY, LENGTH, BATCH = 128, 256, 64, 2
OFFLOAD = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[],
    names_which_can_be_offloaded=["piece"],
    offload_src="device",
    offload_dst="pinned_host",
)
SHAPES = {
    "scale": (WIDTH,),
    "shift": (WIDTH,),
    "mix": (LENGTH // PIECES, LENGTH // PIECES),
    "in": (WIDTH, 2 * WIDTH),
    "in_bias": (2 * WIDTH,),
    "out": (2 * WIDTH, WIDTH),
    "out_bias": (WIDTH,),
}


def norm(x, w):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * w["scale"] + w["shift"]


def layer(x, w):
    """Mixes tokens within pieces of the sequence, one after the other, and then channels."""

    def piece(carry, part):
        mixed = jnp.einsum("btd,tu->bud", norm(checkpoint_name(part + carry, "piece"), w), jnp.tril(w["mix"]))
        part = part + jax.nn.gelu(mixed @ w["in"] + w["in_bias"]) @ w["out"] + w["out_bias"]
        return part.mean(1, keepdims=True), part

    body = jax.checkpoint(piece, policy=OFFLOAD, prevent_cse=False)
    parts = x.reshape(BATCH, PIECES, LENGTH // PIECES, WIDTH).swapaxes(0, 1)
    _, parts = lax.scan(body, jnp.zeros((BATCH, 1, WIDTH)), parts)
    return parts.swapaxes(0, 1).reshape(x.shape), None


def stage(w, x):
    return lax.scan(layer, x, w)[0]


def pipeline(w, microbatches):
    turns = MICROBATCHES + STAGES - 1
    fed = jnp.concatenate([microbatches, jnp.zeros((STAGES - 1, *microbatches.shape[1:]))])

    def turn(state, x):
        state = jax.vmap(stage)(w, jnp.roll(state, 1, 0).at[0].set(x))
        return state, state[-1]

    _, results = lax.scan(turn, jnp.zeros((STAGES, *microbatches.shape[1:])), fed, length=turns)
    return results[STAGES - 1 :]


def loss(params, tokens):
    x = pipeline(params["stages"], params["embed"][tokens] + params["position"])
    logits = jnp.einsum("mbtd,vd->mbtv", norm(x, params), params["embed"])
    found = optax.softmax_cross_entropy_with_integer_labels(logits[:, :, :-1], tokens[:, :, 1:])
    return jnp.where(tokens[:, :, 1:] > 0, found, 0.0).sum() / jnp.maximum((tokens[:, :, 1:] > 0).sum(), 1)


def step():
    f32 = jnp.float32
    params = {
        "embed": jax.ShapeDtypeStruct((VOCABULARY, WIDTH), f32),
        "position": jax.ShapeDtypeStruct((LENGTH, WIDTH), f32),
        "scale": jax.ShapeDtypeStruct((WIDTH,), f32),
        "shift": jax.ShapeDtypeStruct((WIDTH,), f32),
        "stages": {name: jax.ShapeDtypeStruct((STAGES, LAYERS, *shape), f32) for name, shape in SHAPES.items()},
    }
    decayed = optax.masked(optax.add_decayed_weights(0.1), lambda params: jax.tree.map(lambda p: p.ndim > 1, params))
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(), decayed, optax.scale(-1e-3))

    def train(params, state, tokens):
        value, grads = jax.value_and_grad(loss)(params, tokens)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    tokens = jax.ShapeDtypeStruct((MICROBATCHES, BATCH, LENGTH), jnp.int32)
    return jax.jit(train, donate_argnums=(0, 1)), (params, jax.eval_shape(optimizer.init, params), tokens)
