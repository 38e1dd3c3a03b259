"""What every captured function must satisfy: JSON and text give it back, and it computes the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from msgspec.structs import replace

from reducer.ir.codec import decode, encode
from reducer.ir.equations import Checkpoint, Program
from reducer.ir.text import to_text
from reducer.ir.walk import equations
from reducer.lowering.capture import captured
from reducer.lowering.load import load

_OPERATION = re.compile(r"= \"?((?:stablehlo|chlo|sdy|func|mhlo)\.\w+)|^\s*\"?((?:stablehlo|func)\.\w+)", re.MULTILINE)
#: Weak types make JAX write conversions of a type to itself.
_NO_CONVERSION = re.compile(r"= stablehlo\.convert %\w+ : tensor<[^>]*>$", re.MULTILINE)


def operations(text: str) -> Counter[str]:
    """How often each operation occurs in a module. Functions and calls are left out: capture inlines them."""
    text = _NO_CONVERSION.sub("", text)
    found = Counter(a or b for a, b in _OPERATION.findall(text))
    # Scalars are shared within a function only, so their number depends on how a function was cut up.
    dropped = ("stablehlo.return", "stablehlo.constant")
    return Counter({name: n for name, n in found.items() if not name.startswith("func.") and name not in dropped})


@contextmanager
def calls_inlined() -> Iterator[None]:
    """While tracing, nested jits dissolve into their caller, as in a program: only then do modules compare."""
    import jax
    from jax._src import api, pjit
    from jax._src.interpreters import partial_eval

    rules, key = partial_eval.custom_staging_rules, pjit.jit_p
    rule, early = rules[key], getattr(getattr(api, "Inline", None), "JAX_EARLY", True)
    rules[key] = lambda trace, source, *args, **params: rule(trace, source, *args, **{**params, "inline": early})
    jax.clear_caches()
    try:
        yield
    finally:
        rules[key] = rule
        jax.clear_caches()


def lowered(fn: Callable[..., Any], args: tuple[Any, ...]) -> Counter[str]:
    """Operations of a function's module after removing unused, repeated and constant-folded ones."""
    import jax
    from jax.extend.mlir import passmanager

    module = jax.jit(lambda *values: fn(*values)).lower(*args).compiler_ir("stablehlo")
    with module.context:
        passmanager.PassManager.parse("builtin.module(canonicalize,cse,symbol-dce)").run(module.operation)
    return operations(str(module))


def leaves(value: Any) -> list[Any]:
    """Results as NumPy arrays; keys as their data."""
    import jax

    out = []
    for leaf in jax.tree.leaves(value):
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        out.append(np.asarray(leaf))
    return out


def barriers_only(program: Program) -> bool:
    """True if the text spells something differently: a checkpoint after differentiation becomes a plain barrier."""
    return any(isinstance(e, Checkpoint) and e.differentiated for _, _, e in equations(program))


def same_numbers(want: list[Any], got: list[Any], tolerance: float | None = None) -> None:
    """Results agree bit for bit, or within a relative and absolute tolerance."""
    assert [(w.dtype, w.shape) for w in want] == [(g.dtype, g.shape) for g in got]
    for w, g in zip(want, got, strict=True):
        if tolerance is None:
            np.testing.assert_array_equal(w, g)
        else:
            np.testing.assert_allclose(w.astype(np.float64), g.astype(np.float64), rtol=tolerance, atol=tolerance)


def round_trip(
    fn: Callable[..., Any],
    *args: Any,
    rules: Any = "keep",
    run: bool = True,
    tolerance: float | None = None,
    module: bool = True,
    stable: bool = True,
) -> Program:
    """Capture a function; check JSON, text, types, the lowered module and numbers; the program.

    Args:
        fn: the function.
        args: concrete arrays.
        rules: as for `capture`.
        run: compare numbers; bit for bit unless `tolerance` (relative and absolute) is given.
        tolerance: of the numbers.
        module: compare the operations of the lowered modules, after the same clean-up of both.
        stable: the text is captured as the same program.
    """
    import jax

    found = captured(fn, *args, rules=rules)
    program = found.program
    assert decode(encode(program)) == program
    again = load(program).fn
    twice = captured(again, *found.values, rules=rules).program
    if stable and not barriers_only(program):
        # How inputs enter is said by the text's `lower`, not by its function.
        bare = replace(program, inputs=(), result_specs=())
        assert to_text(twice).splitlines() == to_text(bare).splitlines(), "the text is captured differently"
    if run:
        same_numbers(leaves(jax.jit(fn)(*args)), leaves(jax.jit(again)(*found.values)), tolerance)
    if module:
        with calls_inlined():
            was, now = lowered(fn, args), lowered(again, found.values)
        assert was == now, f"lost {was - now}, gained {now - was}"
    return program
