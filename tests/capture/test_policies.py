"""Checkpoint policies, which are callables, as data; a user's own callable as recorded decisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from reducer.errors import ProgramError
from reducer.ir.equations import Checkpoint, Grad, Name, Program, Scan, Transfer
from reducer.ir.policies import Both, OffloadDots, OffloadNames, Plain, Policy, SaveAllBut, SaveNames, SaveNamesBut
from reducer.ir.walk import equations
from reducer.lowering.capture import capture, differentiate
from reducer.lowering.load import load
from tests.capture.roundtrip import leaves, round_trip, same_numbers

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402
from jax.ad_checkpoint import checkpoint_name  # noqa: E402

KNOWN = jax.checkpoint_policies


def offload(**names: Any) -> Any:
    return KNOWN.save_and_offload_only_these_names(
        names_which_can_be_saved=names.get("saved", []),
        names_which_can_be_offloaded=names.get("offloaded", []),
        offload_src="device",
        offload_dst=names.get("dst", "pinned_host"),
    )


POLICIES: dict[str, tuple[Any, Policy | None]] = {
    "none": (None, None),
    "everything": (KNOWN.everything_saveable, Plain("everything_saveable")),
    "nothing": (KNOWN.nothing_saveable, Plain("nothing_saveable")),
    "dots": (KNOWN.dots_saveable, Plain("dots_saveable")),
    "checkpoint-dots": (KNOWN.checkpoint_dots, Plain("dots_saveable")),
    "plain-dots": (KNOWN.dots_with_no_batch_dims_saveable, Plain("dots_with_no_batch_dims_saveable")),
    "names": (KNOWN.save_only_these_names("b", "a"), SaveNames(("a", "b"))),
    "other-names": (KNOWN.save_any_names_but_these("a"), SaveNamesBut(("a",))),
    "offload": (offload(offloaded=["h"], saved=["k"]), OffloadNames(("h",), ("k",))),
    "unpinned": (offload(offloaded=["h"], dst="unpinned_host"), OffloadNames(("h",), dst="unpinned_host")),
    "offload-dots": (KNOWN.offload_dot_with_no_batch_dims("device", "pinned_host"), OffloadDots()),
    "both": (
        KNOWN.save_from_both_policies(KNOWN.dots_saveable, KNOWN.save_only_these_names("a")),
        Both(Plain("dots_saveable"), SaveNames(("a",))),
    ),
    "both-nested": (
        KNOWN.save_from_both_policies(
            KNOWN.save_any_names_but_these("c"),
            KNOWN.save_from_both_policies(KNOWN.dots_saveable, KNOWN.save_only_these_names("a")),
        ),
        Both(SaveNamesBut(("c",)), Both(Plain("dots_saveable"), SaveNames(("a",)))),
    ),
}


def layer(x: Any, w: Any) -> Any:
    h = checkpoint_name(x @ w, "h")
    return jnp.sin(checkpoint_name(jnp.tanh(h), "k")) @ w


def stack(policy: Any, body: Callable[..., Any] = layer) -> Callable[..., Any]:
    step = jax.checkpoint(body, policy=policy, prevent_cse=False)
    return lambda w, x: lax.scan(lambda c, w: (step(c, w), None), x, w)[0]


def inputs() -> tuple[Any, Any]:
    return jnp.linspace(-1, 1, 3 * 4 * 4).reshape(3, 4, 4), jnp.linspace(-1, 1, 8).reshape(2, 4)


def policy_of(program: Program) -> Policy | None:
    (found,) = [e for _, _, e in equations(program) if isinstance(e, Checkpoint)]
    return found.policy


@pytest.mark.parametrize("name", POLICIES)
def test_policies_of_jax_are_recovered(name: str) -> None:
    given, expected = POLICIES[name]
    assert policy_of(round_trip(stack(given), *inputs())) == expected


def test_a_policy_that_ignores_its_names_is_what_it_does() -> None:
    found = policy_of(capture(stack(KNOWN.save_anything_except_these_names("h")), *inputs()))
    assert found in (Plain("everything_saveable"), SaveAllBut(("h",)))


def my_dots(primitive: Any, *_: Any, **__: Any) -> bool:
    return primitive.name == "dot_general"


def saved_types(program: Program) -> list[str]:
    """Types of the stacked residuals: what a forward scan gives besides its carry."""
    scans = [e for e in program.block.eqns if isinstance(e, Scan) and not e.reverse]
    return sorted(str(v.type) for v in scans[0].outs[1:])


def test_a_users_callable_becomes_names() -> None:
    program = round_trip(stack(my_dots), *inputs())
    assert policy_of(program) == SaveNames(("saved_1",))
    assert [e.name for _, _, e in equations(program) if isinstance(e, Name)].count("saved_1") == 2
    derived = differentiate(replace(program, gradient=Grad(argnums=(0,))))
    same = differentiate(replace(capture(stack(KNOWN.dots_saveable), *inputs()), gradient=Grad(argnums=(0,))))
    assert saved_types(derived) == saved_types(same)
    want = jax.value_and_grad(lambda w, x: stack(my_dots)(w, x).sum())(*inputs())
    same_numbers(leaves(want), leaves(load(derived).fn(*inputs())), 1e-6)


def test_a_users_callable_may_offload() -> None:
    reference = offload(offloaded=["h"])

    def mine(primitive: Any, *args: Any, **params: Any) -> Any:
        return reference(primitive, *args, **params)

    program = capture(stack(mine), *inputs())
    assert policy_of(program) == OffloadNames(("offloaded_1",))
    derived = differentiate(replace(program, gradient=Grad(argnums=(0,))))
    assert [e.memory for _, _, e in equations(derived) if isinstance(e, Transfer)] == ["host", "device"]


def test_two_recorded_policies_do_not_share_names() -> None:
    inner = jax.checkpoint(lambda x, w: jnp.sin(x @ w), policy=my_dots)

    def outer(x: Any, w: Any) -> Any:
        return jnp.tanh(inner(x @ w, w) @ w)

    program = round_trip(stack(my_dots, outer), *inputs())
    found = {e.policy for _, _, e in equations(program) if isinstance(e, Checkpoint)}
    assert found == {SaveNames(("saved_1",)), SaveNames(("saved_2",))}
    names = [e.name for _, _, e in equations(program) if isinstance(e, Name)]
    assert (names.count("saved_1"), names.count("saved_2")) == (2, 1)


def test_a_callable_that_changes_its_mind_is_refused() -> None:
    answers = iter([True, False] * 100)
    with pytest.raises(ProgramError, match="answers differently"):
        capture(stack(lambda *_, **__: next(answers)), *inputs())


def test_a_callable_that_answers_nonsense_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"not expressible: dot_general.*policy answers 'perhaps'"):
        capture(stack(lambda *_, **__: "perhaps"), *inputs())
