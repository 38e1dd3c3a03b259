"""What every reduction promises, under random predicates on random programs."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import strategies
from reducer.ir.check import check
from reducer.ir.codec import identity
from reducer.ir.equations import Checkpoint, Name, Op, Program, Scan
from reducer.ir.order import order_key
from reducer.ir.policies import offloads
from reducer.ir.walk import blocks, equations
from reducer.neighbourhood import neighbours
from reducer.oracle.fake import FakeOracle
from reducer.oracle.outcome import Compiled, Memory, Rejected, Result
from reducer.shrink import Shrunk, program_tier, shrink_program

Predicate = Callable[[Program], bool]


def features(program: Program) -> Counter[str]:
    """What a predicate can look at: kinds of equations, depth, ranks, offloads, lengths."""
    found: Counter[str] = Counter()
    for path, _, eqn in equations(program):
        found[type(eqn).__name__] += 1
        found["depth"] = max(found["depth"], len(path) + 1)
        match eqn:
            case Op(primitive=primitive):
                found[primitive] += 1
            case Scan(length=length, metadata=metadata):
                found["length"] = max(found["length"], length)
                found["barrier"] += bool(metadata)
            case Checkpoint(policy=policy):
                found["offload"] += offloads(policy)
            case Name():
                found["name"] += 1
            case _:
                pass
    for place in blocks(program):
        for eqn in place.block.eqns:
            for var in eqn.outs:
                found["rank"] = max(found["rank"], var.type.rank)
    found["gradient"] = program.gradient is not None
    return found


@st.composite
def monotone(draw: st.DrawFn, program: Program) -> Predicate:
    """At least so much of some things the program has."""
    have = features(program)
    keys = draw(st.lists(st.sampled_from(sorted(k for k, n in have.items() if n)), min_size=1, max_size=4, unique=True))
    need = {k: draw(st.integers(1, have[k])) for k in keys}
    return lambda p: all(features(p)[k] >= n for k, n in need.items())


@st.composite
def erratic(draw: st.DrawFn, program: Program) -> Predicate:
    """A predicate that most programs satisfy and some of any size do not, besides a monotone one."""
    base = draw(monotone(program))
    salt = draw(st.integers(0, 1000))
    mine = identity(program)

    def holds(p: Program) -> bool:
        key = identity(p)
        return key == mine or (base(p) and zlib.crc32(f"{salt}{key}".encode()) % 4 != 0)

    return holds


def run(program: Program, predicate: Predicate, workers: int = 1) -> tuple[Shrunk[Program], FakeOracle[Program]]:
    def answer(candidate: Program) -> Rejected | Compiled:
        return Rejected("wanted") if predicate(candidate) else Compiled(Memory())

    with FakeOracle(answer, workers, key=identity) as oracle:
        return shrink_program(program, oracle, wanted), oracle


def wanted(result: Result) -> bool:
    return isinstance(result.answer, Rejected)


@pytest.mark.parametrize("kind", [monotone, erratic])
# Each example is a whole reduction, so a failing one is left as large as it was found.
@settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    max_examples=25,
)
@given(data=st.data())
def test_the_result_is_wanted_smaller_and_minimal(
    kind: Callable[[Program], st.SearchStrategy[Predicate]], data: st.DataObject
) -> None:
    program = data.draw(strategies.hunting())
    normal = program_tier().forms[-1]
    start = normal(program)
    predicate = data.draw(kind(start))
    shrunk, oracle = run(program, predicate)
    best = shrunk.program
    check(best)
    assert predicate(best)
    assert order_key(best) <= order_key(start)
    assert shrunk.minimal
    assert oracle.unique_calls == shrunk.compiles

    form = program_tier().forms[0]
    if form(best) != best:
        form = normal
    failing = [n for n in neighbours(best, form) if predicate(n.program)]
    assert not failing, failing[0]

    again, _ = run(best, predicate)
    assert again.program == best

    two, _ = run(program, predicate, workers=2)
    assert two.program == best
    assert two.history == shrunk.history
    assert two.stats == shrunk.stats
    assert two.compiles == shrunk.compiles
