"""The seed's cases on releases: what compiles, how the others fail, and what is really offloaded.

Older releases are fetched on first use and kept in the user's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reducer.ir.check import check
from reducer.ir.codec import decode
from reducer.oracle.outcome import Compiled, Outcome, Rejected
from reducer.oracle.pool import Pool
from reducer.oracle.programs import program_job
from reducer.oracle.signature import signature
from reducer.oracle.target import installed_libtpu, resolve_target

pytestmark = pytest.mark.slow

SEED = Path(__file__).resolve().parents[1] / "seed"
CASES = ("flat", "nested", "trip_count_one", "trip_count_one_no_barrier")
INSTALLED = "installed"

#: (libtpu, case) -> the family of its failure, or where it compiles the bytes of its residuals in host memory. A
#: residual is f32[8,128], 4096 bytes; the stack of all 12 is 49152.
TABLE: dict[tuple[str, str], str | int] = {
    ("0.0.42.1", "flat"): 49152,
    ("0.0.42.1", "nested"): "async-start-mismatch",
    ("0.0.42.1", "trip_count_one"): "bitcast-memory-space",
    ("0.0.42.1", "trip_count_one_no_barrier"): 49152,
    ("0.0.50.1", "flat"): 49152,
    ("0.0.50.1", "nested"): "async-start-mismatch",
    ("0.0.50.1", "trip_count_one"): "bitcast-memory-space",
    ("0.0.50.1", "trip_count_one_no_barrier"): 49152,
    (INSTALLED, "flat"): 49152,
    # The newest release does not refuse it: it keeps only one inner stack of three on the host.
    (INSTALLED, "nested"): 12288,
    (INSTALLED, "trip_count_one"): "bitcast-memory-space",
    (INSTALLED, "trip_count_one_no_barrier"): 49152,
}


@pytest.fixture(scope="module")
def outcome_on(private_cache: Path) -> Iterator[Callable[[str, str], Outcome]]:
    """Compile a case on a release; a pool is kept for each."""
    del private_cache  # must be set before a worker inherits the environment
    pools: dict[str, Pool] = {}

    def outcome(release: str, case: str) -> Outcome:
        if release not in pools:
            pools[release] = Pool(resolve_target(release), workers=1)
        program = decode((SEED / f"{case}.json").read_bytes())
        check(program)
        return pools[release].submit(program_job(program)).result().outcome

    yield outcome
    for pool in pools.values():
        pool.close()


@pytest.mark.parametrize(("release", "case"), TABLE, ids="-".join)
def test_seed(release: str, case: str, outcome_on: Callable[[str, str], Outcome]) -> None:
    installed = installed_libtpu()
    assert installed is not None
    if release == INSTALLED and installed[0] != "0.0.52":
        pytest.skip(f"the table says what 0.0.52 does, and {installed[0]} is installed")
    outcome, expected = outcome_on(release, case), TABLE[release, case]
    if isinstance(expected, int):
        assert isinstance(outcome, Compiled), outcome
        assert outcome.memory.host_temp == expected
        return
    assert isinstance(outcome, Rejected), outcome
    found = signature(outcome)
    assert found is not None
    assert (found.family, found.code, found.phase) == (expected, "INTERNAL", "post-optimization")


def test_the_table_is_complete() -> None:
    assert {case for _, case in TABLE} == set(CASES) == {path.stem for path in SEED.glob("*.json")}
    assert len(TABLE) == 3 * len(CASES)
