"""Everything of a jaxpr that differs between JAX versions, or that no public name gives.

The rest of the package reads equations through these functions only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from reducer.errors import ProgramError

#: Equations that only call their body, whatever the version calls them.
CALLS: Final = frozenset(
    ("jit", "pjit", "closed_call", "core_call", "core_closed_call", "eval_jaxpr", "xla_call", "remat_call")
)
#: Parameter that holds the body, in order of preference.
_BODIES: Final = ("jaxpr", "call_jaxpr", "fun_jaxpr")
CHECKPOINTS: Final = frozenset(("remat2", "remat", "checkpoint"))


def body_of(params: Any) -> Any:
    """The jaxpr of a higher-order equation."""
    return next(params[name] for name in _BODIES if name in params)


def open_jaxpr(jaxpr: Any) -> tuple[Any, tuple[Any, ...]]:
    """Equations and variables, and the values of the constants (one class or two, depending on the version)."""
    consts = tuple(getattr(jaxpr, "consts", ()) or ())
    return getattr(jaxpr, "jaxpr", jaxpr), consts


def parameters(jaxpr: Any, consts: Sequence[Any]) -> tuple[list[tuple[Any, Any]], list[Any]]:
    """Constants by variable, and the variables of the arguments: a rule's trace puts the former first among them."""
    apart = list(jaxpr.constvars)
    missing = len(consts) - len(apart)
    variables = [*apart, *jaxpr.invars[:missing]]
    return list(zip(variables, consts, strict=True)), list(jaxpr.invars[missing:])


def scan_counts(params: Any) -> tuple[int, int]:
    """Number of constants and of carries of a scan."""
    if "num_consts" in params:
        return int(params["num_consts"]), int(params["num_carry"])
    consts, carry, _ = params["ft_in"].unpack()
    return len(consts), len(carry)


def while_counts(params: Any) -> tuple[int, int]:
    """Number of constants of a while loop's condition and body."""
    return int(params["cond_nconsts"]), int(params["body_nconsts"])


def manual_axes(params: Any) -> frozenset[str]:
    """Mesh axes a shard_map makes manual."""
    name = "newly_manual_axes" if "newly_manual_axes" in params else "manual_axes"
    return frozenset(params[name])


def metadata_of(eqn: Any) -> dict[str, str]:
    """XLA metadata of an equation (`set_xla_metadata`)."""
    found = getattr(eqn.ctx, "xla_metadata", None)
    return {str(k): str(v) for k, v in dict(found or {}).items()}


def compute_type_of(eqn: Any) -> str | None:
    """`compute_on` around an equation, in versions where it is part of the equation's context."""
    return getattr(eqn.ctx, "compute_type", None)


def place_of(eqn: Any) -> str:
    """Where in the user's source an equation comes from: ``train.py:31 (loss)``, or an empty string."""
    from jax._src import source_info_util

    text = str(source_info_util.summarize(eqn.source_info))
    return "" if "unknown" in text.lower() else text


def on_host(aval: Any) -> bool:
    """True if a value's type says host memory."""
    return getattr(getattr(aval, "memory_space", None), "name", "") == "Host"


def is_literal(atom: Any) -> bool:
    """True for a constant that stands in an equation, False for a variable."""
    return hasattr(atom, "val")


def scalar_value(value: Any) -> Any | None:
    """A NumPy scalar or Python number, or None for what has no numbers yet or none at all (PRNG keys)."""
    import jax

    if "key<" in str(getattr(value, "dtype", "")) or isinstance(value, jax.core.Tracer):
        return None
    return np.asarray(value)


def constant_key(value: Any) -> Any:
    """Equal for constants that are one array; JAX wraps an array anew each time it is traced."""
    array = scalar_value(value)
    return id(value) if array is None else (str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).digest())


def no_tracers(consts: Sequence[Any]) -> None:
    """Refuse constants that are values of a trace, which is over by now.

    Raises:
        ProgramError: there is one.
    """
    import jax

    if any(isinstance(c, jax.core.Tracer) for c in consts):
        raise ProgramError("its derivative rule closes over a traced value", hint="make it an argument of the function")


def jvp_rule(params: Any, zeros: Sequence[bool]) -> tuple[Any, tuple[Any, ...], list[bool]]:
    """Trace a custom jvp rule: its jaxpr, the constants, and which result tangents are known to be zero.

    `zeros` says which arguments get no tangent.
    """
    jaxpr, consts, out_zeros = params["jvp_jaxpr_fun"].call_wrapped(*zeros)
    no_tracers(consts)
    return jaxpr, tuple(consts), list(out_zeros)


def struct_of(aval: Any) -> Any:
    """A value of this type to trace with."""
    return abstract(aval.shape, aval.dtype, host=on_host(aval))


