"""What every reduction promises, under random predicates on random programs."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import strategies
from reducer.ir.check import check
from reducer.ir.codec import encode, identity
from reducer.ir.equations import Checkpoint, Name, Op, Program, Scan
from reducer.ir.order import order_key
from reducer.ir.policies import offloads
from reducer.ir.walk import blocks, equations
from reducer.neighbourhood import neighbours
from reducer.oracle.fake import FakeOracle
from reducer.oracle.outcome import Compiled, Memory, Rejected, Result
from reducer.shrink import Shrunk, certify_program, program_tier, shrink_program

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
    with oracle(predicate, workers) as asked:
        return shrink_program(program, asked, wanted), asked


def oracle(predicate: Predicate, workers: int = 1) -> FakeOracle[Program]:
    def answer(candidate: Program) -> Rejected | Compiled:
        return Rejected("wanted") if predicate(candidate) else Compiled(Memory())

    return FakeOracle(answer, workers, key=identity)


def certificate(program: Program, predicate: Predicate, workers: int = 1) -> bytes:
    with oracle(predicate, workers) as asked:
        return msgspec.json.encode(certify_program(program, asked, wanted))


def wanted(result: Result) -> bool:
    return isinstance(result.answer, Rejected)


@pytest.mark.parametrize("kind", [monotone, erratic])
# Each example is a whole reduction, so a failing one is left as large as it was found.
@settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    max_examples=15,
)
@given(data=st.data())
def test_the_result_is_wanted_smaller_and_minimal(
    kind: Callable[[Program], st.SearchStrategy[Predicate]], data: st.DataObject
) -> None:
    program = data.draw(strategies.hunting())
    normal = program_tier().forms[-1]
    start = normal(program)
    predicate = data.draw(kind(start))
    shrunk, asked = run(program, predicate)
    best = shrunk.program
    check(best)
    assert predicate(best)
    assert order_key(best) <= order_key(start)
    assert shrunk.minimal
    assert asked.unique_calls == shrunk.compiles

    form = program_tier().forms[0]
    if form(best) != best:
        form = normal
    failing = [n for n in neighbours(best, form) if predicate(n.program)]
    assert not failing, failing[0]

    assert shrunk.to_fixpoint + shrunk.restarted <= shrunk.compiles

    # A second run changes nothing.
    again, _ = run(best, predicate)
    assert again.program == best
    assert again.minimal

    # Two workers, and an oracle that knows nothing.
    two, _ = run(program, predicate, workers=2)
    assert encode(two.program) == encode(best)
    assert two.history == shrunk.history
    assert two.stats == shrunk.stats
    assert (two.compiles, two.to_fixpoint, two.restarted) == (shrunk.compiles, shrunk.to_fixpoint, shrunk.restarted)
    one = certificate(best, predicate)
    assert one == certificate(two.program, predicate, workers=2)
    assert b"fails-the-same" not in one


@pytest.mark.parametrize("kind", [monotone, erratic])
@settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    max_examples=5,
)
@given(data=st.data())
def test_the_same_command_again_compiles_nothing(
    kind: Callable[[Program], st.SearchStrategy[Predicate]], data: st.DataObject
) -> None:
    program = data.draw(strategies.hunting())
    predicate = data.draw(kind(program_tier().forms[-1](program)))
    with oracle(predicate) as known:
        first = shrink_program(program, known, wanted)
        certify_program(first.program, known, wanted)
        asked = known.unique_calls
        second = shrink_program(program, known, wanted)
        certify_program(second.program, known, wanted)
        assert known.unique_calls == asked
    assert (second.program, second.history) == (first.program, first.history)
