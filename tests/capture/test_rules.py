"""Custom derivative rules: kept as traced blocks before differentiation, gone after it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from reducer.errors import ProgramError
from reducer.ir.equations import CustomJvp, CustomVjp, Grad, Program
from reducer.ir.walk import equations
from reducer.lowering.capture import capture, captured, differentiate
from reducer.lowering.load import load
from tests.capture.roundtrip import leaves, round_trip, same_numbers

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

X = jnp.linspace(-1, 1, 6)


@jax.custom_jvp
def bent(x: Any) -> Any:
    return jnp.logaddexp(x, 0.0)


@bent.defjvp
def _(primals: Any, tangents: Any) -> Any:
    # On purpose not the derivative: a rule that is lost shows.
    return bent(*primals), 7 * tangents[0] * jax.nn.sigmoid(primals[0])


@jax.custom_vjp
def tripled(x: Any, y: Any, n: Any) -> Any:
    return x * x * y + n, x


tripled.defvjp(
    lambda x, y, n: (tripled(x, y, n), (x, {"y": y, "both": x * y})),
    lambda r, g: (3 * g[0] * r[1]["both"] + g[1], g[0] * r[0] * r[0], None),
)


def kinds(program: Program, kind: type) -> list[Any]:
    return [e for _, _, e in equations(program) if isinstance(e, kind)]


def gradients_agree(fn: Any, *args: Any, argnums: tuple[int, ...] = (0,)) -> Program:
    """The captured program has the function's own gradients, by its text and after `differentiate`."""
    found = captured(fn, *args)
    program = replace(found.program, gradient=Grad(argnums=argnums))
    want = leaves(jax.value_and_grad(lambda *a: sum(jnp.sum(v) for v in jax.tree.leaves(fn(*a))), argnums)(*args))
    same_numbers(want, leaves(load(program).fn(*found.values)), 1e-6)
    same_numbers(want, leaves(load(differentiate(program)).fn(*found.values)), 1e-6)
    return program


def test_jvp_rules_are_traced() -> None:
    program = gradients_agree(lambda x: bent(x) * 2, X)
    (rule,) = kinds(program, CustomJvp)
    assert [str(v.type) for v in rule.jvp.params] == ["f32[6]", "f32[6]"]
    round_trip(lambda x: bent(x) * 2, X)


def test_vjp_rules_are_traced_with_their_residuals() -> None:
    program = gradients_agree(lambda x, y: tripled(x, y, 3), X, X + 2, argnums=(0, 1))
    (rule,) = kinds(program, CustomVjp)
    assert rule.n_residuals == 3
    assert len(rule.bwd.results) == 2  # the integer has no cotangent
    round_trip(lambda x, y: tripled(x, y, 3), X, X + 2)


def test_rules_inside_loops_and_checkpoints() -> None:
    def fn(x: Any) -> Any:
        body = jax.checkpoint(lambda c, _: (tripled(bent(c), c, 1)[0], None))
        return lax.scan(body, x, None, length=2)[0]

    program = gradients_agree(fn, X)
    assert kinds(program, CustomVjp)
    assert kinds(program, CustomJvp)


def test_rules_of_a_library() -> None:
    gradients_agree(lambda x: jax.nn.relu(x) + jax.nn.softplus(x) + jax.nn.silu(x) + jax.nn.relu6(x) + x, X)


def test_a_rule_may_use_a_constant_array() -> None:
    table = np.arange(6, dtype=np.float32)

    @jax.custom_jvp
    def weighted(x: Any) -> Any:
        return x * table

    weighted.defjvp(lambda p, t: (weighted(*p), t[0] * table * 3))
    program = gradients_agree(weighted, X)
    assert [str(v.type) for v in program.block.params] == ["f32[6]", "f32[6]"]


def test_both_halves_of_a_rule_may_use_constant_arrays() -> None:
    table = np.arange(6, dtype=np.float32)
    other = table[::-1].copy()

    @jax.custom_vjp
    def weighted(x: Any) -> Any:
        return x * table

    weighted.defvjp(lambda x: (weighted(x), jnp.sin(x)), lambda r, g: (r * g * table * other,))
    program = gradients_agree(weighted, X)
    assert [str(v.type) for v in program.block.params] == ["f32[6]"] * 3


def test_a_rule_that_closes_over_traced_values_is_refused() -> None:
    def fn(x: Any, y: Any) -> Any:
        @jax.custom_jvp
        def shifted(x: Any) -> Any:
            return x * jnp.sin(y)

        shifted.defjvp(lambda p, t: (shifted(*p), t[0] * 5))
        return shifted(x)

    with pytest.raises(ProgramError, match=r"not expressible: custom_jvp_call.*closes over a traced value"):
        capture(fn, X, X + 1)
    round_trip(fn, X, X + 1, rules="inline")


def test_inlined_on_request() -> None:
    program = round_trip(lambda x: (bent(x), tripled(x, x, 1)), X, rules="inline", module=False)
    assert not kinds(program, CustomVjp)
    assert not kinds(program, CustomJvp)


def test_a_rule_that_cannot_be_traced_is_refused_not_lost() -> None:
    @jax.custom_vjp
    def strange(x: Any) -> Any:
        return x * 2

    def bwd(_residuals: Any, _g: Any) -> Any:
        raise RuntimeError("needs the device")

    strange.defvjp(lambda x: (strange(x), None), bwd)
    with pytest.raises(ProgramError, match=r"not expressible: custom_vjp_call.*needs the device") as error:
        capture(strange, X)
    assert "placement" in error.value.hint
    assert capture(strange, X, rules="inline").block.eqns


def test_linear_solvers_have_rules_too() -> None:
    a = jnp.eye(3) * 2
    with pytest.raises(ProgramError, match="derivative rules of its own"):
        capture(lambda a: jnp.linalg.solve(a, a[:, 0]), a)
    round_trip(lambda a: jnp.linalg.solve(a, a[:, 0]), a, rules="inline")
