"""Functions with derivative rules of their own: the primal function under a decorator, and its rules behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reducer.ir.equations import CustomJvp, CustomVjp
from reducer.lowering.functions import define, function_of, nested, packed, params_of, separate, texts_of, use
from reducer.lowering.texts import pack, targets

if TYPE_CHECKING:
    from reducer.lowering.blocks import Writer


def custom_vjp(w: Writer, eqn: CustomVjp) -> None:
    """Write a function with a backward rule, and its use."""
    hints = [w.copy_hint(arg) for arg in eqn.args]
    name = _decorated(w, eqn, "@jax.custom_vjp")

    fwd = nested(w, eqn, eqn.fwd, "fwd", {})
    params = params_of(fwd, eqn.fwd.params, hints)
    results = texts_of(fwd.write())
    k = len(results) - eqn.n_residuals
    forward = w.scope.new(f"{name}_fwd")
    define(w, forward, params, fwd, f"{pack(results[:k])}, {pack(results[k:])}")

    bwd = nested(w, eqn, eqn.bwd, "bwd", {})
    bwd.ambient = {}  # traced while differentiating, where no metadata is in force
    residuals = packed(bwd, eqn.bwd.params[: eqn.n_residuals], "residuals", [])
    given = iter(params_of(bwd, eqn.bwd.params[eqn.n_residuals :], ["g"]))
    cotangents = [next(given, "_") if var.type.inexact else "_" for var in eqn.outs]
    whole = cotangents[0] if len(cotangents) == 1 else bwd.scope.new("cotangents")
    bwd.lines += [f"{targets(cotangents)} = {whole}"] if len(cotangents) > 1 else []
    grads = iter(texts_of(bwd.write()))
    # Only inexact arguments have cotangents; None stands for the others.
    shown = [next(grads, "None") if w.type(arg).inexact else "None" for arg in eqn.args]
    backward = w.scope.new(f"{name}_bwd")
    signature = [residuals, whole if (residuals, whole) != ("_", "_") else "__"]
    define(w, backward, signature, bwd, f"({', '.join(shown)},)" if shown else "()")

    w.lines.append(f"{name}.defvjp({forward}, {backward})")
    use(w, eqn, name, eqn.args)


def custom_jvp(w: Writer, eqn: CustomJvp) -> None:
    """Write a function with a rule for tangents, and its use."""
    name = _decorated(w, eqn, "@jax.custom_jvp")
    jvp = nested(w, eqn, eqn.jvp, "jvp", {})
    n = len(eqn.args)
    primals, tangents = jvp.scope.new("primals"), jvp.scope.new("tangents")
    own = params_of(jvp, eqn.jvp.params[:n], [w.copy_hint(arg) for arg in eqn.args])
    inexact = [text for text, arg in zip(own, eqn.args, strict=True) if w.type(arg).inexact]
    given = iter(params_of(jvp, eqn.jvp.params[n:], [f"d{text}" for text in inexact]))
    dotted = [next(given, "_") if w.type(arg).inexact else "_" for arg in eqn.args]
    jvp.lines += [f"({', '.join(own)},) = {primals}", f"({', '.join(dotted)},) = {tangents}"] if n else []
    results = texts_of(jvp.write())
    k = len(eqn.outs)
    tangents_out = iter(results[k:])
    # Results without a tangent of their own dtype have one of float0.
    shown = [
        next(tangents_out, "None") if var.type.inexact else f"np.zeros({var.type.shape!r}, jax.dtypes.float0)"
        for var in eqn.outs
    ]
    rule = w.scope.new(f"{name}_jvp")
    separate(w)
    w.lines.append(f"@{name}.defjvp")
    define(w, rule, [primals, tangents], jvp, f"{pack(results[:k])}, {pack(shown)}")
    use(w, eqn, name, eqn.args)


def _decorated(w: Writer, eqn: CustomVjp | CustomJvp, decorator: str) -> str:
    """Define the primal function under a decorator."""
    w.flush()
    separate(w)
    w.lines.append(decorator)
    return function_of(w, eqn, eqn.primal, "primal", "f", eqn.args)
