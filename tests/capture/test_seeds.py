"""The three cases the project started from, before and after differentiation."""

from __future__ import annotations

from typing import Any

import pytest

from reducer.ir.equations import BARRIER, Checkpoint, Name, Scan, Transfer
from reducer.ir.policies import OffloadNames
from reducer.ir.walk import equations
from reducer.lowering.capture import capture
from reducer.lowering.emit import emit
from tests.capture.roundtrip import round_trip

jax = pytest.importorskip("jax")
D, B = 16, 8


def seed(blocks: int, layers: int, *, barrier: bool = False, flat: bool = False, prevent_cse: bool = False) -> Any:
    import contextlib

    import jax.numpy as jnp
    from jax import lax
    from jax.ad_checkpoint import checkpoint_name
    from jax.experimental.xla_metadata import set_xla_metadata

    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["h"], offload_src="device", offload_dst="pinned_host"
    )

    def layer(carry: Any, w: Any) -> Any:
        return jnp.tanh(checkpoint_name(carry @ w, "h")), None

    body = jax.checkpoint(layer, policy=policy, prevent_cse=prevent_cse)

    def block(carry: Any, ws: Any) -> Any:
        marked = set_xla_metadata(**dict(BARRIER)) if barrier else contextlib.nullcontext()
        with marked:
            return lax.scan(body, carry, ws)

    def run(w: Any, x: Any) -> Any:
        if flat:
            return lax.scan(body, x, w)[0]
        return lax.scan(block, x, w.reshape(blocks, layers, D, D))[0]

    return run


SEEDS = {
    "flat": {"blocks": 1, "layers": 12, "flat": True},
    "nested": {"blocks": 4, "layers": 3},
    "trip-count-one": {"blocks": 12, "layers": 1, "barrier": True},
    "prevent-cse": {"blocks": 4, "layers": 3, "prevent_cse": True},
}


def inputs() -> tuple[Any, Any]:
    import jax.numpy as jnp

    return jnp.linspace(-1, 1, 12 * D * D).reshape(12, D, D), jnp.linspace(-1, 1, B * D).reshape(B, D)


@pytest.mark.parametrize("name", SEEDS)
def test_before_grad(name: str) -> None:
    program = round_trip(seed(**SEEDS[name]), *inputs())
    found = [e for _, _, e in equations(program)]
    (checkpoint,) = [e for e in found if isinstance(e, Checkpoint)]
    assert checkpoint.policy == OffloadNames(offloaded=("h",))
    assert checkpoint.prevent_cse == (name == "prevent-cse")
    assert [e.name for e in found if isinstance(e, Name)] == ["h"]
    assert [e.metadata for e in found if isinstance(e, Scan)][-1] == (BARRIER if name == "trip-count-one" else ())


@pytest.mark.parametrize("name", SEEDS)
def test_after_grad(name: str) -> None:
    fn = seed(**SEEDS[name])
    program = round_trip(jax.value_and_grad(lambda w, x: fn(w, x).sum()), *inputs())
    found = [e for _, _, e in equations(program)]
    assert [e.memory for e in found if isinstance(e, Transfer)] == ["host", "device"]
    assert [e.differentiated for e in found if isinstance(e, Checkpoint)] == [True] * (name == "prevent-cse")


def test_a_loop_in_a_loop_keeps_its_own_barrier() -> None:
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental.xla_metadata import set_xla_metadata

    def loops(x: Any) -> Any:
        def outer(c: Any, _: Any) -> Any:
            with set_xla_metadata(**dict(BARRIER)):
                return lax.scan(lambda c, _: (jnp.sin(c), None), c, None, length=1)[0], None

        with set_xla_metadata(**dict(BARRIER)):
            return lax.scan(outer, x, None, length=1)[0]

    program = capture(loops, jax.ShapeDtypeStruct((8, 128), "float32"))
    assert [e.metadata for _, _, e in equations(program) if isinstance(e, Scan)] == [BARRIER, BARRIER]
    assert "None})" not in emit(program)
