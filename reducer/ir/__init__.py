"""What a program is: a small, immutable, typed mirror of jaxpr. Imports nothing of JAX.

Values are in `equations`, `policies` and `types`; `build` makes them; `check`, `codec`, `text`, `order`, `normal`,
`canonical` and `skeleton` each do the one thing they are named for, and are imported by their own name.
"""

from reducer.ir.build import Builder, lit
from reducer.ir.codec import decode, encode, identity
from reducer.ir.equations import Block, Equation, Grad, Program, Var
from reducer.ir.normal import normalise
from reducer.ir.order import order_key, size
from reducer.ir.text import to_text
from reducer.ir.types import Type

__all__ = [
    "Block",
    "Builder",
    "Equation",
    "Grad",
    "Program",
    "Type",
    "Var",
    "decode",
    "encode",
    "identity",
    "lit",
    "normalise",
    "order_key",
    "size",
    "to_text",
]
