"""Adam's moments live in host memory, donated, and are updated inside the step; activations are offloaded too."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental.xla_metadata import set_xla_metadata
from jax.sharding import SingleDeviceSharding

LAYERS = 3
WIDTH, HEADS, VOCABULARY, LENGTH, BATCH = 128, 2, 256, 64, 2
OFFLOAD = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=["attention"],
    names_which_can_be_offloaded=["mlp"],
    offload_src="device",
    offload_dst="pinned_host",
)


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        mask = nn.make_causal_mask(x[..., 0])
        h = nn.MultiHeadDotProductAttention(num_heads=HEADS)(nn.LayerNorm()(x), mask=mask)
        x = x + checkpoint_name(h, "attention")
        h = nn.Dense(2 * WIDTH)(nn.LayerNorm()(x))
        return x + nn.Dense(WIDTH)(nn.gelu(checkpoint_name(h, "mlp"))), None


class Group(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        layer = nn.remat(Layer, policy=OFFLOAD, prevent_cse=False)
        layers = nn.scan(layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=1)
        with set_xla_metadata(**{"skip-simplify-while-loops_trip-count-one": "true"}):
            return layers()(x, None)


class Model(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        embed = nn.Embed(VOCABULARY, WIDTH)
        groups = nn.scan(Group, variable_axes={"params": 0}, split_rngs={"params": True}, length=LAYERS)
        return embed.attend(nn.LayerNorm()(groups()(embed(tokens), None)[0]))


def step(devices):
    device = SingleDeviceSharding(devices[0])
    host = SingleDeviceSharding(devices[0], memory_kind="pinned_host")
    model, optimizer = Model(), optax.adam(optax.cosine_decay_schedule(1e-3, 1000))

    def placed(tree, where):
        return jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=where(a)), tree)

    def moments_on_host(leaf):
        return host if leaf.ndim > 0 else device  # counters stay

    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32, sharding=device)
    params = placed(jax.eval_shape(model.init, jax.random.key(0), tokens), lambda _: device)
    state = placed(jax.eval_shape(optimizer.init, params), moments_on_host)

    def moved(state, space):
        return jax.tree.map(lambda a: jax.device_put(a, space) if a.ndim > 0 else a, state)

    def loss(params, tokens):
        logits = model.apply(params, tokens)[:, :-1]
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    def train(params, state, tokens):
        value, grads = jax.value_and_grad(loss)(params, tokens)
        updates, state = optimizer.update(grads, moved(state, jax.memory.Space.Device), params)
        return optax.apply_updates(params, updates), moved(state, jax.memory.Space.Host), value

    places = (jax.tree.map(lambda _: device, params), jax.tree.map(moments_on_host, state), device)
    return jax.jit(train, out_shardings=places, donate_argnums=(0, 1)), (params, state, tokens)
