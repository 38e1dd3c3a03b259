"""From the program tier down, and back up: `differentiate` and `watch_grad`."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reducer.errors import ProgramError
from reducer.ir.build import Builder
from reducer.ir.equations import (
    Checkpoint,
    CustomJvp,
    CustomVjp,
    Entry,
    Grad,
    Mesh,
    Program,
    Scan,
    ShardingConstraint,
    ShardMap,
    Transfer,
)
from reducer.ir.policies import OffloadNames
from reducer.ir.text import to_text
from reducer.ir.types import Type
from reducer.ir.walk import equations
from reducer.lowering.capture import capture, captured, differentiate, watch_grad
from reducer.lowering.load import load
from tests.capture.roundtrip import leaves, same_numbers
from tests.capture.test_seeds import SEEDS, inputs, seed

jax = pytest.importorskip("jax")


def kinds(program: Program, kind: type) -> list[Any]:
    return [e for _, _, e in equations(program) if isinstance(e, kind)]


@pytest.mark.parametrize("name", SEEDS)
def test_differentiating_a_program_is_capturing_the_derivative(name: str) -> None:
    fn = seed(**SEEDS[name])
    program = replace(capture(fn, *inputs()), gradient=Grad(argnums=(0,)))
    derived = differentiate(program)
    assert derived.gradient is None
    assert to_text(derived) == to_text(capture(jax.value_and_grad(lambda w, x: fn(w, x).sum()), *inputs()))
    assert kinds(derived, Transfer)


@pytest.mark.parametrize("name", SEEDS)
@pytest.mark.parametrize("with_value", [True, False])
def test_watching_recovers_the_program(name: str, with_value: bool) -> None:
    fn = seed(**SEEDS[name])
    take = jax.value_and_grad if with_value else jax.grad
    found = watch_grad(jax.jit(take(lambda w, x: fn(w, x).sum())), *inputs())
    assert found.exact, found.reason
    assert found.program is not None
    assert found.program.gradient == Grad(argnums=(0,), with_value=with_value)
    expected = replace(capture(lambda w, x: fn(w, x).sum(), *inputs()), gradient=found.program.gradient)
    assert to_text(found.program) == to_text(expected)


def test_a_training_step_gives_its_loss_and_says_so() -> None:
    fn = seed(**SEEDS["nested"])

    def step(w: Any, momentum: Any, x: Any) -> Any:
        loss, g = jax.value_and_grad(lambda w: (fn(w, x) ** 2).mean())(w)
        momentum = 0.9 * momentum + g
        return loss, w - 0.1 * momentum, momentum

    w, x = inputs()
    found = watch_grad(jax.jit(step, donate_argnums=(0, 1)), w, w, x)
    assert not found.exact
    assert found.reason
    assert found.program is not None
    assert found.program.gradient == Grad(argnums=(0,))
    assert [e.policy for e in kinds(found.program, Checkpoint)] == [OffloadNames(offloaded=("h",))]
    assert found.placement.program.inputs == (Entry(donated=True), Entry(donated=True), Entry())


def test_watching_a_vjp_with_an_auxiliary_result() -> None:
    def loss(w: Any, x: Any) -> Any:
        y = jax.numpy.tanh(x @ w)
        return y.sum(), {"norm": (y * y).sum()}

    w, x = inputs()
    found = watch_grad(jax.value_and_grad(loss, has_aux=True), w[0], x)
    assert found.program is not None
    assert len(found.program.block.results) == 1  # the auxiliary result is no part of the objective
    assert not found.exact
    pulled = watch_grad(lambda w, x: jax.vjp(lambda w: x @ w, w)[1](x @ w), w[0], x)
    assert pulled.program is not None


def test_a_function_without_derivatives_has_a_placement_tier_only() -> None:
    found = watch_grad(lambda x: x * 2, inputs()[1])
    assert (found.program, found.exact) == (None, False)
    assert "no derivative" in found.reason
    assert len(found.placement.program.block.eqns) == 1


def test_what_was_traced_before_is_still_seen() -> None:
    fn = jax.jit(jax.grad(lambda w, x: (x @ w).sum()))
    w, x = inputs()
    jax.block_until_ready(fn(w[0], x))
    found = watch_grad(lambda w, x: fn(w, x), w[0], x)
    assert found.exact


def test_a_gradient_inside_a_loop_is_found() -> None:
    def steps(w: Any, xs: Any) -> Any:
        def step(w: Any, x: Any) -> Any:
            return w - 0.1 * jax.grad(lambda w: jax.numpy.tanh(x @ w).sum())(w), None

        return jax.lax.scan(step, w, xs)[0]

    w, x = inputs()
    found = watch_grad(steps, w[0], x.reshape(2, 4, 16))
    assert found.program is not None
    assert not found.exact
    assert not kinds(found.program, Scan)
    assert kinds(found.placement.program, Scan)


def test_custom_rules_stay_in_the_program_and_vanish_in_the_placement_tier() -> None:
    @jax.custom_vjp
    def thrice(x: Any, y: Any) -> Any:
        return x * x * y

    thrice.defvjp(lambda x, y: (thrice(x, y), (x, y)), lambda r, g: (3 * g * r[0], g * r[1]))

    def loss(x: Any) -> Any:
        return thrice(jax.nn.relu(x), jax.nn.softplus(x)).sum()

    _, x = inputs()
    found = watch_grad(jax.value_and_grad(loss), x)
    assert found.exact, found.reason
    assert found.program is not None
    assert kinds(found.program, CustomVjp)
    assert kinds(found.program, CustomJvp)
    assert not kinds(found.placement.program, CustomVjp)
    same_numbers(leaves(jax.value_and_grad(loss)(x)), leaves(load(found.program).fn(x)), 1e-6)
    same_numbers(leaves(jax.value_and_grad(loss)(x)), leaves(load(differentiate(found.program)).fn(x)), 1e-6)


def test_a_program_that_jax_does_not_differentiate() -> None:
    b = Builder()
    x = b.param(Type("float32", (4,)))
    cond = Builder()
    going = cond.op(
        "lt", cond.op("reduce_sum", cond.param(Type("float32", (4,))), axes=(0,)), cond.param(Type("float32"))
    )
    body = Builder()
    value, limit = body.param(Type("float32", (4,))), body.param(Type("float32"))
    (out, _) = b.while_loop(
        cond.block(going), body.block(body.op("mul", value, value), limit), (x, b.op("reduce_sum", x, axes=(0,)))
    )
    program = Program(block=b.block(out), gradient=Grad(argnums=(0,)))
    with pytest.raises(ProgramError, match="JAX does not differentiate"):
        differentiate(program)


def test_host_inputs_have_host_gradients() -> None:
    b = Builder()
    w, x = b.param(Type("float32", (8, 8), "host")), b.param(Type("float32", (4, 8)))
    y = b.op("tanh", b.matmul(x, b.transfer(w, "device")))
    derived = differentiate(Program(block=b.block(y), gradient=Grad(argnums=(0,))))
    types = {v.id: v.type for e in derived.block.eqns for v in e.outs}
    assert [str(types[r]) for r in derived.block.results if isinstance(r, int)] == ["f32[]", "f32[8,8]<host>"]


def test_meshes_need_no_devices() -> None:
    from jax import lax
    from jax.sharding import AbstractMesh, AxisType
    from jax.sharding import PartitionSpec as P

    def fn(x: Any) -> Any:
        x = lax.with_sharding_constraint(x, P(None, "b"))
        summed = jax.shard_map(lambda v: lax.psum(jax.numpy.tanh(v), "a"), in_specs=P("a", "b"), out_specs=P(None, "b"))
        return summed(x).sum()

    with jax.sharding.use_abstract_mesh(AbstractMesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)):
        program = capture(fn, jax.ShapeDtypeStruct((8, 4), "float32"))
        expected = capture(jax.value_and_grad(fn), jax.ShapeDtypeStruct((8, 4), "float32"))
    assert program.mesh == Mesh((("a", 2), ("b", 2)))
    assert [e.spec for e in kinds(program, ShardingConstraint)] == [(None, "b")]
    (mapped,) = kinds(program, ShardMap)
    assert (mapped.in_specs, mapped.out_specs, mapped.manual) == ((("a", "b"),), ((None, "b"),), ())
    program = replace(program, inputs=(Entry(spec=("a",)),), gradient=Grad(argnums=(0,)))
    derived = differentiate(program)
    assert to_text(replace(derived, inputs=())) == to_text(expected)
    assert (derived.mesh, derived.inputs) == (program.mesh, program.inputs)


def test_values_that_vary_already_are_not_made_to_vary_again() -> None:
    """Sorting beside a varying value makes a value vary in the text that did not in the trace."""
    from jax import lax
    from jax.sharding import AbstractMesh, AxisType
    from jax.sharding import PartitionSpec as P

    def local(x: Any) -> Any:
        order = jax.numpy.argsort(x[:, 0])
        return x[order] * lax.psum(x, "a")

    with jax.sharding.use_abstract_mesh(AbstractMesh((2,), ("a",), axis_types=(AxisType.Auto,))):
        mapped = jax.shard_map(local, in_specs=P("a"), out_specs=P("a"))
        program = capture(lambda x: mapped(x).sum(), jax.ShapeDtypeStruct((8, 4), "float32"))
    assert "pvary" in to_text(program)
    derived = differentiate(replace(program, gradient=Grad(argnums=(0,))))
    assert [str(derived.block.params[0].type), len(derived.block.results)] == ["f32[8,4]", 2]


def test_constants_follow_the_inputs() -> None:
    import numpy as np

    table = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    found = captured(lambda x: jax.lax.scan(lambda c, r: (c + r @ table, c), jax.numpy.zeros(3), x), np.ones((5, 4)))
    assert [str(v.type) for v in found.program.block.params] == ["f32[5,4]", "f32[4,3]"]
    np.testing.assert_array_equal(found.values[1], table)
