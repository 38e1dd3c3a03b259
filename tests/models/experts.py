"""A mixture of experts in flax.nnx: top-k routing with capacity, a load-balancing loss, expert activations offloaded.

Each layer is a loop of length one that must not be simplified away, as a model with layers of several kinds has them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental.xla_metadata import set_xla_metadata

LAYERS, EXPERTS, CHOSEN = 3, 4, 2
WIDTH, VOCABULARY, LENGTH, BATCH = 128, 256, 64, 4
OFFLOAD = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=["gates"],
    names_which_can_be_offloaded=["experts"],
    offload_src="device",
    offload_dst="pinned_host",
)


class Layer(nnx.Module):
    def __init__(self, rngs):
        self.norm = nnx.RMSNorm(WIDTH, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(2, WIDTH, decode=False, rngs=rngs)
        self.router = nnx.Linear(WIDTH, EXPERTS, rngs=rngs)
        self.up = nnx.Param(jax.random.normal(rngs.params(), (EXPERTS, WIDTH, 2 * WIDTH)) / 8)
        self.down = nnx.Param(jax.random.normal(rngs.params(), (EXPERTS, 2 * WIDTH, WIDTH)) / 16)

    def __call__(self, x):
        x = x + self.attention(self.norm(x), mask=nnx.make_causal_mask(x[..., 0]))
        probabilities = jax.nn.softmax(self.router(x))
        gates, chosen = lax.top_k(probabilities, CHOSEN)
        gates = checkpoint_name(gates / gates.sum(-1, keepdims=True), "gates")
        dispatch = jax.nn.one_hot(chosen, EXPERTS)
        # An expert takes so many tokens of a sequence, and drops the others.
        place = jnp.cumsum(dispatch, axis=1) - dispatch
        dispatch = dispatch * (place < LENGTH * CHOSEN / EXPERTS)
        weights = (dispatch * gates[..., None]).sum(-2)
        h = checkpoint_name(jax.nn.silu(jnp.einsum("btd,edf->btef", x, self.up[...])), "experts")
        y = jnp.einsum("btef,efd,bte->btd", h, self.down[...], weights)
        balance = EXPERTS * (dispatch.sum(-2).mean((0, 1)) * probabilities.mean((0, 1))).sum()
        return x + y, balance


class Model(nnx.Module):
    def __init__(self, rngs):
        self.embed = nnx.Embed(VOCABULARY, WIDTH, rngs=rngs)
        self.norm = nnx.RMSNorm(WIDTH, rngs=rngs)
        self.layers = nnx.vmap(Layer, in_axes=0)(rngs.fork(split=LAYERS))

    def __call__(self, tokens):
        graph, state = nnx.split(self.layers)

        def layer(x, state):
            return nnx.merge(graph, state)(x)

        body = jax.checkpoint(layer, policy=OFFLOAD, prevent_cse=False)

        def group(x, state):
            one = jax.tree.map(lambda leaf: leaf[None], state)
            with set_xla_metadata(**{"skip-simplify-while-loops_trip-count-one": "true"}):
                return lax.scan(body, x, one)

        x, balance = lax.scan(group, self.embed(tokens), state)
        return self.embed.attend(self.norm(x)), balance.mean()


def step():
    optimizer = optax.adamw(1e-3)
    graph, params = nnx.split(nnx.eval_shape(lambda: Model(nnx.Rngs(0))))
    params = nnx.to_pure_dict(params)
    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32)

    def loss(params, tokens):
        logits, balance = nnx.merge(graph, params)(tokens)
        return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean() + 0.01 * balance

    def train(params, state, tokens):
        value, grads = jax.value_and_grad(loss)(params, tokens)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    return jax.jit(train, donate_argnums=(0, 1)), (params, jax.eval_shape(optimizer.init, params), tokens)
