"""The generator reaches every shape and dimension that failures in the wild had."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

import strategies
from reducer.ir.equations import BARRIER, Checkpoint, Scan, Transfer
from reducer.ir.policies import offloads
from reducer.ir.walk import block_at, equations
from tests.strategies.conftest import draw
from tests.strategies.features import features

STACKS = """
scan depth 1|scan depth 2|scan depth 3
length 1 with barrier at depth 2|length 1 without barrier at depth 2|length 1 with barrier at depth 3
length 2 without barrier at depth 2|length 3 without barrier at depth 2|length 3 with barrier at depth 1
reverse|unroll full|unroll partial|several carries
checkpoint in scan|scan in checkpoint|checkpoint in checkpoint|prevent_cse True|prevent_cse False
everything_saveable|nothing_saveable|dots_saveable|dots_with_no_batch_dims_saveable
policy NoneType|policy SaveNames|policy SaveAllBut|policy SaveNamesBut|policy OffloadDots|policy Both
offload policy on the inner body|offload policy on a block|offload policy on the whole nest
offload policies on two levels|different offload policies on two levels|one name offloaded, another saved
offload: region input|offload: interior value|offload: output only|offload: dot|offload: custom_vjp residual
offload: rank 0|offload: rank 1|offload: rank 2|offload: rank 3
offload: float32|offload: bfloat16|offload: int8|offload: float8_e4m3fn|offload: float8_e5m2
offload: not a multiple of 128 lanes|offload: a size of 1
dots policy, batched dot|cond|while|jit|custom_vjp
collective|shard_map inside a scan|shard_map outside a scan|sharding constraint|sharded input
mesh of 2|mesh of 4|2 mesh axes|gradient|no gradient|with_value True|with_value False
host input|gradient of a host input
"""
PLACED = """
scan depth 1|scan depth 2|scan depth 3|length 1 with barrier at depth 2|gradient|no gradient
transfer to host at depth 0|transfer to host at depth 1|transfer to host at depth 2|transfer to host at depth 3
transfer to device at depth 0|transfer to device at depth 1|transfer to device at depth 2
host xs at depth 1|host xs at depth 2|host ys at depth 1|host ys at depth 2|host carry|host const
two stacked outputs of one shape, one on the host|cast before the move
dynamic_slice of a host array, index on the device|dynamic_slice of a host array, index on the host
dynamic_update_slice of a host array, index on the device|dynamic_update_slice of a host array, index on the host
host input|host result|donated host input|donated input|gradient of a host input|sharded input
checkpoint in scan|reverse|unroll full|unroll partial|cond|jit
"""
ANY = """
scan depth 1|scan depth 2|scan depth 3|checkpoint in checkpoint|while|cond|jit|reverse|host carry
offload policy on the inner body|offload policy on the whole nest|offloaded name is nowhere
transfer to host at depth 1|transfer to device at depth 1|host xs at depth 1|host ys at depth 1
dynamic_slice of a host array, index on the device|dynamic_update_slice of a host array, index on the device
offload: int8|offload: float8_e4m3fn|mesh of 2|mesh of 4|gradient|no gradient|donated input
"""


def wanted(table: str) -> list[str]:
    return [word for line in table.strip().splitlines() for word in line.split("|")]


@pytest.fixture(scope="module")
def reached(sample):
    @cache
    def get(name: str) -> Counter[str]:
        return Counter(word for program in sample(name) for word in features(program))

    return get


@pytest.mark.parametrize("word", wanted(STACKS))
def test_layer_stacks_reach(word, reached):
    assert reached("layer_stacks")[word] > 0


@pytest.mark.parametrize("word", wanted(PLACED))
def test_placements_reach(word, reached):
    assert reached("placements")[word] > 0


@pytest.mark.parametrize("word", wanted(ANY))
def test_programs_reach(word, reached):
    assert reached("programs")[word] > 0


def test_a_bf16_vector_per_layer_is_offloaded():
    # Rare in the mixture; the options lead there.
    stacks = strategies.layer_stacks(max_depth=1, gradient=True, dtypes=("bfloat16",))
    assert any("bf16[256] offloaded in a plain scan" in features(program) for program in draw(stacks, 1000))


def test_every_word_is_one_that_some_program_lacks(sample):
    # A word that all programs have is a mistake in `features`, and tests nothing.
    everywhere = Counter(word for program in sample("hunting") for word in features(program))
    assert all(count < len(sample("hunting")) for count in everywhere.values())


def test_host_optimizer_state_beside_an_activation_offload(sample):
    def beside(program):
        donated = [v for v, e in zip(program.block.params, program.inputs, strict=False) if e.donated]
        state = any(v.type.on_host for v in donated)
        words = features(program)
        return state and "host ys at depth 1" in words and "host xs at depth 1" in words

    assert any(map(beside, sample("placements")))


def trip_count_one(program) -> bool:
    """Checkpoint, offload policy, gradient, a scan of length 1 kept by the barrier in a scan, no transfer."""
    if program.gradient is None:
        return False
    single = policy = False
    for path, _, eqn in equations(program):
        if isinstance(eqn, Transfer):
            return False
        policy |= isinstance(eqn, Checkpoint) and offloads(eqn.policy)
        if isinstance(eqn, Scan) and eqn.length == 1 and eqn.metadata == BARRIER:
            above = [block_at(program, path[:i]).eqns[path[i][0]] for i in range(len(path))]
            single |= any(isinstance(e, Scan) for e in above)
    return single and policy


def test_a_hunt_soon_meets_trip_count_one(sample):
    count = sum(map(trip_count_one, sample("hunting")))
    assert count > 0.03 * len(sample("hunting"))
