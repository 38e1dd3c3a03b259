"""Linear attention in most layers and full attention in every third, in equinox: blocks, layers, chunks.

A block scans its linear layers, each of which scans over chunks of the sequence, and has one full layer behind a loop
of length one. Inputs of both kinds of layers are offloaded, under one policy.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental.xla_metadata import set_xla_metadata

BLOCKS, LINEAR, CHUNK = 2, 2, 32
WIDTH, HEADS, VOCABULARY, LENGTH, BATCH = 128, 2, 256, 128, 2
OFFLOAD = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[],
    names_which_can_be_offloaded=["linear_input", "full_input"],
    offload_src="device",
    offload_dst="pinned_host",
)
SIZE = WIDTH // HEADS


class Mixer(eqx.Module):
    norm: eqx.nn.RMSNorm
    project: eqx.nn.Linear
    gate: eqx.nn.Linear
    out: eqx.nn.Linear

    def __init__(self, key):
        keys = jax.random.split(key, 3)
        self.norm = eqx.nn.RMSNorm(WIDTH, use_bias=False)
        self.project = eqx.nn.Linear(WIDTH, 3 * WIDTH, use_bias=False, key=keys[0])
        self.gate = eqx.nn.Linear(WIDTH, HEADS, key=keys[1])
        self.out = eqx.nn.Linear(WIDTH, WIDTH, key=keys[2])

    def heads(self, x):
        h = jax.vmap(self.norm)(x)
        q, k, v = (p.reshape(LENGTH, HEADS, SIZE) for p in jnp.split(jax.vmap(self.project)(h), 3, -1))
        return q, k, v, jax.nn.sigmoid(jax.vmap(self.gate)(h))


class LinearAttention(Mixer):
    def __call__(self, x):
        q, k, v, decay = self.heads(checkpoint_name(x, "linear_input"))
        pieces = tuple(a.reshape(LENGTH // CHUNK, CHUNK, *a.shape[1:]) for a in (jax.nn.elu(q) + 1, k, v, decay))

        def chunk(state, piece):
            q, k, v, decay = piece
            inside = jnp.tril(jnp.einsum("qhd,khd->hqk", q, k))
            total = jnp.cumprod(decay, 0)
            y = jnp.einsum("hqk,khd->qhd", inside, v) + jnp.einsum("qhd,hde,qh->qhe", q, state, total)
            return state * total[-1][:, None, None] + jnp.einsum("khd,khe->hde", k, v), y

        _, y = lax.scan(chunk, jnp.zeros((HEADS, SIZE, SIZE)), pieces)
        return x + jax.vmap(self.out)(y.reshape(LENGTH, WIDTH))


class FullAttention(Mixer):
    def __call__(self, x):
        q, k, v, gate = self.heads(checkpoint_name(x, "full_input"))
        scores = jnp.einsum("qhd,khd->hqk", q, k) / jnp.sqrt(SIZE)
        mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
        y = jnp.einsum("hqk,khd->qhd", jax.nn.softmax(jnp.where(mask, scores, -1e9)), v) * gate[..., None]
        return x + jax.vmap(self.out)(y.reshape(LENGTH, WIDTH))


class Block(eqx.Module):
    linear: LinearAttention
    full: FullAttention

    def __init__(self, key):
        linear, full = jax.random.split(key)
        self.linear = eqx.filter_vmap(LinearAttention)(jax.random.split(linear, LINEAR))
        self.full = eqx.filter_vmap(FullAttention)(jax.random.split(full, 1))

    def __call__(self, x):
        x = scanned(self.linear, x)
        with set_xla_metadata(**{"skip-simplify-while-loops_trip-count-one": "true"}):
            return scanned(self.full, x)


def scanned(layers, x):
    arrays, static = eqx.partition(layers, eqx.is_array)

    def layer(x, arrays):
        return jax.vmap(eqx.combine(arrays, static))(x), None

    return lax.scan(jax.checkpoint(layer, policy=OFFLOAD, prevent_cse=False), x, arrays)[0]


class Model(eqx.Module):
    embed: eqx.nn.Embedding
    blocks: Block
    head: eqx.nn.Linear

    def __init__(self, key):
        embed, blocks, head = jax.random.split(key, 3)
        self.embed = eqx.nn.Embedding(VOCABULARY, WIDTH, key=embed)
        self.blocks = eqx.filter_vmap(Block)(jax.random.split(blocks, BLOCKS))
        self.head = eqx.nn.Linear(WIDTH, VOCABULARY, key=head)

    def __call__(self, tokens):
        arrays, static = eqx.partition(self.blocks, eqx.is_array)
        x = jax.vmap(jax.vmap(self.embed))(tokens)
        x, _ = lax.scan(lambda x, arrays: (eqx.combine(arrays, static)(x), None), x, arrays)
        return jax.vmap(jax.vmap(self.head))(x)


def step():
    params, static = eqx.partition(eqx.filter_eval_shape(Model, jax.random.key(0)), lambda leaf: hasattr(leaf, "dtype"))
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))

    def loss(params, tokens):
        logits = eqx.combine(params, static)(tokens)
        return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()

    def train(params, state, tokens):
        value, grads = jax.value_and_grad(loss)(params, tokens)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32)
    return jax.jit(train, donate_argnums=(0, 1)), (params, jax.eval_shape(optimizer.init, params), tokens)
