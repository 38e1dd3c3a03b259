"""Experts spread over four devices under shard_map, tokens exchanged with all_to_all, dispatched tokens offloaded."""

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

LAYERS, EXPERTS, CAPACITY = 3, 4, 32
WIDTH, VOCABULARY, LENGTH, BATCH = 128, 256, 64, 8
OFFLOAD = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[],
    names_which_can_be_offloaded=["layer_input"],
    offload_src="device",
    offload_dst="pinned_host",
)


def norm(x, scale):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def experts(x, w):
    """One device's tokens through everybody's experts."""
    tokens = x.reshape(-1, WIDTH)
    gates = jax.nn.softmax(tokens @ w["router"])
    chosen = jnp.argmax(gates, -1)
    order = jnp.argsort(chosen)
    place = jnp.arange(len(tokens)) - jnp.searchsorted(chosen[order], jnp.arange(EXPERTS))[chosen[order]]
    sent = jnp.zeros((EXPERTS, CAPACITY, WIDTH)).at[chosen[order], place].set(tokens[order], mode="drop")
    here = lax.all_to_all(sent, "expert", 0, 0, tiled=True)
    done = jax.nn.silu(here @ w["up"][0]) @ w["down"][0]
    back = lax.all_to_all(done, "expert", 0, 0, tiled=True)
    found = back.at[chosen[order], place].get(mode="fill", fill_value=0.0)
    mixed = jnp.zeros_like(tokens).at[order].add(found) * jnp.take_along_axis(gates, chosen[:, None], -1)
    load = lax.pmean(jax.nn.one_hot(chosen, EXPERTS).mean(0), "expert")
    return x + mixed.reshape(x.shape), EXPERTS * (load * lax.pmean(gates.mean(0), "expert")).sum()


def loss_on(mesh):
    split = {"router": P(), "up": P("expert"), "down": P("expert")}

    def layer(x, w):
        x = checkpoint_name(x, "layer_input")
        mean = jnp.cumsum(norm(x, w["norm"]), 1) / jnp.arange(1, LENGTH + 1)[:, None]
        x = x + jnp.tanh(mean @ w["mix"])
        mapped = jax.shard_map(experts, mesh=mesh, in_specs=(P("expert"), split), out_specs=(P("expert"), P()))
        return mapped(x, {name: w[name] for name in split})

    body = jax.checkpoint(layer, policy=OFFLOAD, prevent_cse=False)

    def group(x, w):
        with set_xla_metadata(**{"skip-simplify-while-loops_trip-count-one": "true"}):
            return lax.scan(body, x, jax.tree.map(lambda p: p[None], w))

    def loss(params, tokens):
        x, balance = lax.scan(group, params["embed"][tokens], params["layers"])
        logits = norm(x, params["norm"]) @ params["embed"].T
        found = optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()
        return found + 0.01 * balance.mean()

    return loss


def step(devices):
    mesh = Mesh(np.array(devices[:4]), ("expert",))
    loss = loss_on(mesh)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3), optax.ema(0.99))

    def array(*shape, spec=()):
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

    params = {
        "embed": array(VOCABULARY, WIDTH),
        "norm": array(WIDTH),
        "layers": {
            "norm": array(LAYERS, WIDTH),
            "mix": array(LAYERS, WIDTH, WIDTH),
            "router": array(LAYERS, WIDTH, EXPERTS),
            "up": array(LAYERS, EXPERTS, WIDTH, 2 * WIDTH, spec=(None, "expert")),
            "down": array(LAYERS, EXPERTS, 2 * WIDTH, WIDTH, spec=(None, "expert")),
        },
    }

    def train(params, state, tokens):
        value, grads = jax.value_and_grad(loss)(params, tokens)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32, sharding=NamedSharding(mesh, P("expert")))
    state = jax.eval_shape(optimizer.init, params)
    shardings = {p.shape: p.sharding for p in jax.tree.leaves(params)}
    everywhere = NamedSharding(mesh, P())
    state = jax.tree.map(
        lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=shardings.get(s.shape, everywhere)), state
    )
    return jax.jit(train, donate_argnums=(0, 1)), (params, state, tokens)
