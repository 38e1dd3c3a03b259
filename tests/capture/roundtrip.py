"""What every captured function must satisfy: JSON and text give it back, and it computes the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from reducer.ir.codec import decode, encode
from reducer.ir.equations import Checkpoint, Program
from reducer.ir.text import to_text
from reducer.ir.walk import equations
from reducer.lowering.capture import captured
from reducer.lowering.load import load

_OPERATION = re.compile(r"= \"?((?:stablehlo|chlo|sdy|func|mhlo)\.\w+)|^\s*\"?((?:stablehlo|func)\.\w+)", re.MULTILINE)


def operations(text: str) -> Counter[str]:
    """How often each operation occurs in a module. Functions and calls are left out: capture inlines them."""
    found = Counter(a or b for a, b in _OPERATION.findall(text))
    return Counter(
        {name: n for name, n in found.items() if not name.startswith("func.") and name != "stablehlo.return"}
    )


def lowered(fn: Callable[..., Any], args: tuple[Any, ...]) -> Counter[str]:
    """Operations of a function's module, helper functions inlined."""
    import jax
    from jax.extend.mlir import passmanager

    module = jax.jit(fn).lower(*args).compiler_ir("stablehlo")
    with module.context:
        passmanager.PassManager.parse("builtin.module(inline,symbol-dce,canonicalize,cse)").run(module.operation)
    return operations(str(module))


def barriers_only(program: Program) -> bool:
    """True if the text spells something differently: a checkpoint after differentiation becomes a plain barrier."""
    return any(isinstance(e, Checkpoint) and e.differentiated for _, _, e in equations(program))


def leaves(value: Any) -> list[Any]:
    """Results as NumPy arrays; keys as their data."""
    import jax

    out = []
    for leaf in jax.tree.leaves(value):
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        out.append(np.asarray(leaf))
    return out


def round_trip(
    fn: Callable[..., Any],
    *args: Any,
    rules: Any = "keep",
    run: bool = True,
    tolerance: float | None = None,
    module: bool = True,
) -> Program:
    """Capture a function; check JSON, text, types, the lowered module and numbers; the program.

    Args:
        fn: the function.
        args: concrete arrays.
        rules: as for `capture`.
        run: compare numbers; bit for bit unless `tolerance` (relative and absolute) is given.
        tolerance: of the numbers.
        module: compare the operations of the lowered modules, after the same clean-up of both.
    """
    import jax

    found = captured(fn, *args, rules=rules)
    program = found.program
    assert decode(encode(program)) == program
    again = load(program).fn
    twice = captured(again, *found.values, rules=rules).program
    assert to_text(twice) == to_text(program) or barriers_only(program)
    if run:
        want, got = leaves(jax.jit(fn)(*args)), leaves(jax.jit(again)(*found.values))
        assert len(want) == len(got)
        for w, g in zip(want, got, strict=True):
            assert (w.dtype, w.shape) == (g.dtype, g.shape)
            if tolerance is None:
                np.testing.assert_array_equal(w, g)
            else:
                np.testing.assert_allclose(w.astype(np.float64), g.astype(np.float64), rtol=tolerance, atol=tolerance)
    if module:
        assert lowered(fn, args) == lowered(again, found.values)
    return program