def on_device(aval: Any) -> Any:
    """The type of a value after it was moved to the device."""
    import jax

    return jax.core.ShapedArray(aval.shape, aval.dtype)


def abstract(shape: tuple[int, ...], dtype: Any, *, host: bool, like: Any = None) -> Any:
    """An abstract value, for which no device is needed; on the host with the sharding `like` if that has a mesh."""
    import jax

    if not host:
        return jax.ShapeDtypeStruct(shape, dtype)
    # Only a NamedSharding tells JAX, while tracing, that a value lies in host memory.
    if isinstance(like, jax.sharding.NamedSharding):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=like)
    place = jax.sharding.NamedSharding(abstract_mesh((("device", 1),)), jax.P(), memory_kind="pinned_host")
    return jax.ShapeDtypeStruct(shape, dtype, sharding=place)


def abstract_mesh(axes: Sequence[tuple[str, int]]) -> Any:
    """A mesh without devices whose axes the compiler may use as it likes."""
    import jax

    auto = (jax.sharding.AxisType.Auto,) * len(axes)
    return jax.sharding.AbstractMesh(tuple(n for _, n in axes), tuple(name for name, _ in axes), axis_types=auto)


@dataclass(frozen=True)
class VjpRule:
    """A traced custom vjp rule. `fwd` takes the arguments; `residuals` says where each residual comes from.

    An integer is a position among the arguments, None the next of the values `fwd` returns before its results.
    `bwd` takes all residuals and the cotangents of inexact results, and gives one per inexact argument.
    """

    fwd: Any
    fwd_consts: tuple[Any, ...]
    residuals: tuple[int | None, ...]
    bwd: Any


def vjp_rule(eqn: Any) -> VjpRule:
    """Trace both halves of a custom vjp rule.

    Raises:
        Exception: whatever the user's code raises.
    """
    import jax
    import jax.numpy as jnp
    from jax.custom_derivatives import SymbolicZero
    from jax.interpreters import ad

    params, avals = eqn.params, [v.aval for v in eqn.invars]
    if params.get("symbolic_zeros"):
        raise NotImplementedError("symbolic_zeros=True")
    n = int(params["num_consts"])
    args, outs = avals[n:], [v.aval for v in eqn.outvars]
    fwd, consts = params["fwd_jaxpr_thunk"].call_wrapped(*(jnp.issubdtype(a.dtype, jnp.inexact) for a in args))
    _, tree, residuals = params["out_trees"]()
    given = iter(v.aval for v in fwd.outvars)
    types = [next(given) if i is None else avals[i] for i in residuals]
    assert len(types) == tree.num_leaves

    def inexact(aval: Any) -> bool:
        return bool(jnp.issubdtype(aval.dtype, jnp.inexact))

    def bwd(*values: Any) -> list[Any]:
        cotangents = iter(values[len(types) :])
        full = [next(cotangents) if inexact(a) else np.zeros(a.shape, jax.dtypes.float0) for a in outs]
        answer = params["bwd"].call_wrapped(*values[: len(types)], *full)
        # Newer versions return a pair: cotangents, and a log.
        found = answer[0] if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], list) else answer
        zero = (ad.Zero, SymbolicZero)
        pairs = [(ct, a) for ct, a in zip(found, args, strict=True) if inexact(a)]
        return [jnp.zeros(a.shape, a.dtype) if isinstance(ct, zero) else ct for ct, a in pairs]

    needed = [*types, *(a for a in outs if inexact(a))]
    closed = jax.make_jaxpr(bwd)(*map(struct_of, needed))
    no_tracers((*consts, *open_jaxpr(closed)[1]))
    return VjpRule(fwd, tuple(consts), tuple(residuals), closed)


def expansion(eqn: Any) -> Any:
    """Trace what a high-level primitive stands for.

    Raises:
        Exception: whatever its code raises.
    """
    import jax

    primitive = eqn.params["_prim"]

    def expand(*values: Any) -> Any:
        return primitive.expand(*jax.tree.unflatten(primitive.in_tree, values))

    return jax.make_jaxpr(expand)(*(struct_of(v.aval) for v in eqn.invars))


@contextmanager
def watching_linearize(around: Callable[..., Any]) -> Iterator[None]:
    """While active, `around(original, function, primals, *args, **options)` replaces linearization.

    Everything that differentiates in reverse (`grad`, `value_and_grad`, `vjp`, `linearize`, and libraries built on
    them) goes through this one internal function, by whatever name the user imported it.
    """
    from jax._src.interpreters import ad

    original = ad.linearize
    ad.linearize = partial(around, original)
    try:
        yield
    finally:
        ad.linearize = original
