"""How each first-order primitive is written: one table, primitive -> function from a `Use` to text.

The public function chosen binds that primitive and nothing else, on every JAX version we support: `lax.select_n`
and not `jnp.where` (which wraps itself in a jit), `lax.dynamic_slice(allow_negative_indices=False)` (which adds no
wrap-around arithmetic). Where the infix operator does so too, the operator is written.
"""

from __future__ import annotations

from typing import Final

from reducer.errors import ProgramError
from reducer.lowering import arrays, elementwise, rare
from reducer.lowering.texts import Expr
from reducer.lowering.writers import Use, Writer

#: Covers at least the primitives of `reducer.ir.rules`.
TABLE: Final[dict[str, Writer]] = {**elementwise.WRITERS, **arrays.WRITERS, **rare.WRITERS}


def expression(use: Use) -> Expr:
    """Text of an equation's value (a tuple or list of values if it has several results).

    Raises:
        ProgramError: unknown primitive, wrong number of arguments, or a missing or malformed attribute.
    """
    writer = TABLE.get(use.primitive)
    if writer is None:
        raise ProgramError(
            f"unknown primitive {use.primitive!r}", hint="reducer/lowering/table.py lists the known ones"
        )
    try:
        return writer(use)
    except (AttributeError, IndexError, StopIteration, TypeError, ValueError) as error:
        # Attributes are data from a file: a wrong shape of one must not look like a bug of ours.
        raise ProgramError(f"malformed {use.primitive}: {error}") from error
