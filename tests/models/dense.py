"""A dense transformer in flax.linen: gradients accumulated over microbatches, layers in blocks, activations offloaded.

Three loops around what is offloaded: microbatches, blocks, layers.
"""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.ad_checkpoint import checkpoint_name

LAYERS, BLOCKS, MICROBATCHES = 2, 2, 2
WIDTH, HEADS, VOCABULARY, LENGTH, BATCH = 128, 2, 256, 128, 2
OFFLOAD = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[],
    names_which_can_be_offloaded=["attention"],
    offload_src="device",
    offload_dst="pinned_host",
)


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        h = nn.RMSNorm()(x)
        q, k, v = (nn.DenseGeneral((HEADS, WIDTH // HEADS), name=name)(h) for name in ("query", "key", "value"))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(WIDTH // HEADS)
        scores = jnp.where(nn.make_causal_mask(x[..., 0]), scores, -1e9)
        h = jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores), v).reshape(x.shape)
        x = x + nn.Dense(WIDTH)(checkpoint_name(h, "attention"))
        return x + nn.Dense(WIDTH)(nn.gelu(nn.Dense(2 * WIDTH)(nn.LayerNorm()(x)))), None


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        layer = nn.remat(Layer, policy=OFFLOAD, prevent_cse=False)
        return nn.scan(layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=LAYERS)()(x, None)


class Model(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        embed = nn.Embed(VOCABULARY, WIDTH)
        blocks = nn.scan(Block, variable_axes={"params": 0}, split_rngs={"params": True}, length=BLOCKS)
        x, _ = blocks()(embed(tokens), None)
        return embed.attend(nn.RMSNorm()(x))


def step():
    model, optimizer = Model(), optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    tokens = jax.ShapeDtypeStruct((MICROBATCHES, BATCH, LENGTH), jnp.int32)
    params = jax.eval_shape(model.init, jax.random.key(0), jax.ShapeDtypeStruct(tokens.shape[1:], jnp.int32))

    def loss(params, tokens):
        logits = model.apply(params, tokens)[:, :-1]
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    def train(params, state, tokens):
        def accumulate(total, tokens):
            value, grads = jax.value_and_grad(loss)(params, tokens)
            return jax.tree.map(jnp.add, total, grads), value

        grads, values = jax.lax.scan(accumulate, jax.tree.map(jnp.zeros_like, params), tokens)
        grads = jax.tree.map(lambda g: g / MICROBATCHES, grads)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, values.mean()

    return jax.jit(train, donate_argnums=(0, 1)), (params, jax.eval_shape(optimizer.init, params), tokens)
