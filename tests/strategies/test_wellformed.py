"""Every program is well-typed, survives its JSON form, is small, varied, and says where it came from."""

from __future__ import annotations

from collections import Counter

import hypothesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from reducer.ir.check import check
from reducer.ir.codec import decode, encode, identity
from reducer.ir.equations import Checkpoint, Program, Scan, Transfer
from reducer.ir.normal import normalise
from reducer.ir.order import size
from reducer.ir.policies import offloads
from reducer.ir.skeleton import skeleton
from reducer.ir.walk import block_at, equations

PROGRAMS = ("programs", "layer_stacks", "placements", "hunting")


@pytest.mark.parametrize("name", PROGRAMS)
def test_well_typed_and_round_trips(name, sample):
    for program in sample(name)[::3]:
        check(program)
        assert decode(encode(program)) == program


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=50)
@given(st.data())
def test_well_typed_on_new_examples(name, data):
    check(data.draw(getattr(strategies, name)()))


@pytest.mark.parametrize("name", PROGRAMS)
def test_few_repeats_and_many_skeletons(name, sample):
    programs = sample(name)
    distinct = {identity(p): p for p in programs}
    assert len(distinct) > 0.85 * len(programs)
    skeletons = {skeleton(normalise(p)) for p in list(distinct.values())[:300]}
    assert len(skeletons) > 0.7 * 300


@pytest.mark.parametrize("name", PROGRAMS)
def test_small(name, sample):
    sizes = sorted(size(p) for p in sample(name))
    assert sizes[len(sizes) // 2] <= 15
    assert sizes[-1] <= 80


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_asks_for_host_memory(name, sample):
    def asks(program: Program) -> bool:
        kinds = [eqn for _, _, eqn in equations(program)]
        moved = any(isinstance(eqn, Transfer) for eqn in kinds)
        return moved or any(isinstance(e, Checkpoint) and offloads(e.policy) for e in kinds)

    assert all(map(asks, sample(name)))


@pytest.mark.parametrize("name", ["programs", "layer_stacks", "placements"])
def test_options(name):
    strategy = getattr(strategies, name)

    def depth(program: Program) -> int:
        def scans(path: tuple[tuple[int, str], ...]) -> int:
            owners = [block_at(program, path[:i]).eqns[path[i][0]] for i in range(len(path))]
            return sum(isinstance(owner, Scan) for owner in owners)

        return max(scans(path) for path, _, _ in equations(program))

    def flowing(program: Program) -> str:
        return program.block.params[0].type.dtype

    @settings(max_examples=30)
    @given(st.data())
    def options(data):
        assert data.draw(strategy(gradient=True)).gradient is not None
        assert data.draw(strategy(gradient=False)).gradient is None
        assert flowing(data.draw(strategy(dtypes=("bfloat16",)))) == "bfloat16"
        assert depth(data.draw(strategy(max_depth=1))) <= 1

    options()


def test_hunting_says_which_strategy(sample):
    counts = Counter(program.meta for program in sample("hunting"))
    assert set(counts) == {(("strategy", n),) for n in ("layer_stacks", "placements", "programs")}
    assert min(counts.values()) > 50


def test_the_same_seed_draws_the_same_programs():
    def run() -> list[Program]:
        found: list[Program] = []

        @hypothesis.seed(3)
        @settings(max_examples=30, database=None, derandomize=False)
        @given(strategies.hunting())
        def take(program):
            found.append(program)

        take()
        return found

    assert run() == run()


@settings(max_examples=200)
@given(strategies.policies(offload_only=True))
def test_offloading_policies_offload(policy):
    assert offloads(policy)


@settings(max_examples=200)
@given(strategies.types(min_rank=1, max_rank=2, aligned=True, memories=("host",), dtypes=("int8",)))
def test_types_keep_to_what_is_asked(type_):
    assert 1 <= type_.rank <= 2
    assert type_.on_host
    assert type_.dtype == "int8"
    assert type_.shape[-1] % 128 == 0
