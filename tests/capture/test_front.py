"""`reducer.capture`: a function as the highest tier there is of it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.ad_checkpoint import checkpoint_name

import reducer
from reducer.errors import ProgramError
from reducer.ir.equations import Checkpoint, CustomJvp, Grad
from reducer.ir.tiers import tier_of
from reducer.ir.walk import equations

X = jax.ShapeDtypeStruct((8, 128), jnp.float32)
POLICY = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[],
    names_which_can_be_offloaded=["h"],
    offload_src="device",
    offload_dst="pinned_host",
)


def loss(x: Any) -> Any:
    def layer(c: Any, _: None) -> tuple[Any, None]:
        return jnp.sin(checkpoint_name(c, "h")), None

    return jnp.sum(jax.lax.scan(jax.checkpoint(layer, policy=POLICY), x, None, length=3)[0])


def test_a_function_that_takes_derivatives_is_what_it_differentiates() -> None:
    program = reducer.capture(jax.value_and_grad(loss), X)
    assert program.gradient == Grad((0,), with_value=True)
    assert tier_of(program) == "program"
    assert [type(eqn).__name__ for _, _, eqn in equations(program)].count("Checkpoint") == 1


def test_a_function_that_takes_none_keeps_its_rules() -> None:
    program = reducer.capture(lambda x: jax.nn.relu(x), X)
    assert program.gradient is None
    assert any(isinstance(eqn, CustomJvp) for _, _, eqn in equations(program))


def test_a_step_that_does_more_is_a_placement() -> None:
    def step(x: Any) -> Any:
        return x - jax.grad(loss)(x)

    program = reducer.capture(step, X)
    assert tier_of(program) == "placement"
    assert not any(isinstance(eqn, Checkpoint) and not eqn.differentiated for _, _, eqn in equations(program))


def test_what_cannot_be_written_down_says_so() -> None:
    def calls_back(x: Any) -> Any:
        return jax.pure_callback(lambda value: value, X, x)

    with pytest.raises(ProgramError, match=r"not expressible: .*pure_callback"):
        reducer.capture(calls_back, X)
