"""Parameters, optimizer state and batch sharded over four devices, layers in blocks, activations offloaded.

Constraints gather a layer's parameters before it is used, as fully sharded training does.
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

BLOCKS = 3
WIDTH, HEADS, VOCABULARY, LENGTH, BATCH = 128, 2, 256, 64, 8
OFFLOAD = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=["gate"],
    names_which_can_be_offloaded=["layer_input"],
    offload_src="device",
    offload_dst="pinned_host",
)
#: Shape, and which of its dimensions is sharded.
SHAPES = {
    "norm": ((WIDTH,), 0),
    "second_norm": ((WIDTH,), 0),
    "qkv": ((WIDTH, 3 * WIDTH), 0),
    "qkv_bias": ((3 * WIDTH,), 0),
    "out": ((WIDTH, WIDTH), 1),
    "gate": ((WIDTH, 2 * WIDTH), 0),
    "up": ((WIDTH, 2 * WIDTH), 0),
    "down": ((2 * WIDTH, WIDTH), 1),
}


def norm(x, scale):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * (1 + scale)


def layer_of(mesh):
    def layer(x, w):
        x = checkpoint_name(x, "layer_input")
        w = jax.tree.map(lambda p: lax.with_sharding_constraint(p, NamedSharding(mesh, P())), w)
        q, k, v = jnp.split(norm(x, w["norm"]) @ w["qkv"] + w["qkv_bias"], 3, -1)
        q, k, v = (a.reshape(*a.shape[:2], HEADS, -1) for a in (q, k, v))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(q.shape[-1])
        mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(mask, scores, -1e9)), v)
        x = x + mixed.reshape(x.shape) @ w["out"]
        x = lax.with_sharding_constraint(x, NamedSharding(mesh, P("fsdp")))
        h = norm(x, w["second_norm"])
        return x + (checkpoint_name(jax.nn.silu(h @ w["gate"]), "gate") * (h @ w["up"])) @ w["down"], None

    return jax.checkpoint(layer, policy=OFFLOAD, prevent_cse=False)


def loss_on(mesh):
    layer = layer_of(mesh)

    def block(x, w):
        with set_xla_metadata(**{"skip-simplify-while-loops_trip-count-one": "true"}):
            return lax.scan(layer, x, w)

    def loss(params, tokens):
        x, _ = lax.scan(block, params["embed"][tokens], params["blocks"])
        logits = norm(x, params["norm"]) @ params["embed"].T
        return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()

    return loss


def step(devices):
    mesh = Mesh(np.array(devices[:4]), ("fsdp",))
    loss = loss_on(mesh)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3, weight_decay=0.01))

    def array(shape, sharded, leading=()):
        spec = [None] * len(leading) + ["fsdp" if i == sharded else None for i in range(len(shape))]
        return jax.ShapeDtypeStruct((*leading, *shape), jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

    params = {
        "embed": array((VOCABULARY, WIDTH), 1),
        "norm": array((WIDTH,), 0),
        "blocks": {name: array(*shape, leading=(BLOCKS, 1)) for name, shape in SHAPES.items()},
    }
    shardings = {(p.shape, p.dtype): p.sharding for p in jax.tree.leaves(params)}
    state = jax.tree.map(
        lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=shardings.get((s.shape, s.dtype))),
        jax.eval_shape(optimizer.init, params),
    )
    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32, sharding=NamedSharding(mesh, P("fsdp")))

    def train(params, state, tokens):
        value, grads = jax.value_and_grad(loss)(params, tokens)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    return jax.jit(train, donate_argnums=(0, 1)), (params, state, tokens)
