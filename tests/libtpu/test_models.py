"""Models as people write them, each of more than 500 equations, which fail for real."""

from __future__ import annotations

from pathlib import Path

import pytest

from reducer.ir.equations import Checkpoint
from reducer.ir.order import size
from reducer.ir.walk import equations
from reducer.oracle.jobs import ScriptJob
from reducer.oracle.pool import Pool
from reducer.oracle.scripts import capture_script
from reducer.oracle.target import resolve_target
from reducer.oracle.verdict import verdict

MODELS = Path(__file__).parents[1] / "models"
BITCAST = "bitcast-memory-space"
#: Function -> family of its failure on libtpu 0.0.52, or the verdict where it has none.
EXPECTED = {
    "experts.py:step": BITCAST,
    "fsdp.py:step": BITCAST,
    "hybrid.py:step": BITCAST,
    "optimizer_state.py:step": BITCAST,
    "pipeline.py:step": BITCAST,
    "sharded_experts.py:step": BITCAST,
    "streamed.py:step": BITCAST,
    "levels.py:scalars": "lane-slice",
    "levels.py:vectors": "sublane-slice",
    "levels.py:both": "lost-offload",
    "levels.py:whole": "lost-offload",
    "dense.py:step": "lost-offload",
    "accumulation.py:step": "lost-offload",
}


def job(name: str) -> ScriptJob:
    path, _, function = name.partition(":")
    return ScriptJob(path=str(MODELS / path), function=function)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_it_fails_in_its_way(pool: Pool, name: str) -> None:
    judged = verdict(pool.submit(job(name), want_ledger=True, timeout=600).result())
    failed = judged.word == "failed" and judged.signature is not None
    assert (judged.signature.family if failed else judged.word) == EXPECTED[name]


@pytest.mark.slow
def test_accumulation_fails_on_an_older_release() -> None:
    with Pool(resolve_target("0.0.50.1"), 1, timeout=600) as old:
        judged = verdict(old.submit(job("accumulation.py:step")).result())
    assert judged.signature is not None
    assert judged.signature.family == "async-start-mismatch"


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_both_tiers_are_recovered(name: str) -> None:
    found = capture_script(job(name), resolve_target())
    assert found.reason == "the function does more than take this derivative"
    assert found.program is not None
    assert found.placement is not None
    assert size(found.placement) > 500
    assert any(isinstance(e, Checkpoint) and e.policy is not None for _, _, e in equations(found.program))
