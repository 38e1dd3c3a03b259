"""Programs, an oracle and a workshop for hunts that take milliseconds."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future

import msgspec

from reducer.hunt import Exhausted, Find, Hunt, Summary
from reducer.hunt.besides import Besides
from reducer.ir.codec import identity
from reducer.ir.equations import Block, Checkpoint, Grad, Op, Program, Transfer, Var
from reducer.ir.order import size
from reducer.ir.policies import OffloadNames
from reducer.ir.types import Type
from reducer.ledger import Owed, Stack, ledger_of
from reducer.oracle.outcome import Answer, Compiled, Memory, Rejected, Result
from reducer.oracle.verdict import KINDS, Kind

COMPILED = Compiled(Memory())
A_LONG_TIME = 1e6


def program(length: int, *, gradient: bool = True, placed: bool = False, strategy: str = "") -> Program:
    """`length` tanh, `placed` if the last value is then moved to the host."""
    t = Type("float32", (8, 128))
    eqns: list[Op | Transfer] = [Op(outs=(Var(i + 1, t),), primitive="tanh", args=(i,)) for i in range(length)]
    results: tuple[int, ...] = (length,)
    if placed:
        eqns.append(Transfer(outs=(Var(length + 1, t.in_memory("host")),), arg=length, memory="host"))
        results = (length, length + 1) if gradient else (length + 1,)
    return Program(
        Block((Var(0, t),), tuple(eqns), results),
        gradient=Grad((0,), with_value=False) if gradient else None,
        meta=(("strategy", strategy),) if strategy else (),
    )


def placement(length: int) -> Program:
    return program(length, gradient=False, placed=True)


def mixed(length: int) -> Program:
    """As `program`, with a policy that offloads in place of the first tanh, and a value moved to the host."""
    made = program(length, placed=True)
    t = made.block.params[0]
    kept = Checkpoint(outs=(Var(1, t.type),), args=(0,), body=Block((t,), (), (0,)), policy=OffloadNames(("h",)))
    return msgspec.structs.replace(made, block=msgspec.structs.replace(made.block, eqns=(kept, *made.block.eqns[1:])))


def bug(name: str) -> Rejected:
    """A failure; each name is a signature of its own."""
    return Rejected(f"INTERNAL: during context [post-optimization]: the {name} invariant is violated")


def lost(length: int = 6) -> Result:
    """A program that compiles, and whose offload of a stack of so many tiles is lost."""
    owed = Owed((Stack("float32", (length, 8, 128), (length,), "h", "eqns[0].body"),))
    return Result(COMPILED, ledger=ledger_of(owed, {f"f32[{length},8,128]": (0,)}))


class Listed:
    """A list as a source of programs. An exception in it is raised in its turn."""

    def __init__(self, items: Iterable[Program | BaseException | None]) -> None:
        self.items = list(items)
        self.closed = 0

    def poll(self) -> Program | None:
        if not self.items:
            raise Exhausted
        item = self.items.pop(0)
        if isinstance(item, BaseException):
            raise item
        return item

    def close(self) -> None:
        self.closed += 1


class Endless:
    """The same program for ever; `then` is called at each poll."""

    def __init__(self, item: Program, then: Callable[[], None]) -> None:
        self.item, self.then = item, then

    def poll(self) -> Program:
        self.then()
        return self.item

    def close(self) -> None:
        return None


class FakeOracle:
    """Answers at once; modules are the programs themselves unless `module` says otherwise."""

    def __init__(
        self,
        answer: Callable[[Program], Answer | Result],
        *,
        module: Callable[[Program], str] = identity,
        workers: int = 1,
    ) -> None:
        self.answer, self.module, self.workers = answer, module, workers
        self.asked: list[Program] = []

    def submit(self, candidate: Program, *, fresh: bool = False) -> Future[Result]:
        assert not fresh
        self.asked.append(candidate)
        future: Future[Result] = Future()
        try:
            answer = self.answer(candidate)
            result = answer if isinstance(answer, Result) else Result(answer)
            future.set_result(msgspec.structs.replace(result, module_key=self.module(candidate)))
        except Exception as error:
            future.set_exception(error)
        return future


class FakeWorkshop:
    """Keeps what it is told in lists. `shrink` gives the programs a reduction goes through."""

    def __init__(
        self,
        *,
        known: Iterable[str] = (),
        flaky: Iterable[str] = (),
        recalled: Program | None = None,
        shrink: Callable[[Program], Iterable[Program]] = lambda _: (),
        others: Iterable[tuple[Program, Answer]] = (),
    ) -> None:
        self._known, self._flaky, self._recalled = set(known), set(flaky), recalled
        self._shrink, self._others = shrink, list(others)
        self.confirmed: list[Program] = []
        self.kept: list[tuple[str, Program, bool]] = []
        self.reduced: list[Program] = []
        self.shelved: list[Find] = []
        self.comes_and_goes: list[str] = []
        self.counts: Counter[str] = Counter()
        self.on_confirm: Callable[[Find], None] = lambda _: None
        self.on_keep: Callable[[Find], None] = lambda _: None
        self.on_reduce: Callable[[Find], None] = lambda _: None

    def known(self, signature: str) -> bool:
        return any(name in signature for name in self._known)

    def recall(self, find: Find) -> bool:
        if self._recalled is None:
            return False
        find.program, find.size, find.case = self._recalled, size(self._recalled), "corpus/recalled"
        return True

    def confirm(self, find: Find) -> bool:
        self.on_confirm(find)
        self.confirmed.append(find.program)
        return not any(name in find.signature for name in self._flaky)

    def keep_flaky(self, find: Find) -> None:
        self.comes_and_goes.append(find.signature)

    def keep(self, find: Find) -> None:
        self.on_keep(find)
        self.kept.append((find.tier, find.program, find.reduced_seconds is not None))
        find.case = f"corpus/{find.slug}-{find.tier}"
        self.counts[find.case] += find.finds - find.counted
        find.counted = find.finds

    def reduce(self, find: Find, step: Callable[[Find], None]) -> list[tuple[Program, Result]]:
        self.reduced.append(find.program)
        self.on_reduce(find)
        step(find)
        for smaller in self._shrink(find.program):
            find.program, find.size = smaller, size(smaller)
            find.compiles += 1
            step(find)
        return [(other, Result(answer)) for other, answer in self._others]

    def shelve(self, find: Find) -> None:
        self.shelved.append(find)
        self.keep(find)

    def settle(self, find: Find) -> None:
        self.counts[find.case] += find.finds - find.counted
        find.counted = find.finds


class Ran(msgspec.Struct):
    """A finished hunt with everything it was made of."""

    summary: Summary
    hunt: Hunt
    oracle: FakeOracle
    workshop: FakeWorkshop
    lines: list[str]


def run(
    items: Iterable[Program | BaseException | None],
    answer: Callable[[Program], Answer | Result] = lambda _: COMPILED,
    workshop: FakeWorkshop | None = None,
    *,
    module: Callable[[Program], str] = identity,
    backlog: Iterable[Find] = (),
    grace: float = A_LONG_TIME,
    kinds: Iterable[Kind] = KINDS,
    besides: Besides | None = None,
) -> Ran:
    """Hunt through a list to its end."""
    oracle, lines = FakeOracle(answer, module=module), []
    workshop = workshop or FakeWorkshop()
    hunt = Hunt(
        Listed(items),
        oracle,
        workshop,
        seconds=A_LONG_TIME,
        grace=grace,
        seed=3,
        corpus="corpus",
        notify=lines.append,
        backlog=list(backlog),
        kinds=list(kinds),
        besides=besides,
    )
    return Ran(hunt.run(), hunt, oracle, workshop, lines)


def wait_for(event: threading.Event) -> None:
    assert event.wait(60), "what the test waits for never happened"
