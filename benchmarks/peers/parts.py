"""A program as a tree of parts that can be taken away: what every other reducer is given to work on.

A part is an equation, the gradient or an input it is taken for, a result, a flag, an entry of metadata, a policy or a
name of one, and (without: it becomes 1, wherever it flows) a length or a dimension. Any set of parts is a program: what
used a removed value is repaired as in scanshrink's own passes (an argument of its type, else an earlier value, else
zeros), a region that is removed while something in it stays is unwrapped, and what is then dead is gone. So no peer
wastes its questions on programs that do not type-check, and each can delete, prune and hoist.

With `equations_only` there are no other parts than equations: fewer questions, less small programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import compress

import msgspec

from reducer.errors import ProgramError
from reducer.ir.check import check
from reducer.ir.dims import dimensions, resized
from reducer.ir.edit import BlockEdit, delete, rewrite
from reducer.ir.equations import Block, Checkpoint, Equation, Fill, Name, Op, Program, Scan
from reducer.ir.normal import normalise
from reducer.ir.policies import map_names, names_of
from reducer.ir.sense import nonsense
from reducer.ir.unwrap import main_fields, unwrap
from reducer.ir.walk import Path, block_at, blocks, children
from reducer.passes.relevance import Relevance


@dataclass(frozen=True, slots=True)
class Part:
    """`number` is its position in the list of all parts, `parent` that of the region around it (None: the program).

    `text` is its line in a text; `children` are the parts inside.
    """

    number: int
    parent: int | None
    text: str
    is_equation: bool
    children: tuple[int, ...] = ()


class Parts:
    """The parts of one start, in the order in which they stand in its text; and programs made of some of them."""

    def __init__(self, start: Program, *, equations_only: bool = False) -> None:
        self.start = start
        self._all = not equations_only
        self.parts: list[Part] = []
        self._equations: dict[tuple[Path, int], int] = {}
        self._details: dict[tuple[Path, int], list[tuple[int, str]]] = {}
        relevance = Relevance(start)
        self._fed = {place.path: relevance.fed(place.block) for place in blocks(start)}
        grad = start.gradient
        self._gradient = self._detail(None, "gradient") if grad is not None else None
        self._argnums = [self._detail(self._gradient, f"input {k}") for k in grad.argnums] if grad is not None else []
        self._list_block((), start.block, None)
        self._results = [self._detail(None, f"result {k}") for k in range(len(start.block.results))]
        free = [d for d in dimensions(start) if d.size > 1 and not d.pinned] if self._all else []
        self._sizes = [(self._detail(None, f"size {d.size}"), d) for d in free]
        self._link()

    def __len__(self) -> int:
        return len(self.parts)

    def _add(self, parent: int | None, text: str, *, is_equation: bool = False) -> int:
        number = len(self.parts)
        self.parts.append(Part(number, parent, f"p{number} {text}", is_equation))
        return number

    def _detail(self, parent: int | None, text: str) -> int | None:
        return self._add(parent, text) if self._all else None

    def _list_block(self, path: Path, block: Block, parent: int | None) -> None:
        for i, eqn in enumerate(block.eqns):
            if isinstance(eqn, Fill):
                continue
            mine = self._equations[path, i] = self._add(parent, _word(eqn), is_equation=True)
            details = _details(eqn) if self._all else []
            self._details[path, i] = [(self._add(mine, detail), detail) for detail in details]
            for field, child in children(eqn):
                self._list_block((*path, (i, field)), child, mine)

    def _link(self) -> None:
        inside: dict[int | None, list[int]] = {}
        for part in self.parts:
            inside.setdefault(part.parent, []).append(part.number)
        self.parts = [replace(part, children=tuple(inside.get(part.number, ()))) for part in self.parts]
        self.top = tuple(inside.get(None, ()))

    def program(self, kept: Iterable[int]) -> Program:
        """The program of these parts, in normal form.

        Raises:
            ProgramError: there is none, or nobody would run it.
        """
        there = frozenset(kept)
        edits: dict[Path, BlockEdit] = {}
        for place in blocks(self.start):
            edits[place.path] = self._editor(place.path, there)
        ones = [(d, 1) for number, d in self._sizes if number not in there]
        program = rewrite(resized(self.start, ones) if ones else self.start, edits)
        program = normalise(self._with_results(self._with_gradient(program, there), there))
        check(program)
        what = nonsense(program)
        if what is not None:
            raise ProgramError(f"nobody would run this: {what}")
        return program

    def _editor(self, path: Path, there: frozenset[int]) -> BlockEdit:
        original = block_at(self.start, path)

        def edit(block: Block) -> Block:
            doomed: set[int] = set()
            opened: dict[int, str] = {}
            eqns = list(block.eqns)
            for i, eqn in enumerate(block.eqns):
                number = self._equations.get((path, i))
                if number is None:
                    continue
                if number in there:
                    eqns[i] = self._plainer(path, i, eqn, there)
                elif (field := self._field_with_something(path, i, original.eqns[i], there)) is not None:
                    opened[eqn.outs[0].id] = field
                else:
                    doomed.add(i)
            block = delete(Block(block.params, tuple(eqns), block.results), doomed, self._fed[path])
            places = {eqn.outs[0].id: i for i, eqn in enumerate(block.eqns) if eqn.outs}
            return unwrap(block, {places[out]: field for out, field in opened.items()}) if opened else block

        return edit

    def _plainer(self, path: Path, i: int, eqn: Equation, there: frozenset[int]) -> Equation:
        """The equation with those of its details that are kept."""
        for number, detail in self._details[path, i]:
            if number not in there:
                eqn = _without(eqn, detail)
        return eqn

    def _with_gradient(self, program: Program, there: frozenset[int]) -> Program:
        grad = program.gradient
        if grad is None or self._gradient is None:
            return program
        kept = tuple(k for k, number in zip(grad.argnums, self._argnums, strict=True) if number in there)
        left = msgspec.structs.replace(grad, argnums=kept) if kept and self._gradient in there else None
        return msgspec.structs.replace(program, gradient=left)

    def _with_results(self, program: Program, there: frozenset[int]) -> Program:
        if not self._all:
            return program
        block, specs = program.block, program.result_specs
        kept = [number in there for number in self._results]
        return msgspec.structs.replace(
            program,
            block=Block(block.params, block.eqns, tuple(compress(block.results, kept))),
            result_specs=tuple(compress(specs, kept)),
        )

    def _field_with_something(self, path: Path, i: int, eqn: Equation, there: frozenset[int]) -> str | None:
        """The block to be put in the place of a removed region: the first of which an equation stays."""
        inner = dict(children(eqn))
        for field in main_fields(eqn) if eqn.outs else ():
            if any(n in there for n in self._inside((*path, (i, field)), inner[field])):
                return field
        return None

    def _inside(self, path: Path, block: Block) -> Iterator[int]:
        for i, eqn in enumerate(block.eqns):
            if (path, i) in self._equations:
                yield self._equations[path, i]
            for field, child in children(eqn):
                yield from self._inside((*path, (i, field)), child)


def _word(eqn: Equation) -> str:
    match eqn:
        case Op(primitive=primitive):
            return primitive
        case Name(name=name):
            return f"name {name}"
        case _:
            return type(eqn).__name__.lower()


def _details(eqn: Equation) -> list[str]:
    found = [f"metadata {key}" for key, _ in eqn.metadata]
    match eqn:
        case Scan(reverse=reverse, unroll=unroll):
            found += ["reverse"] * reverse + ["unroll"] * (unroll != 1)
        case Checkpoint(policy=policy, prevent_cse=prevent_cse):
            found += ["no-prevent-cse"] * (not prevent_cse)
            if policy is not None:
                found += ["policy", *(f"policy {name}" for name in names_of(policy))]
        case _:
            pass
    return found


def _without(eqn: Equation, detail: str) -> Equation:
    with_ = msgspec.structs.replace
    kind, _, name = detail.partition(" ")
    match kind, eqn:
        case "metadata", _:
            return with_(eqn, metadata=tuple(entry for entry in eqn.metadata if entry[0] != name))
        case "reverse", Scan():
            return with_(eqn, reverse=False)
        case "unroll", Scan():
            return with_(eqn, unroll=1)
        case "no-prevent-cse", Checkpoint():
            return with_(eqn, prevent_cse=True)
        case "policy", Checkpoint(policy=policy):
            fewer = map_names(policy, lambda names: tuple(n for n in names if n != name)) if policy and name else None
            return with_(eqn, policy=fewer)
        case _:
            raise AssertionError(detail)
