"""The documented neighbourhood of a program: every single step after which it could be smaller.

A program is *1-minimal* if no smaller neighbour fails in the same way. This module enumerates the neighbours, on its
own: it knows no pass and no driver, so that it can check what they say. The kinds of steps:

=================  ===================================================================================================
delete             one equation; its results become an argument of it of their type, else an earlier value, else zeros
replace            one value by every earlier value of its type in its block, or by zeros; a parameter by every other
unwrap             one region by what is in it; a cond by each of its branches
carry              one carry of a loop by a constant
x-to-constant      one x by a constant, where it is an input nothing else uses
hoist              an equation of one value moved out of its region, behind it or before it
result             one dropped, or replaced by another value of whatever type
input              one dropped
alone              one value in host memory as the only result, computed from the parameters of its block and no more
argument           one floating scalar that a region is given by every earlier value of its type
gradient           none, or with respect to one input fewer, or without the value
branch             one branch of a cond dropped
length             of one scan, wherever it flows: 1, half, one less
dimension          one, wherever it flows: 1, half, one less, the next lower multiples of 8 and 128
axis               one of size 1 dropped, wherever it flows
dtype              everything of one floating dtype made float32, of one integer dtype int32
policy             none; one of the plain ones; one half of a combined one; saved instead of offloaded
policy-name        one name dropped from one policy
name               two names merged
flag               one back to its default: reverse, unroll, prevent_cse, differentiated, check_vma
metadata           one entry dropped
attribute          one optional attribute of an operation dropped
operation          any equation with one result replaced by `sin` of one of its arguments
scalar             one made 0 or 1
mesh, entry        no mesh, one axis or half of its devices fewer; one sharding or donation dropped
=================  ===================================================================================================

Some steps lead to no program (a shard_map whose body has other shapes cannot be unwrapped), some to one that is not
smaller (a flag whose default costs something else), some to one nobody could run, as a loop without its counter
(`reducer.ir.sense`); such are no neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from reducer.errors import ProgramError
from reducer.ir.canonical import canonical
from reducer.ir.check import check
from reducer.ir.codec import identity
from reducer.ir.equations import Program
from reducer.ir.order import order_key
from reducer.ir.sense import nonsense
from reducer.neighbourhood.steps import Step, steps

#: Names this neighbourhood in certificates. Its number rises with every step that comes or goes.
NAME: Final = "program-2"

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Neighbour(Generic[C]):
    """A program (or module) one step away: smaller, well-formed, in normal form.

    `kind` is a word of the table above, or of the neighbourhood of modules.
    """

    kind: str
    description: str
    program: C


def neighbours(program: Program, form: Callable[[Program], Program] = canonical) -> Iterator[Neighbour[Program]]:
    """Every smaller neighbour of a program in normal form, each once, in a fixed order.

    Args:
        program: in the normal form `form`.
        form: brings neighbours to the form in which programs are compared and compiled.
    """
    mine = order_key(program)
    sensible = nonsense(program) is None
    seen: set[str] = set()
    for kind, description, build in steps(program):
        try:
            candidate = form(build())
            key = identity(candidate)
            if key in seen or not order_key(candidate) < mine:
                continue
            check(candidate)
        except ProgramError:
            continue
        if sensible and nonsense(candidate) is not None:
            continue
        seen.add(key)
        yield Neighbour(kind, description, candidate)


__all__ = ["NAME", "Neighbour", "Step", "neighbours", "steps"]
