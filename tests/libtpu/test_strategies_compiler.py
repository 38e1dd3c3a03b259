"""Generated programs before the real compiler: all of them trace and lower, many fail, and in many ways."""

from __future__ import annotations

from collections import Counter

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import strategies
from reducer.ir.equations import BARRIER, Checkpoint, Program, Scan, Transfer
from reducer.ir.policies import offloads
from reducer.ir.walk import equations
from reducer.oracle.outcome import Compiled, Invalid, Result, Skipped, message_of
from reducer.oracle.pool import Pool
from reducer.oracle.programs import program_job
from reducer.oracle.signature import is_finding, is_user_error, signature

pytestmark = pytest.mark.slow


def examples(name: str, count: int) -> list[Program]:
    found: list[Program] = []

    @hypothesis.seed(1)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(getattr(strategies, name)())
    def take(program: Program) -> None:
        found.append(program)

    take()
    return found


def answers(pool: Pool, programs: list[Program]) -> list[Result]:
    jobs = [pool.submit(program_job(program, require_host_placement=True)) for program in programs]
    return [job.result() for job in jobs]


@pytest.mark.parametrize("name", ["layer_stacks", "placements", "programs"])
def test_every_program_lowers(name: str, pool: Pool) -> None:
    programs = examples(name, 50)
    results = answers(pool, programs)
    invalid = [message_of(r.answer) for r in results if isinstance(r.answer, Invalid)]
    assert not invalid, invalid[0]
    # A program that places nothing on the host is generated for nothing.
    skipped = sum(isinstance(r.answer, Skipped) for r in results)
    assert skipped <= 0.3 * len(programs)


def test_a_hunt_finds_many_failures_of_several_families(pool: Pool) -> None:
    programs = examples("hunting", 150)
    results = answers(pool, programs)
    tried = {r.module_key: (p, r) for p, r in zip(programs, results, strict=True) if not isinstance(r.answer, Skipped)}
    # Results on the host are declared so. The compiler still says E1200 once in a while, of an offload that a policy
    # asked for and a loop of one step that it removed.
    assert sum(is_user_error(r.outcome) for _, r in tried.values()) <= 0.03 * len(tried)
    failures = [(p, r.outcome) for p, r in tried.values() if is_finding(r.outcome)]
    assert len(failures) >= 0.08 * len(tried)
    families = Counter(found.family for _, outcome in failures if (found := signature(outcome)))
    assert len(families) >= 3, families
    assert any(_trip_count_one(p) for p, _ in failures)
    assert any(isinstance(r.outcome, Compiled) for _, r in tried.values())


def _trip_count_one(program: Program) -> bool:
    kinds = [(len(path), eqn) for path, _, eqn in equations(program)]
    return (
        program.gradient is not None
        and not any(isinstance(eqn, Transfer) for _, eqn in kinds)
        and any(isinstance(eqn, Checkpoint) and offloads(eqn.policy) for _, eqn in kinds)
        and any(isinstance(eqn, Scan) and eqn.length == 1 and eqn.metadata == BARRIER and deep for deep, eqn in kinds)
    )
