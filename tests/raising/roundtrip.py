"""What every raised module must satisfy: lowered again it raises as the same program, and computes the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reducer.ir.equations import Program
from reducer.lowering.load import load
from reducer.raising import raise_module
from reducer.stablehlo.parse import read
from tests.capture.roundtrip import leaves, same_numbers


def raised(lowered: Any) -> Program:
    """The program of a `jax.stages.Lowered`; parsed in this process, which has JAX already."""
    return raise_module(read(str(lowered.compiler_ir("stablehlo")).encode()))


def lowered_for(platform: str, program: Program) -> Any:
    """A program lowered for a platform on the CPU's devices."""
    import jax

    return load(program).names["trace"](jax.devices()).lower(lowering_platforms=(platform,))


def round_trip(fn: Callable[..., Any], *args: Any, tolerance: float | None = None, platform: str = "tpu") -> Program:
    """Lower a function for a platform and raise it; check that this is a fixpoint, and numbers on the CPU.

    Args:
        fn: a function of arrays, all of which it uses.
        args: arrays.
        tolerance: of the numbers, relative and absolute; None: bit for bit.
        platform: what the module is lowered for. The lowering of some operations depends on it.
    """
    import jax

    program = raised(jax.jit(fn).trace(*args).lower(lowering_platforms=(platform,)))
    assert raised(lowered_for(platform, program)) == program
    computed = load(program).lower(jax.devices()).compile()(*leaves(args))
    same_numbers(leaves(jax.jit(fn)(*args)), leaves(computed), tolerance)
    return program
