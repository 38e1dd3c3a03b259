"""How inputs enter and results leave: shardings, memory, donation; and what cannot be expressed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reducer.errors import ProgramError
from reducer.ir.equations import Entry, Mesh, ShardingConstraint, ShardMap, Transfer
from reducer.ir.walk import equations
from reducer.lowering.capture import capture

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import AbstractMesh, AxisType, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

X = jax.ShapeDtypeStruct((8, 4), jnp.float32)
HOST = jax.memory.Space.Host


def mesh(**axes: int) -> Any:
    return AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


def of(program: Any, kind: type) -> list[Any]:
    return [e for _, _, e in equations(program) if isinstance(e, kind)]


def test_shardings_and_donation_of_a_jitted_function() -> None:
    m = mesh(data=2, model=2)
    fn = jax.jit(
        lambda x, w: (x @ w, x),
        in_shardings=(NamedSharding(m, P("data")), NamedSharding(m, P(None, "model"))),
        out_shardings=(NamedSharding(m, P("data", "model")), None),
        donate_argnums=0,
    )
    w = jax.ShapeDtypeStruct((4, 16), jnp.float32)
    program = capture(fn, X, w)
    assert program.mesh == Mesh((("data", 2), ("model", 2)))
    assert program.inputs == (Entry(spec=("data",), donated=True), Entry(spec=(None, "model")))
    assert program.result_specs == (("data", "model"), None)


def test_the_same_given_to_capture() -> None:
    m = mesh(data=2)
    s = NamedSharding(m, P("data"))
    program = capture(lambda x: x * 2, X, in_shardings=s, out_shardings=s, donate_argnums=0)
    assert program.inputs == (Entry(spec=("data",), donated=True),)
    assert program.result_specs == (("data",),)


def test_shardings_of_arguments() -> None:
    x = jax.ShapeDtypeStruct((8, 4), jnp.float32, sharding=NamedSharding(mesh(a=2, b=4), P(("a", "b"))))
    assert capture(lambda x: x * 2, x).inputs == (Entry(spec=(("a", "b"),)),)


def test_one_device_needs_no_mesh() -> None:
    x = jax.device_put(jnp.ones((4,)), NamedSharding(jax.make_mesh((1,), ("a",), axis_types=(AxisType.Auto,)), P("a")))
    place = x.sharding
    program = capture(lambda x: lax.with_sharding_constraint(x, place) * 2, x)
    assert (program.mesh, program.inputs) == (None, ())
    assert not of(program, ShardingConstraint)


def test_two_meshes_are_refused() -> None:
    def fn(x: Any) -> Any:
        x = lax.with_sharding_constraint(x, NamedSharding(mesh(a=2), P("a")))
        return lax.with_sharding_constraint(x, NamedSharding(mesh(b=4), P("b")))

    with pytest.raises(ProgramError, match=r"not expressible: sharding_constraint.*two meshes"):
        capture(fn, X)


def test_memory_spaces() -> None:
    place = NamedSharding(mesh(a=2), P("a"), memory_kind="pinned_host")
    x = jax.ShapeDtypeStruct((8, 4), jnp.float32, sharding=place)
    program = capture(lambda x: jax.device_put(jax.device_put(x, jax.memory.Space.Device) * 2, HOST), x)
    assert str(program.block.params[0].type) == "f32[8,4]<host>"
    assert [e.memory for e in of(program, Transfer)] == ["device", "host"]


def test_moving_to_where_it_is_is_nothing() -> None:
    assert capture(lambda x: jax.device_put(x) * 2, X).block.eqns[0].outs[0].id == 1


def test_a_move_with_a_sharding_constrains_too() -> None:
    program = capture(lambda x: jax.device_put(x, NamedSharding(mesh(a=2), P("a"), memory_kind="pinned_host")), X)
    assert [type(e) for e in program.block.eqns] == [Transfer, ShardingConstraint]


def test_collectives_in_shard_map() -> None:
    def local(v: Any) -> Any:
        i = lax.axis_index("b").astype(jnp.float32)
        v = lax.ppermute(v, "b", [(0, 1), (1, 0)]) + i
        gathered = lax.all_gather(v, "b", axis=1, tiled=True)
        scattered = lax.psum_scatter(gathered, "b", scatter_dimension=1, tiled=True)
        swapped = lax.all_to_all(gathered, "b", 1, 0, tiled=True)
        return lax.psum(scattered, ("a", "b")), lax.pmax(v, "a"), swapped

    with jax.sharding.use_abstract_mesh(mesh(a=2, b=2)):
        fn = jax.shard_map(local, in_specs=P("a", "b"), out_specs=(P(), P(None, "b"), P(("a", "b"))), check_vma=False)
        program = capture(fn, X)
    (mapped,) = of(program, ShardMap)
    assert mapped.in_specs == (("a", "b"),)
    assert mapped.out_specs == ((), (None, "b"), (("a", "b"),))
    names = {getattr(e, "primitive", "") for e in mapped.body.eqns}
    assert {"axis_index", "ppermute", "all_gather", "reduce_scatter", "all_to_all", "psum", "pmax"} <= names


def test_manual_over_some_axes() -> None:
    with jax.sharding.use_abstract_mesh(mesh(a=2, b=2)):
        fn = jax.shard_map(lambda v: v * 2, in_specs=P("a"), out_specs=P("a"), axis_names={"a"})
        program = capture(jax.jit(fn), X)
    (mapped,) = of(program, ShardMap)
    assert mapped.manual == ("a",)


REFUSED: dict[str, tuple[Any, str]] = {
    "callback": (lambda x: jax.pure_callback(np.sin, X, x), "pure_callback -> float32\\[8,4\\] at .*test_entries.py"),
    "effect": (lambda x: jax.experimental.io_callback(np.sin, X, x), "io_callback"),
    "reference": (lambda x: jax.new_ref(x)[...], "no array|new_ref|ref"),
    "gamma": (lambda x: jax.random.gamma(jax.random.key(0), x), "random_gamma"),
    "loop-in-loop": (
        lambda x: lax.scan(lambda c, _: (jax.pure_callback(np.sin, X, c), None), x, None, length=2),
        "pure_callback",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_expressed_is_said_with_its_place(name: str) -> None:
    fn, message = REFUSED[name]
    with pytest.raises(ProgramError, match=f"not expressible: .*({message})") as error:
        capture(fn, X)
    assert "stablehlo" in error.value.hint


def test_errors_of_the_users_function_are_the_users() -> None:
    with pytest.raises(ZeroDivisionError):
        capture(lambda x: x / (1 // 0), X)


def test_scalars_become_scalars_and_fills_fills() -> None:
    def fn(x: Any) -> Any:
        return x * np.float32(0.1) + np.float64(np.inf) + np.full((4,), -0.0, np.float32) + jnp.bfloat16(0.1)

    text = [str(getattr(e, "args", getattr(e, "value", ""))) for e in capture(fn, X).block.eqns]
    assert any("value='0.1'" in t for t in text)
    assert any("value='inf'" in t for t in text)
    assert "-0.0" in text


def test_capturing_twice_gives_one_program() -> None:
    def fn(x: Any) -> Any:
        return jnp.tanh(x) @ x.T

    assert capture(fn, X) == capture(fn, X) == capture(jax.jit(fn), X)


def test_what_jit_takes_from_the_host_and_puts_there() -> None:
    """The state of an optimizer that lives on the host: only `jit`'s arguments say so, not the types."""
    m = mesh(a=2)
    host = NamedSharding(m, P("a"), memory_kind="pinned_host")

    def step(moments: Any, g: Any) -> Any:
        moments = jax.device_put(moments, NamedSharding(m, P("a"), memory_kind="device")) * 0.9 + g
        return moments, g.sum()

    fn = jax.jit(step, in_shardings=(host, None), out_shardings=(host, None), donate_argnums=0)
    program = capture(fn, X, X)
    assert [str(v.type) for v in program.block.params] == ["f32[8,4]<host>", "f32[8,4]"]
    assert [e.memory for e in of(program, Transfer)] == ["device", "host"]
    assert program.inputs[0] == Entry(spec=("a",), donated=True)
    assert program.result_specs == (("a",), None)


def test_an_array_on_the_host_of_one_device() -> None:
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
    x = jax.device_put(jnp.ones((4,)), place)
    program = capture(lambda x: jax.device_put(x, jax.memory.Space.Device) * 2, x)
    assert [e.memory for e in of(program, Transfer)] == ["device"]


def test_host_values_used_where_they_are_are_refused() -> None:
    host = NamedSharding(mesh(a=2), P("a"), memory_kind="pinned_host")
    with pytest.raises(ProgramError, match="not expressible: a value in host memory is used without moving it"):
        capture(jax.jit(lambda x: x + jnp.ones((8, 4)), in_shardings=host), X)
